//! What goes wrong in each phase of a run between existing hosts: every time the run ends by itself with what happened,
//! or marks the sample; no process, device or setting is left on either host, the record can be read, and a later run
//! works.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use wirecost_model::record::Outcome;
use wirecost_model::sample::Invalid;

use crate::common::{
    Ended, Owner, Record, Running, TestDir, already_locked, is_root, lines_written, lock_file,
    lock_shared, run, settings_guards, signal, wait_for, wirecost,
};
use crate::existing::state;
use crate::pair::{Pair, ip};

/// Seconds, long enough for each phase to be met while others use the cores. The changed level is of both hosts.
const WARMUP: f64 = 2.0;
const WINDOW: f64 = 3.0;
/// Of a fault after which the window goes on to its end.
const LONG_WINDOW: f64 = 20.0;
/// Faults that are tried at the same time: a run mostly waits.
const AT_ONCE: usize = 6;
/// Longest time from a fault to the run's end. An agent that was stopped while settings were applied has a minute to
/// undo them, and other agents may wait for cores.
const LIMIT: Duration = Duration::from_mins(3);
/// Size of the full disk; a record needs less.
const DISK_KIB: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Agents are there, and nothing else.
    Connect,
    /// Tunnels between the hosts; other phases are of runs that build nothing.
    Build,
    /// Existing hosts: responders and proofs before the first sample.
    Prove,
    WarmUp,
    Window,
    /// Every sample is written.
    TearDown,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    KillAgent(&'static str),
    StopAgent(&'static str),
    KillController,
    /// SIGSTOP, and SIGCONT once both hosts have undone by themselves what it had set.
    StopController,
    /// Ctrl-C.
    Interrupt,
    /// The file system of the record has no room any more.
    FillDisk,
    /// The link between the hosts goes down and stays down until the run has ended.
    CutLink,
    /// Host b's device takes smaller packets only.
    NarrowLink,
}

/// How the run ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// Exit code 3, and the host whose agent was struck is named.
    Host,
    /// Exit code 3, and one of these words in what it says or in why a sample is not valid.
    Named(&'static [&'static str]),
    Killed,
    /// Exit code 3, an interrupted record, and hosts as they were without `clean`.
    Interrupted,
    /// The fault may have come too late to matter: any of these, or exit code 0.
    Any,
}

use End::{Any, Host, Interrupted, Killed, Named};
use Fault::{
    CutLink, FillDisk, Interrupt, KillAgent, KillController, NarrowLink, StopAgent, StopController,
};
use Phase::{Build, Connect, Prove, TearDown, WarmUp, Window};

const CUT: End = Named(&["proven", "arrived", "connect", "reach"]);

const CASES: &[(Phase, Fault, End)] = &[
    // The longest first.
    (
        WarmUp,
        StopController,
        Named(&["no request arrived", "did not answer"]),
    ),
    (
        Connect,
        StopAgent("b"),
        Named(&["the agent of host", "no agent could be started"]),
    ),
    (Prove, StopAgent("a"), Host),
    (WarmUp, StopAgent("b"), Host),
    (Window, StopAgent("a"), Host),
    (WarmUp, CutLink, CUT),
    (Window, CutLink, CUT),
    (Prove, CutLink, CUT),
    (
        Connect,
        CutLink,
        Named(&[
            "proven",
            "arrived",
            "connect",
            "reach",
            "down",
            "route",
            "has no address",
        ]),
    ),
    (Window, NarrowLink, Named(&["proven", "MTU"])),
    (Connect, KillAgent("a"), Host),
    (Connect, KillAgent("b"), Host),
    (Connect, KillController, Killed),
    (Build, KillAgent("b"), Named(&["the agent of host"])),
    (Build, KillController, Killed),
    (Prove, KillAgent("b"), Host),
    (Prove, KillController, Killed),
    (WarmUp, KillAgent("a"), Host),
    (WarmUp, KillController, Killed),
    (Window, KillAgent("b"), Host),
    (Window, KillController, Killed),
    (Prove, Interrupt, Interrupted),
    (Window, Interrupt, Interrupted),
    (Window, FillDisk, Named(&["No space left"])),
    (TearDown, StopAgent("b"), Any),
    (TearDown, CutLink, Any),
    (TearDown, KillAgent("a"), Any),
    (TearDown, KillController, Any),
];

fn plan(pair: &Pair, [warmup, window]: [f64; 2]) -> String {
    format!(
        "name: phases\nhosts: {{ a: \"netns:{}\", b: \"netns:{}=10.77.0.2\" }}\nnetwork: existing\nallow_host_changes: on\nvary:\n  \
         all:\n    - {{ label: changed, mtu: 1450, rps: 0x1, ethtool: {{ underlay: {{ tx-tcp-segmentation: off }} }} }}\n\
         repeat: {{ rounds: 1, seconds: {window}, warmup: {warmup} }}\n",
        pair.a, pair.b
    )
}

fn tunnel_plan(pair: &Pair) -> String {
    format!(
        "name: phases\nhosts: {{ a: \"netns:{}\", b: \"netns:{}=10.77.0.2\" }}\nnetwork: tunnel\nencapsulation: vxlan\n\
         datapath: kernel\nrepeat: {{ rounds: 1, seconds: {WINDOW}, warmup: {WARMUP} }}\n",
        pair.a, pair.b
    )
}

struct Case {
    pair: Pair,
    place: TestDir,
}

impl Case {
    /// Waits for the beginning of a phase of the only sample; `false` where the run ended before.
    fn reach(&self, phase: Phase, running: &mut Running) -> bool {
        let out = self.place.path().join("run");
        let mut has_ended = false;
        wait_for("a phase", || {
            has_ended = running.ended().is_some();
            let is_there = match phase {
                Connect => ["a", "b"]
                    .iter()
                    .all(|host| !self.agents_of(host, running).is_empty()),
                // The devices are made next.
                Build => running.answered("making its network namespaces", 1),
                // The first time is a try, before the run begins.
                Prove => running.answered("applying the settings of a level", 2),
                WarmUp => running.answered("starting the load", 1),
                Window => running.answered("beginning to count", 1),
                TearDown => lines_written(&out) == 1,
            };
            (has_ended || is_there).then_some(())
        });
        !has_ended
    }

    fn host(&self, host: &str) -> String {
        let netns = if host == "a" {
            &self.pair.a
        } else {
            &self.pair.b
        };
        format!("netns:{netns}")
    }

    /// Process ids of a host's agents: one, or two where a tunnel is built.
    fn agents_of(&self, host: &str, running: &Running) -> Vec<u32> {
        let name = self.host(host);
        let agents = running.agents().into_iter();
        let of_host = agents.filter(|agent| agent.host == name);
        of_host.map(|agent| agent.pid).collect()
    }

    /// The file system that [`FillDisk`] fills.
    fn disk(&self) -> PathBuf {
        self.place.path().join("disk")
    }

    /// The run, for [`FillDisk`] with its record on a disk that goes with it.
    fn command(&self, fault: Fault, text: &str) -> Command {
        let file = self.place.plan(text);
        if !matches!(fault, FillDisk) {
            return self.place.run_command(&file, "run");
        }
        fs::create_dir(self.disk()).expect("a mount point");
        let script =
            format!("mount -t tmpfs -o size={DISK_KIB}k wirecost-test \"$0\" && exec \"$@\"");
        let run = self.place.run_command(&file, "disk/run");
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", &script])
            .arg(self.disk())
            .arg(run.get_program())
            .args(run.get_args())
            .current_dir(self.place.path());
        command
    }

    /// Whether there was something to strike.
    fn strike(&self, fault: Fault, running: &mut Running) -> bool {
        let agent = |host: &str, what| {
            let agents = self.agents_of(host, running);
            agents.into_iter().filter(|pid| signal(*pid, what)).count() > 0
        };
        match fault {
            KillAgent(host) => return agent(host, Signal::SIGKILL),
            StopAgent(host) => return agent(host, Signal::SIGSTOP),
            KillController => return running.signal(Signal::SIGKILL),
            Interrupt => return running.signal(Signal::SIGINT),
            StopController => {
                if !running.signal(Signal::SIGSTOP) {
                    return false;
                }
                wait_for("the hosts to undo what was set", || {
                    let hosts = [&self.pair.a, &self.pair.b];
                    let set = |netns: &&String| state(netns).contains("mtu 1450");
                    (!hosts.iter().any(set)).then_some(())
                });
                return running.signal(Signal::SIGCONT);
            }
            FillDisk => {
                let seen = format!("/proc/{}/root{}/all", running.pid(), self.disk().display());
                let filled = fs::write(seen, vec![1_u8; 2 * DISK_KIB * 1024]);
                assert!(filled.is_err(), "more than the disk has room for");
            }
            CutLink => ip(&["-n", &self.pair.b, "link", "set", "eth0", "down"]),
            NarrowLink => ip(&["-n", &self.pair.b, "link", "set", "eth0", "mtu", "1300"]),
        }
        true
    }

    /// Makes good what the fault did to the network.
    fn mend(&self) {
        let b = &self.pair.b;
        ip(&["-n", b, "link", "set", "eth0", "mtu", "1500", "up"]);
        ip(&[
            "-n",
            b,
            "-6",
            "address",
            "replace",
            "fd77::2/64",
            "dev",
            "eth0",
            "nodad",
        ]);
    }
}

/// What a run said, and why its samples are not valid.
fn told(ended: &Ended, record: Option<&Record>) -> String {
    let samples = record.iter().flat_map(|record| &record.samples);
    let reasons = samples.filter_map(|sample| sample.invalid.as_ref());
    let reasons: Vec<&str> = reasons.map(Invalid::reason).collect();
    format!("{}{}{}", ended.stdout, ended.stderr, reasons.join("\n"))
}

fn strike(phase: Phase, fault: Fault, end: End) {
    let case = Case {
        pair: Pair::new("phases"),
        place: TestDir::new(),
    };
    let what = format!("{fault:?} in {phase:?}");
    let before = [state(&case.pair.a), state(&case.pair.b)];
    let text = match phase {
        Build => tunnel_plan(&case.pair),
        Window if matches!(fault, CutLink | NarrowLink) => plan(&case.pair, [WARMUP, LONG_WINDOW]),
        _ => plan(&case.pair, [WARMUP, WINDOW]),
    };
    let began = Instant::now();
    let mut command = case.command(fault, &text);
    let mut running = Running::start(command.args(["--yes", "--verbose"]));
    let owner = Owner::of(running.pid()).argument();
    let met = case.reach(phase, &mut running) && case.strike(fault, &mut running);
    assert!(
        met || phase == TearDown,
        "{what}: it had ended: {}",
        running.stderr_so_far()
    );
    let struck = Instant::now();
    let ended = running.wait();
    assert!(struck.elapsed() < LIMIT, "{what}: {:?}", struck.elapsed());
    println!(
        "{what}: {:.1} s, exit code {:?}",
        began.elapsed().as_secs_f64(),
        ended.status.code()
    );
    if matches!(fault, StopAgent(_)) {
        // A stopped agent cannot end itself. What tests of `clean` are about is not for this one to end.
        let _lock = lock_file("machine");
        run(&mut wirecost(["clean"])).expect_code(0);
    }
    wait_for("the agents to be gone, and what they had changed", || {
        (running.agents().is_empty() && settings_guards(&owner).is_empty()).then_some(())
    });
    if matches!(end, Interrupted) {
        assert_eq!([state(&case.pair.a), state(&case.pair.b)], before, "{what}");
    }
    case.mend();
    let hosts = ["a", "b"].map(|host| case.host(host));
    run(&mut wirecost([
        "clean", "--host", &hosts[0], "--host", &hosts[1],
    ]))
    .expect_code(0);
    assert_eq!([state(&case.pair.a), state(&case.pair.b)], before, "{what}");

    let out = case.place.path().join("run");
    let record = Record::read(&out);
    let words = told(&ended, record.as_ref());
    let is_named = |any: &[&str]| {
        ended.status.code() == Some(3) && any.iter().any(|word| words.contains(word))
    };
    let is_host_named = || match fault {
        KillAgent(host) | StopAgent(host) => {
            is_named(&[&format!("the agent of host {}", case.host(host))])
        }
        _ => false,
    };
    let is_right = match end {
        Host => is_host_named(),
        Named(any) => is_named(any),
        Killed => ended.was_killed(),
        Interrupted => {
            let end = record.as_ref().and_then(|record| record.end.as_ref());
            let outcome = end.map(|end| end.outcome);
            ended.status.code() == Some(3) && outcome == Some(Outcome::Interrupted)
        }
        Any => is_host_named() || ended.was_killed() || ended.status.code() == Some(0),
    };
    assert!(is_right, "{what}: {:?}: {words}", ended.status);
    if record.is_some() {
        run(wirecost(["report", "--json"]).arg(&out)).expect_code(0);
    }
    let file = case.place.plan(&plan(&case.pair, [0.2, 1.0]));
    run(case.place.run_command(&file, "again").arg("--yes")).expect_code(0);
}

#[test]
fn whatever_goes_wrong_in_whatever_phase_is_named_and_leaves_nothing() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    // Only those whose name contains this: `Window`, `StopAgent`.
    let only = std::env::var("WIRECOST_FAULT").unwrap_or_default();
    let is_wanted = |(phase, fault, _): &&(Phase, Fault, End)| {
        format!("{fault:?} in {phase:?}").contains(&only)
    };
    let left = Mutex::new(CASES.iter().filter(is_wanted));
    let next = || left.lock().expect("no panic while it is held").next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let _lock = already_locked();
                while let Some((phase, fault, end)) = next() {
                    strike(*phase, *fault, *end);
                }
            });
        }
    });
}

#[test]
fn a_host_whose_disk_is_full_is_named_and_nothing_of_it_is_changed() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("full"), TestDir::new());
    let before = [state(&pair.a), state(&pair.b)];
    // In the mount namespace that `ip netns exec` makes: all that is there is one page, and that is taken.
    let script = place.path().join("full");
    let full = "#!/bin/sh\nmount -t tmpfs -o size=4k none /var/lib && echo taken >/var/lib/taken && exec \"$@\"\n";
    fs::write(&script, full).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("permissions");
    let inside = format!(
        "exec:ip netns exec {} {}=10.77.0.2",
        pair.b,
        script.display()
    );
    let text = plan(&pair, [0.2, 1.0]).replace(&format!("netns:{}=10.77.0.2", pair.b), &inside);
    let ended = run(place.run_command(&place.plan(&text), "run").args(["--yes"]));
    ended.expect_code(3);
    let record = Record::read(&place.path().join("run"));
    let words = told(&ended, record.as_ref());
    for word in [
        "/var/lib/wirecost/journal",
        "nothing is changed",
        "No space left",
    ] {
        assert!(words.contains(word), "{word}: {words}");
    }
    wait_for("both hosts to be as they were", || {
        ([state(&pair.a), state(&pair.b)] == before).then_some(())
    });
}

#[test]
fn two_runs_on_the_same_hosts_never_leave_what_the_other_had_set() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, place) = (Pair::new("two-runs"), TestDir::new());
    let before = [state(&pair.a), state(&pair.b)];
    // The second has to come within the first one's window, however busy the machine is.
    let file = place.plan(&plan(&pair, [WARMUP, 600.0]));
    let mut first = Running::start(place.run_command(&file, "first").arg("--yes"));
    first.wait_for("the first to change its hosts", |_| {
        (state(&pair.a).contains("mtu 1450") && state(&pair.b).contains("mtu 1450")).then_some(())
    });
    let second = run(place.run_command(&file, "second").arg("--yes"));
    second.expect_code(3);
    assert!(
        second
            .stderr
            .contains("changed by another run at this moment"),
        "{second:?}"
    );
    let is_changed = |netns: &str| state(netns).contains("mtu 1450");
    assert!(is_changed(&pair.a) && is_changed(&pair.b), "by the first");
    assert!(first.signal(Signal::SIGINT), "{:#?}", first.ended());
    let ended = first.wait();
    ended.expect_code(3);
    let record = Record::read(&place.path().join("first")).expect("a record");
    let end = record.end.expect("an end");
    assert_eq!(end.outcome, Outcome::Interrupted, "{ended:#?}");
    assert_eq!([state(&pair.a), state(&pair.b)], before);
    let file = place.plan(&plan(&pair, [WARMUP, WINDOW]));
    run(place.run_command(&file, "third").arg("--yes")).expect_code(0);
    assert_eq!([state(&pair.a), state(&pair.b)], before);
}
