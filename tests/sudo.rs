//! Agents behind a login that is not root: started by `sudo -n` where what is asked of them needs root, as the login
//! otherwise; and what agents keep of root's capabilities.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::{Ended, Record, Running, TestDir, is_root, lock_shared, run, wirecost};
use crate::existing::state;
use crate::pair::Pair;

const SHORT: &str = "repeat: { rounds: 1, seconds: 0.4, warmup: 0.05 }\n";

/// What `sudo` is for the login.
#[derive(Clone, Copy)]
enum Sudo {
    /// Lets it run anything; what it runs is written down.
    Allows,
    AsksForAPassword,
    Missing,
}

/// A login that is the user nobody, in a namespace of mounts of its own. Its `sudo` is a script; what makes it root is
/// a copy of setpriv(1) with the setuid bit on a file system that nobody else sees.
struct Login {
    place: TestDir,
    script: PathBuf,
}

impl Login {
    fn new(sudo: Sudo) -> Self {
        let place = TestDir::new();
        let directory = place.path().display();
        let sudo = match sudo {
            Sudo::Allows => format!(
                "cat >$d/bin/sudo <<'END'\n#!/bin/sh\n[ \"$1\" = -n ] || exit 9\nshift\necho \"$*\" >>{directory}/log\n\
                 exec /mnt/setpriv --reuid 0 --regid 0 --clear-groups \"$@\"\nEND\n"
            ),
            Sudo::AsksForAPassword => {
                "printf '#!/bin/sh\\necho sudo: a password is required >&2; exit 1\\n' >$d/bin/sudo\n".to_owned()
            }
            Sudo::Missing => String::new(),
        };
        let script = place.path().join("login");
        let text = format!(
            "set -e\nd=/mnt\nmount -t tmpfs -o mode=755 none $d\nmkdir $d/bin\ninstall -m 4755 \"$(command -v setpriv)\" $d/setpriv\n\
             ln -sf /usr/bin/* $d/bin/\n[ /bin -ef /usr/bin ] || ln -sf /bin/* $d/bin/\nrm -f $d/bin/sudo $d/bin/wirecost\n\
             {sudo}[ ! -e $d/bin/sudo ] || chmod 755 $d/bin/sudo\nexport PATH=$d/bin TMPDIR=/tmp HOME=$d\n\
             exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \"$@\"\n"
        );
        fs::write(&script, text).expect("script");
        fs::write(place.path().join("log"), "").expect("log");
        for (path, mode) in [(place.path(), 0o755), (&place.path().join("log"), 0o666)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode");
        }
        Self { place, script }
    }

    /// The address of a host in a namespace, reached by this login.
    fn host(&self, netns: &str) -> String {
        let script = self.script.display();
        format!("exec:ip netns exec {netns} unshare --mount sh {script}")
    }

    /// What was run by sudo.
    fn log(&self) -> String {
        fs::read_to_string(self.place.path().join("log")).expect("log")
    }
}

fn measure(login: &Login, pair: &Pair, rest: &str) -> (Ended, Option<Record>) {
    let plan = login.place.plan(&format!(
        "name: sudo\nseed: 1\nhosts: {{ a: \"{}\", b: \"netns:{}\" }}\nnetwork: existing\n{rest}{SHORT}",
        login.host(&pair.a),
        pair.b
    ));
    let out = login.place.path().join("run");
    let [plan, out_text]: [&str; 2] =
        [plan.as_path(), &out].map(|path: &Path| path.to_str().expect("a plain path"));
    let ended = run(&mut wirecost(["run", plan, "--out", out_text, "--yes"]));
    (ended, Record::read(&out))
}

const CHANGES: &str = "allow_host_changes: on\nvary: { metrics: [{ label: as it is }, { sysctl: { \
                       net.ipv4.tcp_no_metrics_save: 1 } }] }\n";

#[test]
fn what_needs_root_is_done_by_sudo_and_nothing_else_is() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, login) = (Pair::new("sudo"), Login::new(Sudo::Allows));
    // Whose congestion control needs no privilege anywhere.
    let (ended, record) = measure(&login, &pair, "load: udp-rr\n");
    ended.expect_code(0);
    assert!(record.expect("a record").samples[0].invalid.is_none());
    assert_eq!(login.log(), "", "a load needs no root");
    fs::remove_dir_all(login.place.path().join("run")).expect("removed");

    let before = state(&pair.a);
    let (ended, record) = measure(&login, &pair, CHANGES);
    ended.expect_code(0);
    let record = record.expect("a record");
    assert!(record.samples.iter().all(|sample| sample.invalid.is_none()));
    let log = login.log();
    assert!(log.contains("--duty change"), "{log}");
    assert_eq!(state(&pair.a), before);

    let clean = run(&mut wirecost(["clean", "--host", &login.host(&pair.a)]));
    clean.expect_code(0);
    assert!(
        clean.stdout.contains("nothing was left changed"),
        "{clean:?}"
    );
}

#[test]
fn a_diagnosis_lists_as_root_what_it_would_change_as_root() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let (pair, login) = (Pair::new("sudodiag"), Login::new(Sudo::Allows));
    let before = state(&pair.a);
    let mut command = wirecost(["diagnose", &login.host(&pair.a)]);
    command.arg(format!("netns:{}", pair.b));
    // Nobody can be asked: it ends before it loads or changes anything.
    let unasked = run(command.arg("--allow-host-changes"));
    unasked.expect_code(2);
    let log = login.log();
    assert!(log.contains("--duty change"), "{log}");
    assert!(!log.contains("--duty check"), "{log}");
    assert_eq!(state(&pair.a), before);
}

#[test]
fn a_login_that_cannot_become_root_is_told_why() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("nosudo");
    for (sudo, why) in [
        (Sudo::AsksForAPassword, "sudo: a password is required"),
        (Sudo::Missing, "there is no sudo"),
    ] {
        let login = Login::new(sudo);
        let (ended, record) = measure(&login, &pair, CHANGES);
        ended.expect_code(3);
        assert!(record.is_none());
        let words = ended
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            words.contains("needs root, its login is nobody"),
            "{ended:?}"
        );
        assert!(
            words.contains(why) && words.contains("NOPASSWD"),
            "{ended:?}"
        );
    }
}

/// The lines of capabilities of a process.
fn sets(pid: u32) -> Option<Vec<(String, u64)>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let lines = status.lines().filter_map(|line| line.split_once(":\t"));
    let of_interest = |name: &str| name.starts_with("Cap") || name == "NoNewPrivs";
    let sets = lines.filter(|(name, _)| of_interest(name));
    Some(
        sets.map(|(name, value)| {
            let bits = u64::from_str_radix(value, 16).expect("a mask");
            (name.to_owned(), bits)
        })
        .collect(),
    )
}

#[test]
fn an_agent_under_load_has_the_capabilities_that_a_load_needs_in_every_thread() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let pair = Pair::new("caps");
    let hosts = [&pair.a, &pair.b].map(|netns| format!("netns:{netns}"));
    let arguments = ["load", &hosts[0], &hosts[1], "--time", "3"];
    let mut running = Running::start(&mut wirecost(arguments));
    let agents = running.wait_for("two agents under load", |running| {
        let agents: Vec<u32> = running.agents().iter().map(|agent| agent.pid).collect();
        let threads = |pid: &u32| {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
            Some(tasks.count())
        };
        let loaded = agents
            .iter()
            .all(|pid| threads(pid).is_some_and(|count| count > 2));
        (agents.len() == 2 && loaded).then_some(agents)
    });
    // DAC_OVERRIDE, NET_BIND_SERVICE, NET_ADMIN, IPC_LOCK, SYS_PTRACE, SYS_NICE, SYS_RESOURCE and PERFMON.
    let allowed: u64 = [1, 10, 12, 14, 19, 23, 24, 38]
        .iter()
        .map(|bit| 1 << bit)
        .sum();
    let (mut seen, own) = (0, sets(std::process::id()).expect("own"));
    let had = own
        .iter()
        .find(|(name, _)| name == "CapPrm")
        .expect("CapPrm")
        .1;
    for pid in agents {
        for task in fs::read_dir(format!("/proc/{pid}/task")).expect("tasks") {
            let task = task.expect("a task").file_name();
            let task = task
                .to_str()
                .and_then(|name| name.parse().ok())
                .expect("a number");
            let Some(sets) = sets(task) else { continue };
            seen += 1;
            for (name, bits) in sets {
                match name.as_str() {
                    "CapPrm" | "CapEff" => assert_eq!(bits, allowed & had, "{name} of {task}"),
                    "CapBnd" => assert_eq!(bits & !allowed, 0, "{name} of {task}"),
                    "NoNewPrivs" => assert_eq!(bits, 1, "{name} of {task}"),
                    _ => assert_eq!(bits, 0, "{name} of {task}"),
                }
            }
        }
    }
    assert!(seen > 4, "{seen} threads");
    running.wait().expect_code(0);
}
