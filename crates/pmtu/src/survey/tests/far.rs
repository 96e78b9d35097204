//! Surveys of paths that are far, slow, unsteady or policed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::config::FAR_PATIENCE;

const MS: Duration = Duration::from_millis(1);

/// What stands in the way.
#[derive(Debug, Clone, Copy)]
enum Narrow {
    Nothing,
    /// A queue that leaves at a rate, after a burst: bytes per second, bytes of burst, bytes that may wait.
    Shaper(f64, f64, f64),
    /// A bucket: bytes per second, bytes it holds; what finds too little in it is dropped.
    Policer(f64, f64),
}

#[derive(Debug, Clone)]
struct Far {
    mtu: u32,
    local_mtu: u32,
    round_trip: Duration,
    /// Up to so much more, at random: it reorders.
    jitter: Duration,
    loss: f64,
    duplicate: f64,
    narrow: Narrow,
    /// What leaves within this time waits for its end: for a neighbour to be resolved, for a host that does not run.
    held: Range<Duration>,
    seed: u64,
}

/// A survey's answers, and what it did to the path.
struct Ran {
    result: SurveyResult,
    /// Datagrams that a full queue or an empty bucket dropped.
    dropped: u32,
}

/// The state of what stands in the way.
struct Gate {
    narrow: Narrow,
    tokens: f64,
    filled: Duration,
    idle_at: Duration,
}

impl Gate {
    fn new(narrow: Narrow) -> Self {
        Self {
            narrow,
            tokens: f64::MAX,
            filled: Duration::ZERO,
            idle_at: Duration::ZERO,
        }
    }

    fn fill(&mut self, rate: f64, burst: f64, now: Duration) {
        let earned = rate * now.saturating_sub(self.filled).as_secs_f64();
        self.tokens = (self.tokens + earned).min(burst);
        self.filled = now;
    }

    /// When a datagram leaves; `None`: it is dropped.
    fn passes(&mut self, size: f64, now: Duration) -> Option<Duration> {
        match self.narrow {
            Narrow::Nothing => Some(now),
            Narrow::Policer(rate, burst) => {
                self.fill(rate, burst, now);
                let fits = self.tokens >= size;
                self.tokens -= if fits { size } else { 0.0 };
                fits.then_some(now)
            }
            Narrow::Shaper(rate, burst, room) => {
                let waits = self.idle_at.saturating_sub(now).as_secs_f64() * rate;
                if waits + size > room {
                    return None;
                }
                if waits == 0.0 {
                    self.fill(rate, burst, now);
                    self.idle_at = now;
                }
                let lacks = (size - self.tokens).max(0.0);
                self.tokens = (self.tokens - size).max(0.0);
                self.idle_at += Duration::from_secs_f64(lacks / rate);
                self.filled = self.idle_at;
                Some(self.idle_at)
            }
        }
    }
}

impl Far {
    fn new(mtu: u32, round_trip: Duration) -> Self {
        Self {
            mtu,
            local_mtu: mtu,
            round_trip,
            jitter: Duration::ZERO,
            loss: 0.0,
            duplicate: 0.0,
            narrow: Narrow::Nothing,
            held: Duration::ZERO..Duration::ZERO,
            seed: 3,
        }
    }

    /// How much is lost, counted when nothing else is on the way.
    fn counted(&self) -> SurveyResult {
        let question = SurveyRequest {
            expect: Some(128),
            count: true,
            ..self.question(16)
        };
        self.run(question).result
    }

    fn survey(&self, count: u32) -> Ran {
        self.run(self.question(count))
    }

    fn question(&self, count: u32) -> SurveyRequest {
        SurveyRequest {
            high: self.local_mtu + 1,
            config: Config {
                patience: FAR_PATIENCE,
                ..Config::default()
            },
            ..flows(count)
        }
    }

    fn run(&self, question: SurveyRequest) -> Ran {
        let mut survey = Survey::new(question);
        let mut random = Random(self.seed);
        let mut flight = BinaryHeap::new();
        let mut gate = Gate::new(self.narrow);
        let mut now = Duration::ZERO;
        let mut dropped = 0;
        for _ in 0..2_000_000 {
            while let Some(FlowProbe { flow, probe }) = survey.poll_transmit(now) {
                if probe.size > self.local_mtu {
                    survey.on_send_refused(flow, probe.id, Some(self.local_mtu));
                    continue;
                }
                let Some(leaves) = gate.passes(f64::from(probe.size), now) else {
                    dropped += 1;
                    continue;
                };
                let leaves = if self.held.contains(&leaves) {
                    self.held.end
                } else {
                    leaves
                };
                let lost = random.happens(self.loss) || random.happens(self.loss);
                if lost || probe.size > self.mtu {
                    continue;
                }
                for _ in 0..=usize::from(random.happens(self.duplicate)) {
                    let at = leaves + self.round_trip + self.jitter.mul_f64(random.next());
                    flight.push(Reverse((at, flow, probe.id)));
                }
            }
            if let Some(result) = survey.result() {
                return Ran { result, dropped };
            }
            let timeout = survey.next_timeout().expect("a timeout while undecided");
            match flight.peek() {
                Some(&Reverse((at, flow, id))) if at <= timeout => {
                    flight.pop();
                    now = now.max(at);
                    survey.on_arrived(flow, id, Arrival::Whole, now);
                }
                _ => now = now.max(timeout),
            }
        }
        panic!("it does not end");
    }

    /// Every flow carries what this host sends, nothing is said to be lost, and it takes so long at most.
    #[track_caller]
    fn is_healthy_within(&self, limit: Duration) {
        let Ran { result, dropped } = self.survey(16);
        println!(
            "{self:?}: {:?}, {dropped} of {} dropped, {:.0} kB/s",
            result.took,
            result.probes,
            result.bytes_per_second / 1e3
        );
        for answer in &result.outcomes {
            let limit = Limit::Device { mtu: self.mtu };
            let carries = Outcome::Carries {
                mtu: self.mtu,
                limit,
            };
            assert_eq!(answer.outcome, carries, "{self:?} flow {}", answer.flow);
        }
        if result.missing > 0 {
            let counted = self.counted();
            assert_eq!((counted.awaited, counted.missing), (300, 0), "{self:?}");
        }
        assert!(result.took < limit, "{self:?}: {:?}", result.took);
    }
}

#[test]
fn a_healthy_path_of_up_to_three_seconds_takes_some_round_trips() {
    for mtu in [1500, 9000] {
        for round_trip in [0, 1, 10, 50, 100, 300, 900, 1500, 3000] {
            let round_trip = MS * round_trip;
            Far::new(mtu, round_trip).is_healthy_within(round_trip * 3 + MS * 500);
        }
    }
}

/// With the patience for near ends flows are given up before the first answer, and taken up again.
#[test]
fn an_end_that_is_farther_than_was_thought_is_asked_again() {
    for round_trip in [750, 850, 900, 950] {
        let path = Far::new(9000, MS * round_trip);
        let question = SurveyRequest {
            config: Config::default(),
            ..path.question(16)
        };
        let result = path.run(question).result;
        let dead = result.undecided().len();
        assert!([0, 16].contains(&dead), "{round_trip} ms: {dead} flows");
    }
}

#[test]
fn jitter_reordering_and_duplicates_are_no_loss() {
    for (round_trip, jitter) in [(1, 1), (10, 20), (20, 8), (300, 200), (1, 300)] {
        for seed in 0..20 {
            let path = Far {
                jitter: MS * jitter,
                duplicate: 0.05,
                seed,
                ..Far::new(9000, MS * round_trip)
            };
            path.is_healthy_within(MS * 4000);
        }
    }
}

/// Duplicate address detection takes a second or two, and what is sent meanwhile is answered as late; a busy machine
/// does not run the other end for a while. Nothing of that is the path's round trip, and no later round waits as long.
#[test]
fn what_was_held_once_is_no_reason_to_wait_as_long_again() {
    for held in [
        Duration::ZERO..MS * 1000,
        Duration::ZERO..MS * 2000,
        MS * 5..MS * 400,
        MS * 40..MS * 900,
        MS * 150..MS * 1000,
    ] {
        let path = Far {
            local_mtu: 9000,
            held: held.clone(),
            ..Far::new(1500, MS / 5)
        };
        let Ran { result, .. } = path.survey(16);
        println!("{held:?}: {:?}, wait {:?}", result.took, result.wait);
        assert_eq!(result.mtu(), Some(1500), "{held:?}");
        assert!(result.undecided().is_empty(), "{held:?}");
        let limit = held.end + MS * 1000;
        assert!(result.took < limit, "{held:?}: {:?}", result.took);
        assert!(result.wait < MS * 100, "{held:?}: {:?}", result.wait);
    }
}

/// A black hole costs rounds of lost probes: each is over when the last of its probes is answered, and not a multiple
/// of the first round trip later.
#[test]
fn a_round_of_a_far_black_hole_takes_little_more_than_a_round_trip() {
    for seconds in [1, 3] {
        let path = Far {
            local_mtu: 9000,
            ..Far::new(1500, MS * 1000 * seconds)
        };
        let Ran { result, .. } = path.survey(16);
        assert_eq!(result.mtu(), Some(1500));
        let limit = MS * 1000 * seconds * 8 + MS * 1000;
        assert!(result.took < limit, "{seconds} s: {:?}", result.took);
    }
}

/// At 1 Mbit/s 5 s and some round trips at most.
#[test]
fn behind_a_shaper_nothing_is_lost_to_the_check_that_is_told() {
    for (rate, burst, latency) in [
        (125e3, 10e3, 0.02),
        (125e3, 10e3, 0.4),
        (625e3, 3e3, 0.05),
        (1.25e6, 10e3, 0.02),
    ] {
        for mtu in [1500, 9000] {
            for round_trip in [0, 20, 300] {
                let path = Far {
                    narrow: Narrow::Shaper(rate, burst, burst + rate * latency),
                    ..Far::new(mtu, MS * round_trip + MS / 5)
                };
                path.is_healthy_within(MS * 5000 + MS * round_trip * 6);
            }
        }
    }
}

#[test]
fn behind_a_policer_nothing_is_lost_to_the_check_that_is_told() {
    for (rate, burst) in [
        (125e3, 10e3),
        (250e3, 15e3),
        (1.25e6, 10e3),
        (1.25e6, 100e3),
    ] {
        for mtu in [1500, 9000] {
            for round_trip in [0, 20, 300] {
                let path = Far {
                    narrow: Narrow::Policer(rate, burst),
                    ..Far::new(mtu, MS * round_trip + MS / 5)
                };
                path.is_healthy_within(MS * 5000 + MS * round_trip * 10);
            }
        }
    }
}

#[test]
fn loss_is_told_as_it_is() {
    for (loss, round_trip) in [(0.01, 1), (0.03, 20), (0.05, 20), (0.05, 300), (0.2, 20)] {
        for seed in 0..10 {
            let path = Far {
                loss,
                seed,
                ..Far::new(9000, MS * round_trip)
            };
            let result = path.survey(16).result;
            println!("{loss} {round_trip} ms: {:?}", result.took);
            assert!(
                result.undecided().is_empty(),
                "{path:?}: {:?}",
                result.outcomes
            );
            assert_eq!(result.mtu(), Some(9000), "{path:?}");
            let real = 1.0 - (1.0 - loss) * (1.0 - loss);
            let result = path.counted();
            assert_eq!(result.awaited, 300, "{path:?}");
            let share = f64::from(result.missing) / f64::from(result.awaited);
            // Four standard deviations of a share of 300.
            let off = 4.0 * (real * (1.0 - real) / 300.0).sqrt();
            assert!((share - real).abs() < off, "{path:?}: {share}");
        }
    }
}

#[test]
fn a_black_hole_far_away_or_behind_a_shaper_is_found() {
    let slow = Narrow::Shaper(1.25e6, 10e3, 35e3);
    for (round_trip, narrow, loss) in [
        (300, Narrow::Nothing, 0.0),
        (1000, Narrow::Nothing, 0.0),
        (3000, Narrow::Nothing, 0.0),
        (20, slow, 0.0),
        (20, Narrow::Policer(1.25e6, 20e3), 0.0),
        (300, Narrow::Nothing, 0.05),
    ] {
        let path = Far {
            local_mtu: 9000,
            narrow,
            loss,
            ..Far::new(8950, MS * round_trip)
        };
        let Ran { result, dropped } = path.survey(16);
        println!(
            "{path:?}: {:?}, {dropped} of {}",
            result.took, result.probes
        );
        for answer in &result.outcomes {
            let told = Outcome::Carries {
                mtu: 8950,
                limit: Limit::BlackHole,
            };
            assert_eq!(answer.outcome, told, "{path:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Wrong is what must not be, whatever is far, slow, lost, reordered or policed.
    #[test]
    fn no_path_is_said_to_carry_less_than_it_does(
        mtu in 600u32..9217,
        spare in 0u32..600,
        round_trip in 0u32..3000,
        jitter in 0u32..300,
        loss in 0.0..0.1,
        duplicate in 0.0..0.2,
        rate in 125e3..5e6,
        burst in 10e3..200e3,
        narrow in 0u8..3,
        seed: u64,
    ) {
        let path = Far {
            local_mtu: mtu + spare,
            jitter: MS * jitter,
            loss,
            duplicate,
            narrow: match narrow {
                0 => Narrow::Nothing,
                1 => Narrow::Shaper(rate, burst, burst + rate * 0.02),
                _ => Narrow::Policer(rate, burst),
            },
            seed,
            ..Far::new(mtu, MS * round_trip + MS / 5)
        };
        for answer in &path.survey(8).result.outcomes {
            match &answer.outcome {
                // Nothing at all where the budget of datagrams ends before an answer to any size.
                Outcome::CannotTell { at_least, .. } => {
                    prop_assert!(at_least.is_none_or(|passes| passes <= mtu), "{answer:?}");
                }
                told => prop_assert_eq!(told.mtu(), Some(mtu)),
            }
        }
    }
}
