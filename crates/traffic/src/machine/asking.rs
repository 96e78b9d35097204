//! Whether a reader of small messages asks if there is one (poll(2)) before it reads it, found out by trying both.
//!
//! Applications do either: those with one connection read, those that wait for several ask first. A reader that is
//! quicker than its sender has each message come as a segment of its own, an interrupt each; one that is slower, if by a
//! system call, leaves messages to queue at the sender, from where they come in full segments. Which carries more is the
//! machine's affair, by a factor of two (docs/loads.md has the measurements).
//!
//! Either state outlives what led to it. A reader that asks may never get a queue, so it stands still for a moment before
//! it is judged; one that stops asking lives on the queue that it found, longer than a trial may last, so it is watched.

use std::time::Duration;

use crate::options::{Options, Receiving, Waiting};

/// How long each is tried in turn, nanoseconds. With a quarter of it the one before still decided how messages came.
const SLOT: u64 = 40_000_000;
/// The part of a slot that is not counted.
const SETTLING: u64 = SLOT / 3;
/// Slots, every other one of which asks.
const SLOTS: u32 = 4;
/// Reads from one look at the clock to the next.
const READS: u32 = 32;
/// How long a reader stands still at the beginning of a slot in which it asks. With 5 ms the queue outlived the next slot
/// oftener, with none one connection in ten had no queue.
pub(crate) const GATHERING: Duration = Duration::from_millis(2);
/// What reading at once has to carry for it to be kept, of what asking did when both were tried.
const FALLEN: f64 = 0.75;
/// Trials of a flow: a path that comes and goes is not tried for ever.
const TRIALS: u32 = 5;

/// What a reader does before its next read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Nothing,
    Ask,
    /// It stands still for [`GATHERING`].
    Gather,
}

/// One stream's reader.
#[derive(Debug)]
pub(crate) struct Asking {
    asks: bool,
    /// Since the last look at the clock.
    reads: u32,
    /// That were begun.
    trials: u32,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Trying(Trial),
    /// Reads at once, as long as that carries what it did.
    Watching(Watch),
    Settled,
}

#[derive(Debug, Default)]
struct Trial {
    /// That are over.
    slots: u32,
    /// When this slot began, once something came.
    began: Option<u64>,
    /// When it had settled, and bytes read by then.
    settled: Option<(u64, u64)>,
    /// Bytes per nanosecond, summed over slots, of reading at once and of asking first.
    rates: [f64; 2],
}

#[derive(Debug)]
struct Watch {
    /// What asking carried, bytes per nanosecond.
    asking: f64,
    /// When a slot's time began, and bytes read by then.
    since: (u64, u64),
}

impl Asking {
    /// Of a load's readers. Where a rate is given, or whole queues are read, there is nothing to find out.
    pub(crate) fn of(options: &Options) -> Self {
        let tries = options.has_small_segments()
            && options.rate.is_none()
            && options.receiving == Receiving::Copy
            && options.waiting == Waiting::Sleep;
        let mut asking = Self {
            asks: false,
            reads: 0,
            trials: 0,
            phase: Phase::Settled,
        };
        if tries {
            asking.try_both();
        }
        asking
    }

    fn try_both(&mut self) {
        // First: of the two it is the one that leaves the other its chance.
        self.asks = true;
        self.trials += 1;
        self.phase = Phase::Trying(Trial::default());
    }

    /// What comes before the next read of this flow, of which `bytes` were read so far.
    pub(crate) fn next(&mut self, flow: u32, bytes: u64, now: impl FnOnce() -> u64) -> Before {
        if !matches!(self.phase, Phase::Settled) {
            self.reads += 1;
            if self.reads == READS {
                self.reads = 0;
                if self.look(flow, bytes, now()) {
                    return Before::Gather;
                }
            }
        }
        if self.asks {
            Before::Ask
        } else {
            Before::Nothing
        }
    }

    /// Whether it is to stand still.
    fn look(&mut self, flow: u32, bytes: u64, now: u64) -> bool {
        match &mut self.phase {
            Phase::Trying(trial) => {
                let Some(began) = trial.began else {
                    trial.began = Some(now);
                    return self.asks;
                };
                if trial.slot_is_over(began, now, bytes, self.asks) {
                    self.asks = !self.asks;
                }
                if trial.slots == SLOTS {
                    let rates = trial.rates.map(|sum| sum * 2.0 / f64::from(SLOTS));
                    self.decide(flow, rates, (now, bytes));
                }
            }
            Phase::Watching(watch) => {
                if watch.has_fallen(now, bytes) {
                    tracing::debug!(
                        "flow {flow} reads less than it did asking: both are tried again"
                    );
                    self.try_both();
                }
            }
            Phase::Settled => {}
        }
        false
    }

    /// After a trial: bytes per nanosecond of reading at once and of asking.
    fn decide(&mut self, flow: u32, [at_once, asking]: [f64; 2], since: (u64, u64)) {
        self.asks = asking > at_once;
        let what = if self.asks {
            "asks before it reads"
        } else {
            "only reads"
        };
        tracing::debug!(
            "flow {flow} {what}: it read {:.3} Gbit/s asking, {:.3} without",
            asking * 8.0,
            at_once * 8.0
        );
        self.phase = if self.asks || self.trials == TRIALS {
            Phase::Settled
        } else {
            Phase::Watching(Watch { asking, since })
        };
    }
}

impl Trial {
    fn slot_is_over(&mut self, began: u64, now: u64, bytes: u64, asks: bool) -> bool {
        let gone = now - began;
        let Some((then, before)) = self.settled else {
            if gone >= SETTLING {
                self.settled = Some((now, bytes));
            }
            return false;
        };
        if gone < SLOT || now == then {
            return false;
        }
        self.rates[usize::from(asks)] += (bytes - before) as f64 / (now - then) as f64;
        self.slots += 1;
        self.began = None;
        self.settled = None;
        true
    }
}

impl Watch {
    /// Looks once in the time of a slot.
    fn has_fallen(&mut self, now: u64, bytes: u64) -> bool {
        let (then, before) = self.since;
        let gone = now - then;
        if gone < SLOT {
            return false;
        }
        self.since = (now, bytes);
        ((bytes - before) as f64 / gone as f64) < FALLEN * self.asking
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::{Rate, Workload};

    fn small() -> Options {
        Options {
            nodelay: true,
            request: 128,
            ..Options::new(Workload::TcpStream, [0; 16])
        }
    }

    /// A reader of messages of 128 bytes, whose reads take so many nanoseconds each, at once and where it asks first.
    struct Reader {
        asking: Asking,
        now: u64,
        bytes: u64,
        /// Of which reads.
        asked: u64,
        /// How often it stood still.
        gathered: u32,
    }

    impl Reader {
        fn new() -> Self {
            Self {
                asking: Asking::of(&small()),
                now: 1,
                bytes: 0,
                asked: 0,
                gathered: 0,
            }
        }

        fn read(&mut self, at_once: u64, asking: u64) {
            self.now += match self.asking.next(0, self.bytes, || self.now) {
                Before::Nothing => at_once,
                Before::Ask => {
                    self.asked += 1;
                    asking
                }
                Before::Gather => {
                    self.gathered += 1;
                    GATHERING.as_nanos() as u64
                }
            };
            self.bytes += 128;
        }

        /// Reads until a trial is over.
        fn try_both(&mut self, at_once: u64, asking: u64) {
            while matches!(self.asking.phase, Phase::Trying(_)) {
                self.read(at_once, asking);
            }
        }

        /// Reads for so many slots' time, or until it tries both again.
        fn go_on(&mut self, slots: u64, at_once: u64, asking: u64) {
            let end = self.now + slots * SLOT;
            while self.now < end && !matches!(self.asking.phase, Phase::Trying(_)) {
                self.read(at_once, asking);
            }
        }
    }

    proptest! {
        #[test]
        fn whichever_reads_more_is_kept(at_once in 200u64..20_000_000, asking in 200u64..20_000_000) {
            prop_assume!(at_once.abs_diff(asking) * 50 > at_once);
            let mut reader = Reader::new();
            reader.try_both(at_once, asking);
            prop_assert_eq!(reader.asking.asks, asking < at_once);
            prop_assert!(reader.asked > 0);
            prop_assert_eq!(reader.gathered, SLOTS / 2);
            // Looks begin, settle and end a slot.
            let look = u64::from(READS) * at_once.max(asking) + GATHERING.as_nanos() as u64;
            prop_assert!(reader.now <= 1 + u64::from(SLOTS) * (SLOT + 3 * look) + look, "{}", reader.now);
            reader.go_on(10, at_once, asking);
            prop_assert!(!matches!(reader.asking.phase, Phase::Trying(_)), "nothing has changed");
        }
    }

    #[test]
    fn both_have_had_half_of_the_time() {
        let mut reader = Reader::new();
        reader.try_both(1_000, 1_000);
        // Standing still is the asking half's.
        let asking =
            reader.asked * 1_000 + u64::from(reader.gathered) * GATHERING.as_nanos() as u64;
        let share = asking as f64 / reader.now as f64;
        assert!(
            (share * 2.0 - 1.0).abs() < 0.01,
            "{asking} of {}",
            reader.now
        );
    }

    #[test]
    fn a_queue_that_does_not_last_has_both_tried_again() {
        let mut reader = Reader::new();
        reader.try_both(700, 1_000);
        assert!(!reader.asking.asks);
        reader.go_on(10, 1_300, 1_000);
        assert!(!reader.asking.asks, "a little less is no fall");
        reader.go_on(10, 2_000, 1_000);
        reader.try_both(2_000, 1_000);
        assert!(reader.asking.asks && matches!(reader.asking.phase, Phase::Settled));
    }

    #[test]
    fn a_path_that_comes_and_goes_is_not_tried_for_ever() {
        let mut reader = Reader::new();
        for trial in 1..=TRIALS {
            assert_eq!(reader.asking.trials, trial);
            reader.try_both(700, 1_000);
            reader.go_on(10, 5_000, 1_000);
        }
        assert!(matches!(reader.asking.phase, Phase::Settled) && !reader.asking.asks);
    }

    #[test]
    fn others_never_ask() {
        let large = Options {
            request: 64 << 10,
            ..small()
        };
        let with_delay = Options {
            nodelay: false,
            ..small()
        };
        let paced = Options {
            rate: Some(Rate::BitsPerSecond(1_000_000)),
            ..small()
        };
        let discarding = Options {
            receiving: Receiving::Discard,
            ..small()
        };
        let spinning = Options {
            waiting: Waiting::Spin,
            ..small()
        };
        for options in [large, with_delay, paced, discarding, spinning] {
            let mut reader = Asking::of(&options);
            let asked = (0..200_000_u64)
                .any(|time| reader.next(0, time, || time * 1_000) != Before::Nothing);
            assert!(!asked, "{options:?}");
        }
    }
}
