//! Whether a reader of small messages asks if there is one (poll(2)) before it reads it, found out by trying both.
//!
//! Applications do either: those with one connection read, those that wait for several ask first. A reader that is
//! quicker than its sender has each message come as a segment of its own, an interrupt each; one that is slower, if by a
//! system call, leaves messages to queue at the sender, from where they come in full segments. Which carries more is the
//! machine's affair, by a factor of two (docs/loads.md has the measurements), and begins with a connection's first
//! messages: a window that has grown wide is narrow again only after long.

use crate::options::{Options, Receiving, Waiting};

/// How long each is tried in turn, nanoseconds. With a quarter of it the one before still decided how messages came.
const SLOT: u64 = 40_000_000;
/// The part of a slot that is not counted.
const SETTLING: u64 = SLOT / 3;
/// Slots, every other one of which asks.
const SLOTS: u32 = 4;
/// Reads from one look at the clock to the next.
const READS: u32 = 32;

/// One stream's reader.
#[derive(Debug)]
pub(crate) struct Asking {
    asks: bool,
    trial: Option<Trial>,
}

#[derive(Debug, Default)]
struct Trial {
    /// Since the last look at the clock.
    reads: u32,
    /// That are over.
    slots: u32,
    /// When this slot began, once something came.
    began: Option<u64>,
    /// When it had settled, and bytes read by then.
    settled: Option<(u64, u64)>,
    /// Bytes per nanosecond, summed over slots, of reading at once and of asking first.
    rates: [f64; 2],
}

impl Asking {
    /// Of a load's readers. Where a rate is given, or whole queues are read, there is nothing to find out.
    pub(crate) fn of(options: &Options) -> Self {
        let tries = options.has_small_segments()
            && options.rate.is_none()
            && options.receiving == Receiving::Copy
            && options.waiting == Waiting::Sleep;
        Self {
            // First: of the two it is the one that leaves the other its chance.
            asks: tries,
            trial: tries.then(Trial::default),
        }
    }

    /// Whether the next read of this flow asks first, where `bytes` were read so far.
    pub(crate) fn next(&mut self, flow: u32, bytes: u64, now: impl FnOnce() -> u64) -> bool {
        if let Some(trial) = &mut self.trial {
            trial.reads += 1;
            if trial.reads == READS {
                trial.reads = 0;
                if trial.slot_is_over(now(), bytes, self.asks) {
                    self.asks = !self.asks;
                }
                if trial.slots == SLOTS {
                    let [at_once, asking] = trial.rates;
                    self.asks = asking > at_once;
                    let what = if self.asks {
                        "asks before it reads"
                    } else {
                        "only reads"
                    };
                    tracing::debug!(
                        "flow {flow} {what}: it read {:.3} Gbit/s asking, {:.3} without",
                        gbit_s(asking),
                        gbit_s(at_once)
                    );
                    self.trial = None;
                }
            }
        }
        self.asks
    }
}

/// Of the sum of half of the slots.
fn gbit_s(bytes_per_ns: f64) -> f64 {
    bytes_per_ns * 8.0 * 2.0 / f64::from(SLOTS)
}

impl Trial {
    fn slot_is_over(&mut self, now: u64, bytes: u64, asks: bool) -> bool {
        let gone = now - *self.began.get_or_insert(now);
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
        self.began = Some(now);
        self.settled = None;
        true
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

    /// Reads of 128 bytes until it is known: of so many nanoseconds each, at once and where it asked first. Returns what
    /// was found, after how long, and how many reads asked.
    fn run(at_once: u64, asking: u64) -> (bool, u64, u64) {
        let mut reader = Asking::of(&small());
        let (mut now, mut bytes, mut asked) = (1, 0, 0);
        while reader.trial.is_some() {
            let asks = reader.next(0, bytes, || now);
            now += if asks { asking } else { at_once };
            bytes += 128;
            asked += u64::from(asks);
        }
        (reader.next(0, bytes, || now), now, asked)
    }

    proptest! {
        #[test]
        fn whichever_reads_more_is_kept(at_once in 200u64..20_000_000, asking in 200u64..20_000_000) {
            prop_assume!(at_once.abs_diff(asking) * 50 > at_once);
            let (found, took, asked) = run(at_once, asking);
            prop_assert_eq!(found, asking < at_once);
            prop_assert!(asked > 0);
            // A slot ends with the look that finds it over, and a look settles or ends it.
            let look = u64::from(READS) * at_once.max(asking);
            prop_assert!(took <= 1 + u64::from(SLOTS) * (SLOT + 2 * look) + look, "{}", took);
        }
    }

    #[test]
    fn both_have_had_half_of_the_time() {
        let (_, took, asked) = run(1_000, 1_000);
        let half = took as f64 / 2_000.0;
        assert!(
            (asked as f64 / half - 1.0).abs() < 0.01,
            "{asked} of {took}"
        );
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
            let asked = (0..200_000_u64).any(|time| reader.next(0, time, || time * 1_000));
            assert!(!asked, "{options:?}");
        }
    }
}
