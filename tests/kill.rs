//! Fault injection: whatever is killed, and whenever, nothing is left behind, nothing of the
//! user's is touched, and no sample is lost but the one in the air.

mod on_hosts;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime};

use crate::common::namespaces::{Namespaces, leave_the_machine};
use crate::common::{
    Ended, Record, Running, TestDir, already_locked, is_root, lines_written, lock_file,
    lock_shared, run, signal, wait_for, wirecost,
};
use nix::sys::signal::Signal;
use wirecost_model::record::{Outcome, file};
use wirecost_model::sample::Invalid;

/// Two labs, one sample each: every phase of a run, and little of each.
const PLAN: &str = "\
name: kill
underlay: { mtu: 9000, rate: 1gbit }
guest_mtu: 1500
encapsulation: [none, vxlan]
offload: none
repeat: { rounds: 1, seconds: 0.4, warmup: 0.2 }
";
const SAMPLES: usize = 2;
/// Of each sample, seconds.
const WARMUP: f64 = 0.2;
const WINDOW: f64 = 0.4;

/// Kills spread evenly over a run's whole duration.
const SWEEP: u32 = 48;
/// Runs at a time: each waits most of its time.
const AT_A_TIME: usize = 3;
/// Kills of the sweep and the others that must really have hit something; those on existing hosts come to them.
const AT_LEAST: usize = 45;
/// Of `make soak`: so many kills at random moments, a quarter of them on existing hosts.
const KILLS: &str = "WIRECOST_KILLS";

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Controller,
    Agent(&'static str),
    All,
}

const VICTIMS: [Victim; 4] = [
    Victim::Controller,
    Victim::Agent("a"),
    Victim::Agent("b"),
    Victim::All,
];

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Build,
    Proof,
    WarmUp,
    Window,
    TearDown,
}

/// Where an uninterrupted run spends its time, in seconds.
struct Schedule {
    whole: Duration,
    first_sample: f64,
    /// What each sample takes beside warm-up and window: half of it before, half after. The labs
    /// are built before the first.
    rest: [f64; SAMPLES],
}

impl Schedule {
    /// From the shortest of three uninterrupted runs.
    fn measure(place: &TestDir, plan: &Path) -> Self {
        let measured = (0..3).map(|run| Self::of_run(place, plan, &format!("reference-{run}")));
        measured
            .min_by_key(|schedule| schedule.whole)
            .expect("three runs")
    }

    fn of_run(place: &TestDir, plan: &Path, name: &str) -> Self {
        let began = Instant::now();
        let ended = Running::start(&mut place.run_command(plan, name)).wait();
        let whole = began.elapsed();
        // On a machine that others keep busy nothing may arrive within so short a window (3).
        assert!(matches!(ended.status.code(), Some(0 | 3)), "{ended:#?}");
        let record = Record::read(&place.path().join(name)).expect("a record");
        assert_eq!(record.samples.len(), SAMPLES);
        let rest = |at: usize| record.samples[at].took_s - WARMUP - WINDOW;
        Self {
            whole,
            first_sample: record.samples[0].started_s,
            rest: [rest(0), rest(1)],
        }
    }

    /// What a run did `elapsed` seconds after its start, with that many samples in its record;
    /// `began` is when the sample in the air began.
    fn phase(&self, recording: bool, samples: usize, began: f64, elapsed: f64) -> Phase {
        if samples >= SAMPLES {
            return Phase::TearDown;
        }
        let warm_up = self.rest[samples] / 2.0;
        match elapsed - began {
            _ if !recording => Phase::Build,
            into if into < warm_up => Phase::Proof,
            into if into < warm_up + WARMUP => Phase::WarmUp,
            into if into < warm_up + WARMUP + WINDOW => Phase::Window,
            _ => Phase::Proof,
        }
    }
}

/// When to kill.
#[derive(Debug, Clone, Copy)]
enum When {
    /// So long after the start.
    After(Duration),
    /// As soon as the record exists and has so many samples: the next one's proof has just begun,
    /// or the tear-down.
    Written(usize),
    /// As soon as both hosts have started so many loads: the warm-up of the last has just begun.
    Loading(usize),
}

/// One run to be killed.
struct Attempt<'a> {
    schedule: &'a Schedule,
    victim: Victim,
    when: When,
    /// Agents to be stopped before.
    stop: &'a [&'a str],
    /// Which of several: the newest, or the oldest.
    newest: bool,
}

/// What came of it.
struct Hit {
    phase: Phase,
    cleaned: bool,
}

impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} killed {:?}, {:?} stopped",
            self.victim, self.when, self.stop
        )
    }
}

impl Attempt<'_> {
    /// `None` where there was nothing left to kill.
    fn make(&self, place: &TestDir, plan: &Path, name: &str) -> Option<Hit> {
        let out = place.path().join(name);
        let started = Instant::now();
        let mut running = Running::start(place.run_command(plan, name).arg("--verbose"));
        let is_time = |running: &Running| match self.when {
            When::After(delay) => started.elapsed() >= delay,
            When::Written(samples) => {
                out.join(file::SAMPLES).exists() && lines_written(&out) >= samples
            }
            When::Loading(loads) => running.answered("starting the load", loads),
        };
        while !is_time(&running) && running.ended().is_none() {
            sleep(Duration::from_millis(1));
        }
        let recording = out.join(file::SAMPLES).exists();
        let before = lines_written(&out);
        let elapsed = started.elapsed().as_secs_f64();
        for agent in running
            .agents()
            .iter()
            .filter(|a| self.stop.contains(&a.host.as_str()))
        {
            signal(agent.pid, Signal::SIGSTOP);
        }
        let hit = self.kill(&mut running);

        let ended = running.wait();
        let cleaned = self.nothing_is_left(&running);
        let record = self.the_record_is_valid(&out, before, &ended);
        // Killed while it exits, a process has the exit code that it had chosen.
        let too_late = !matches!(self.victim, Victim::Agent(_)) && ended.status.code() == Some(0);
        if too_late {
            let end = record.as_ref().and_then(|record| record.end.as_ref());
            let outcome = end.map(|end| end.outcome);
            assert_eq!(outcome, Some(Outcome::Complete), "{self:?}: {ended:#?}");
        }
        if !hit || too_late {
            return None;
        }
        let previous = record
            .as_ref()
            .and_then(|record| record.samples.get(before.checked_sub(1)?));
        let began = previous.map_or(self.schedule.first_sample, |s| s.started_s + s.took_s);
        let phase = match self.when {
            When::Written(samples) if before == samples && samples < SAMPLES => Phase::Proof,
            When::Loading(loads) if before + 1 == loads => Phase::WarmUp,
            _ => self.schedule.phase(recording, before, began, elapsed),
        };
        self.it_ended_as_it_should(&ended, record.as_ref());
        Some(Hit { phase, cleaned })
    }

    fn kill(&self, running: &mut Running) -> bool {
        let host = match self.victim {
            Victim::Controller => return running.signal(Signal::SIGKILL),
            Victim::All => {
                let agents = running.agents();
                let hit = running.signal(Signal::SIGKILL);
                for agent in agents {
                    signal(agent.pid, Signal::SIGKILL);
                }
                return hit;
            }
            Victim::Agent(host) => host,
        };
        // Very early there is none yet, and very late none any more.
        wait_for("an agent or the run's end", || {
            let mut agents = running.agents();
            agents.retain(|agent| agent.host == host);
            let victim = if self.newest {
                agents.last()
            } else {
                agents.first()
            };
            match victim {
                Some(agent) => Some(signal(agent.pid, Signal::SIGKILL)),
                None => (running.ended().is_some() || !self.is_early()).then_some(false),
            }
        })
    }

    fn is_early(&self) -> bool {
        matches!(self.when, When::After(delay) if delay < self.schedule.whole / 2)
    }

    /// Sees to it that no process of the run is left; whether `wirecost clean` was needed for it.
    fn nothing_is_left(&self, running: &Running) -> bool {
        let deadline = Instant::now() + Duration::from_secs(2);
        while Instant::now() < deadline {
            if running.agents().is_empty() {
                return false;
            }
            sleep(Duration::from_millis(5));
        }
        println!("{self:?}: {:?} left, to be cleaned", running.agents());
        let lock = lock_file("machine"); // what tests of `clean` are about is not for this one to end
        run(&mut wirecost(["clean"])).expect_code(0);
        drop(lock);
        wait_for("the cleaned agents to be gone", || {
            running.agents().is_empty().then_some(())
        });
        true
    }

    /// What was in the record before the kill is in it after the kill, and it can be read.
    fn the_record_is_valid(&self, out: &Path, before: usize, ended: &Ended) -> Option<Record> {
        let Some(record) = Record::read(out) else {
            assert_eq!(before, 0, "{self:?}");
            return None;
        };
        assert!(record.samples.len() >= before, "{self:?}: samples lost");
        for (place, sample) in (0..).zip(&record.samples) {
            assert_eq!((sample.round, sample.position), (0, place), "{self:?}");
        }
        for sample in &record.samples[..before] {
            // In so short a window nothing may arrive on a machine that others keep busy.
            let fine = matches!(sample.invalid, None | Some(Invalid::Load(_)));
            assert!(fine, "{self:?}: {sample:#?}");
        }
        assert!(!record.cut || ended.was_killed(), "{self:?}: {ended:#?}");
        run(wirecost(["report", "--json"]).arg(out)).expect_code(0);
        Some(record)
    }

    fn it_ended_as_it_should(&self, ended: &Ended, record: Option<&Record>) {
        let Victim::Agent(host) = self.victim else {
            assert!(ended.was_killed(), "{self:?}: {ended:#?}");
            return;
        };
        let agent = format!("agent of host {host}");
        let end = record.and_then(|record| record.end.as_ref());
        match (ended.status.code(), record, end.map(|end| end.outcome)) {
            // Nothing more was wanted of that agent; 3 where nothing arrived in a sample.
            (Some(0 | 3), Some(record), Some(Outcome::Complete)) => {
                assert_eq!(record.samples.len(), SAMPLES, "{self:?}");
            }
            (Some(3), Some(record), Some(Outcome::Failed)) => {
                let reason = end
                    .and_then(|end| end.reason.as_deref())
                    .unwrap_or_default();
                // A stopped agent that did not answer is as good a reason as a dead one.
                let blamed = |host: &&str| reason.contains(&format!("agent of host {host}"));
                let named = reason.contains(&agent) || self.stop.iter().any(blamed);
                assert!(named, "{self:?}: {reason}");
                let last = record.samples.last().expect("the sample in the air");
                assert!(last.invalid.is_some(), "{self:?}: {last:#?}");
            }
            (Some(3), None, None) => assert!(ended.stderr.contains(&agent), "{self:?}: {ended:#?}"),
            _ => panic!("{self:?}: {ended:#?}, {end:?}"),
        }
    }
}

/// Makes attempts, some at a time, until enough of them hit something, and returns those that did.
fn in_parallel(
    attempts: &[Attempt<'_>],
    enough: usize,
    (place, plan): (&TestDir, &Path),
) -> Vec<(Victim, Hit)> {
    let next = AtomicUsize::new(0);
    let hits = Mutex::new(Vec::new());
    // Threads are in the namespaces of the one that starts them.
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                let _lock = already_locked();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(attempt) = attempts.get(index) else {
                        return;
                    };
                    let name = format!("run-{index}");
                    let hit = attempt.make(place, plan, &name);
                    // A thousand records are not kept.
                    let _ = fs::remove_dir_all(place.path().join(name));
                    let mut hits = hits.lock().expect("no panic");
                    hits.extend(hit.map(|hit| (attempt.victim, hit)));
                    if hits.len() >= enough {
                        return;
                    }
                }
            });
        }
    });
    hits.into_inner().expect("no panic")
}

/// What a user has of their own: a named namespace with devices in it, and a process.
struct OfTheUser {
    namespace: String,
    process: Running,
    _made: Namespaces,
}

impl OfTheUser {
    fn new() -> Self {
        let namespace = format!("wctest-{}", std::process::id());
        let this = Self {
            _made: Namespaces::new(&[&namespace]),
            process: Running::start(Command::new("sleep").arg("600")),
            namespace,
        };
        let inside = |arguments: &[&str]| ip(&[&["-n", &this.namespace], arguments].concat());
        inside(&[
            "link", "add", "left0", "type", "veth", "peer", "name", "right0",
        ]);
        let vxlan = [
            "id",
            "42",
            "local",
            "192.0.2.1",
            "remote",
            "192.0.2.2",
            "dstport",
            "4789",
        ];
        inside(&[&["link", "add", "user0", "type", "vxlan"][..], &vxlan].concat());
        for device in ["lo", "left0", "right0", "user0"] {
            inside(&["link", "set", device, "up"]);
        }
        this
    }

    /// Everything that a run could have left in, or taken from, this test's namespace and theirs.
    fn surroundings(&self) -> [String; 4] {
        let mounts = fs::read_to_string("/proc/thread-self/mountinfo").expect("mounts");
        let namespaces: Vec<&str> = mounts
            .lines()
            .filter(|line| line.contains(" - nsfs "))
            // Another test's goes with its name, here too.
            .filter(|line| !line.contains(" /run/netns/") || line.contains(&self.namespace))
            .collect();
        [
            ip(&["netns", "list"]),
            namespaces.join("\n"),
            ip(&["-o", "link"]),
            ip(&["-n", &self.namespace, "-o", "-d", "link"]),
        ]
    }
}

#[track_caller]
fn ip(arguments: &[&str]) -> String {
    let ended = run(Command::new("ip").args(arguments));
    ended.expect_code(0);
    ended.stdout
}

#[test]
fn whatever_is_killed_in_whatever_phase_nothing_is_left_and_nothing_is_lost() {
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    leave_the_machine();
    let mut user = OfTheUser::new();
    let place = TestDir::new();
    let plan: PathBuf = place.plan(PLAN);
    let surroundings = user.surroundings();
    let schedule = Schedule::measure(&place, &plan);
    println!(
        "an uninterrupted run takes {:.0} ms",
        schedule.whole.as_secs_f64() * 1e3
    );

    let attempt = |victim, when| Attempt {
        schedule: &schedule,
        victim,
        when,
        stop: &[],
        newest: true,
    };
    let part = |index: u32, of: u32| When::After(schedule.whole * (2 * index + 1) / (2 * of));
    let in_turn = |index: u32| VICTIMS[index as usize % VICTIMS.len()];
    let mut attempts: Vec<Attempt<'_>> = (0..SWEEP)
        .map(|index| Attempt {
            newest: index / 4 % 2 == 0,
            ..attempt(in_turn(index), part(index, SWEEP))
        })
        .collect();
    // What takes little of a run's time, a sweep may miss.
    attempts.extend((0..8).map(|index| attempt(in_turn(index), When::Written(index as usize / 4))));
    attempts.extend((0..8).map(|index| attempt(in_turn(index), When::Written(SAMPLES))));
    attempts.extend((0..8).map(|index| {
        let loads = index as usize / 4 + 1;
        attempt(in_turn(index), When::Loading(loads))
    }));
    // Stopped agents cannot end themselves.
    attempts.extend((0..8).map(|index| {
        let stop: &[&str] = [&["a", "b"][..], &["b"]][index as usize % 2];
        Attempt {
            stop,
            ..attempt(Victim::Controller, part(index, 8))
        }
    }));
    attempts.push(Attempt {
        stop: &["b"],
        ..attempt(Victim::Agent("a"), part(1, 2))
    });

    let mut hits: BTreeMap<Victim, BTreeMap<Phase, u32>> = BTreeMap::new();
    let (mut number, mut cleaned) = (0, 0);
    for (victim, hit) in in_parallel(&attempts, attempts.len(), (&place, &plan)) {
        *hits
            .entry(victim)
            .or_default()
            .entry(hit.phase)
            .or_default() += 1;
        number += 1;
        cleaned += u32::from(hit.cleaned);
    }

    println!(
        "{number} kills of {} attempts, `wirecost clean` needed {cleaned} times",
        attempts.len()
    );
    for (victim, phases) in &hits {
        println!("  {victim:?}: {phases:?}");
    }
    assert!(number >= AT_LEAST, "{number} kills hit something");
    // The phases are estimated; warm-up and window follow one another in a time that a busy machine makes a small part.
    for either in [
        &[Phase::Build][..],
        &[Phase::Proof],
        &[Phase::WarmUp, Phase::Window],
        &[Phase::TearDown],
    ] {
        let is_hit = |phase| hits.values().any(|phases| phases.contains_key(phase));
        assert!(either.iter().any(is_hit), "{either:?}: never hit");
    }
    assert_eq!(user.surroundings(), surroundings);
    assert!(
        user.process.ended().is_none(),
        "the user's own process was ended"
    );
}

fn kills() -> Option<usize> {
    std::env::var(KILLS).ok()?.parse().ok()
}

/// Random numbers below a limit; their seed is printed.
fn random() -> impl FnMut(u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = now.expect("after 1970").as_nanos() as u64;
    println!("seed {seed}");
    let mut state = seed;
    // Knuth's constants of a linear congruential generator (TAOCP 3.3.4); its high bits are random enough.
    move |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    }
}

/// Kills at random moments, a number of them; some of those that are tried find nothing left to kill.
#[test]
fn kills_at_random_moments_leave_nothing() {
    let Some(kills) = kills().map(|kills| kills - kills / 4) else {
        println!("skipped: `make soak` sets {KILLS}");
        return;
    };
    if !is_root() {
        return;
    }
    let _lock = lock_shared();
    leave_the_machine();
    let mut user = OfTheUser::new();
    let place = TestDir::new();
    let plan: PathBuf = place.plan(PLAN);
    let surroundings = user.surroundings();
    let schedule = Schedule::measure(&place, &plan);
    let mut random = random();
    let attempts: Vec<Attempt<'_>> = (0..2 * kills)
        .map(|_| {
            let victim = VICTIMS[random(VICTIMS.len() as u64) as usize];
            let stops = matches!(victim, Victim::Controller) && random(4) == 0;
            Attempt {
                schedule: &schedule,
                victim,
                when: When::After(schedule.whole * random(1000) as u32 / 1000),
                stop: if stops { &["b"] } else { &[] },
                newest: random(2) == 0,
            }
        })
        .collect();
    let hits = in_parallel(&attempts, kills, (&place, &plan));
    let cleaned = hits.iter().filter(|(_, hit)| hit.cleaned).count();
    println!(
        "{} kills, `wirecost clean` needed {cleaned} times",
        hits.len()
    );
    assert!(hits.len() >= kills, "{} kills hit something", hits.len());
    assert_eq!(user.surroundings(), surroundings);
    assert!(user.process.ended().is_none(), "the user's process lives");
}
