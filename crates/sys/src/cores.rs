//! Distance of two cores: how long a cache line takes from one to the other and back.
//!
//! Why: everything that one host of a lab passes to the other crosses this distance. In a virtual machine it changes
//! without notice, when the hypervisor moves a core (apparently to one that shares a cache or does not); docs/facts.md
//! describes the effect.

use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::pin_to;

/// Round trips per timed batch, and number of batches. The shortest batch counts, since other load only adds time.
const TURNS: u32 = 500;
const BATCHES: u32 = 8;
/// Time limit of the whole exchange: other tasks may keep a core busy.
const PATIENCE: Duration = Duration::from_secs(1);
/// Reads of the cache line between two readings of the clock.
const LOOKS: u32 = 10_000;

/// A number alone in its cache line, and in the adjacent line that is prefetched with it.
#[repr(align(128))]
struct Line(AtomicU32);

/// One end of the exchange of the cache line.
struct End<'a> {
    line: &'a AtomicU32,
    /// Set once either end has given up.
    off: &'a AtomicBool,
    until: Instant,
}

impl End<'_> {
    /// Spins until the cache line holds `turn`; `false` when time is up or the other end has given up.
    fn await_turn(&self, turn: u32) -> bool {
        loop {
            for _ in 0..LOOKS {
                if self.line.load(Ordering::Acquire) == turn {
                    return true;
                }
                spin_loop();
            }
            if self.off.load(Ordering::Relaxed) || Instant::now() > self.until {
                self.off.store(true, Ordering::Relaxed);
                return false;
            }
        }
    }

    /// Answers each turn of the other end with the next number.
    fn answer(&self) {
        for turn in 0..BATCHES * TURNS {
            if !self.await_turn(2 * turn + 1) {
                return;
            }
            self.line.store(2 * turn + 2, Ordering::Release);
        }
    }

    /// Duration of the shortest batch of [`TURNS`] round trips; `None` when an end has given up.
    fn ask(&self) -> Option<Duration> {
        let mut least = None;
        for batch in 0..BATCHES {
            let began = Instant::now();
            for turn in batch * TURNS..(batch + 1) * TURNS {
                self.line.store(2 * turn + 1, Ordering::Release);
                if !self.await_turn(2 * turn + 2) {
                    return None;
                }
            }
            let took = began.elapsed();
            least = Some(least.map_or(took, |least: Duration| least.min(took)));
        }
        least
    }
}

/// Nanoseconds that a cache line takes from core `a` to core `b` and back; measuring takes about 2 ms. `None` where
/// both are the same core.
///
/// # Errors
/// Fails where this thread may not run on one of the cores; `TimedOut` where other tasks kept a core busy for a second.
pub fn line_round_trip_ns(a: u32, b: u32) -> io::Result<Option<f64>> {
    round_trip_within(a, b, PATIENCE)
}

fn round_trip_within(a: u32, b: u32, patience: Duration) -> io::Result<Option<f64>> {
    if a == b {
        return Ok(None);
    }
    let (line, off) = (Line(AtomicU32::new(0)), AtomicBool::new(false));
    let end = End {
        line: &line.0,
        off: &off,
        until: Instant::now() + patience,
    };
    // A thread that cannot be pinned tells the other not to wait for it.
    let pinned = |cpu: u32| pin_to(&[cpu]).inspect_err(|_| off.store(true, Ordering::Relaxed));
    let least = thread::scope(|scope| {
        let answering = scope.spawn(|| pinned(b).map(|()| end.answer()));
        let asking = scope.spawn(|| pinned(a).map(|()| end.ask()));
        let ended = || io::Error::other("a thread that measured the cores ended");
        answering.join().map_err(|_| ended())??;
        asking.join().map_err(|_| ended())?
    })?;
    match least {
        Some(least) => Ok(Some(least.as_nanos() as f64 / f64::from(TURNS))),
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::process::allowed_cpus;

    use super::*;

    #[test]
    fn a_line_takes_some_time_between_two_cores_and_none_within_one() {
        let cpus = allowed_cpus().expect("cores");
        assert_eq!(
            line_round_trip_ns(cpus[0], cpus[0]).expect("one core"),
            None
        );
        if let [a, b, ..] = cpus[..] {
            // Both cores may be busy for a second, and not for twenty in a row.
            let took = (0..20).find_map(|_| match line_round_trip_ns(a, b) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => None,
                measured => Some(measured.expect("two cores").expect("two")),
            });
            let took = took.expect("a second in which both cores are free for it");
            // A light-nanosecond is 30 cm; whatever is longer than this was not the line.
            assert!((1.0..1e6).contains(&took), "{took} ns");
        }
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error_at_once() {
        // Longer than any machine is busy.
        let patience = Duration::from_mins(2);
        let began = Instant::now();
        let here = allowed_cpus().expect("cores")[0];
        for (a, b) in [(here, 1023), (1023, here)] {
            assert!(round_trip_within(a, b, patience).is_err());
        }
        assert!(began.elapsed() < patience);
    }
}
