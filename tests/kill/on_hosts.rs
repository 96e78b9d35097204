//! Runs on existing hosts, any of whose processes are killed at random moments: nothing stays changed on either host,
//! without `wirecost clean --host` where no settings guard was killed.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::{kills, random};
use crate::common::{
    Owner, Record, Running, TestDir, already_locked, is_root, lock_shared, run, settings_guards,
    signal, wait_for, wirecost,
};
use crate::existing::state;
use crate::pair::Pair;

/// Kills where `make soak` asks for none.
const USUALLY: usize = 15;
/// Pairs of hosts, each with one run at a time.
const PAIRS: usize = 5;
/// Processes of a run that are killed or not, each by a bit: the controller, two settings guards, two agents.
const PROCESSES: usize = 5;

struct Hosts {
    pair: Pair,
    place: TestDir,
    plan: PathBuf,
    before: [String; 2],
}

/// What a kill met.
struct Met {
    /// A process that changes settings.
    guards: bool,
    /// It was killed.
    cleaned: bool,
}

impl Hosts {
    fn new() -> Self {
        let (pair, place) = (Pair::new("soak"), TestDir::new());
        let text = format!(
            "name: killed\nhosts: {{ a: \"netns:{}\", b: \"netns:{}=10.77.0.2\" }}\nnetwork: existing\nallow_host_changes: on\n\
             vary:\n  all:\n    - label: as it is\n    - {{ label: changed, mtu: 1450, sysctl: {{ net.ipv4.tcp_no_metrics_save: 1 }}, \
             ethtool: {{ underlay: {{ tx-tcp-segmentation: off }} }} }}\n\
             repeat: {{ rounds: 2, seconds: 0.2, warmup: 0.05 }}\n",
            pair.a, pair.b
        );
        Self {
            plan: place.plan(&text),
            before: [state(&pair.a), state(&pair.b)],
            pair,
            place,
        }
    }

    fn start(&self) -> Running {
        Running::start(self.place.run_command(&self.plan, "run").arg("--yes"))
    }

    /// How long an uninterrupted run takes.
    fn whole(&self) -> Duration {
        let began = Instant::now();
        let ended = self.start().wait();
        let whole = began.elapsed();
        // On a machine that others keep busy nothing may arrive within so short a window (3).
        assert!(matches!(ended.status.code(), Some(0 | 3)), "{ended:#?}");
        self.is_as_before("an undisturbed run");
        whole
    }

    #[track_caller]
    fn is_as_before(&self, what: &str) {
        let now = [state(&self.pair.a), state(&self.pair.b)];
        assert_eq!(now, self.before, "{what}");
        let out = self.place.path().join("run");
        if Record::read(&out).is_some() {
            run(wirecost(["report", "--json"]).arg(&out)).expect_code(0);
        }
        // The next one has its place.
        let _ = fs::remove_dir_all(out);
    }

    /// Kills those processes of a run that `chosen` has a bit for; `None` where there was none of them.
    fn kill(&self, after: Duration, chosen: u64) -> Option<Met> {
        let mut running = self.start();
        let owner = Owner::of(running.pid()).argument();
        sleep(after);
        let guards = settings_guards(&owner);
        let agents = running.agents();
        let is_chosen = |process: usize| chosen >> process & 1 == 1;
        let mut killed = Vec::new();
        if is_chosen(0) && running.signal(Signal::SIGKILL) {
            killed.push(running.pid());
        }
        let others = agents.iter().map(|agent| agent.pid);
        for (process, pid) in (1..PROCESSES).zip(guards.iter().copied().chain(others)) {
            if is_chosen(process) && signal(pid, Signal::SIGKILL) {
                killed.push(pid);
            }
        }
        let ended = running.wait();
        let what = format!(
            "{killed:?} of {}, {guards:?}, {agents:?} killed after {after:?}: {ended:#?}",
            running.pid()
        );
        let has_ended = ended.was_killed() || matches!(ended.status.code(), Some(0 | 3));
        assert!(has_ended, "{what}");
        wait_for("the run's processes to be gone", || {
            (running.agents().is_empty() && settings_guards(&owner).is_empty()).then_some(())
        });
        let cleaned = guards.iter().any(|guard| killed.contains(guard));
        if cleaned {
            let hosts = [&self.pair.a, &self.pair.b].map(|netns| format!("netns:{netns}"));
            let mut clean = wirecost(["clean", "--host", &hosts[0], "--host", &hosts[1]]);
            run(&mut clean).expect_code(0);
        }
        self.is_as_before(&what);
        (!killed.is_empty()).then_some(Met {
            guards: !guards.is_empty(),
            cleaned,
        })
    }
}

#[test]
fn whatever_is_killed_at_random_nothing_stays_changed_on_existing_hosts() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    let enough = kills().map_or(USUALLY, |kills| (kills / 4).max(USUALLY));
    let random = Mutex::new(random());
    let (tried, met) = (Mutex::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..PAIRS {
            scope.spawn(|| {
                let _lock = already_locked();
                let hosts = Hosts::new();
                let mut whole = hosts.whole();
                let next = || {
                    let mut tried = tried.lock().expect("no panic");
                    *tried += 1;
                    *tried <= 4 * enough && met.lock().expect("no panic").len() < enough
                };
                while next() {
                    let (at, chosen) = {
                        let mut locked = random.lock().expect("no panic");
                        let draw = &mut *locked;
                        (draw(1000), 1 + draw((1 << PROCESSES) - 1))
                    };
                    let hit = hosts.kill(whole * at as u32 / 1000, chosen);
                    if hit.is_none() {
                        // It was measured while others kept the cores.
                        whole = whole * 4 / 5;
                    }
                    met.lock().expect("no panic").extend(hit);
                }
            });
        }
    });
    let met: Vec<Met> = met.into_inner().expect("no panic");
    let count = |is_it: fn(&Met) -> bool| met.iter().filter(|met| is_it(met)).count();
    let (changing, cleaned) = (count(|met| met.guards), count(|met| met.cleaned));
    println!(
        "{} kills, {changing} while settings were changed, {cleaned} of a settings guard",
        met.len()
    );
    assert!(met.len() >= enough, "{} kills hit something", met.len());
    assert!(changing > 0, "no kill met a settings guard");
}
