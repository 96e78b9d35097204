//! The distance of two cores: how long a cache line takes from one to the other and back.
//!
//! Why: everything that one host of a lab hands to the other goes that way. In a virtual machine it changes by itself,
//! when the hypervisor moves a core (to one that shares a cache or does not, it seems); docs/facts.md has what that does.

use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::pin_to;

/// Round trips that are timed together, and how often: the least counts, since whatever else runs there only adds.
const TURNS: u32 = 500;
const BATCHES: u32 = 8;
/// A core that others do not let go for so long.
const PATIENCE: Duration = Duration::from_secs(1);
/// Looks at the line between two at the clock.
const LOOKS: u32 = 10_000;

/// Alone in its cache line, and in the one that is fetched beside it.
#[repr(align(128))]
struct Line(AtomicU32);

/// One end of the exchange.
struct End<'a> {
    line: &'a AtomicU32,
    /// The other end has given up.
    off: &'a AtomicBool,
    until: Instant,
}

impl End<'_> {
    /// Waits for a number; `false` where it does not come.
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

    /// Sends the line back each time, as often as there are turns.
    fn answer(&self) {
        for turn in 0..BATCHES * TURNS {
            if !self.await_turn(2 * turn + 1) {
                return;
            }
            self.line.store(2 * turn + 2, Ordering::Release);
        }
    }

    /// The shortest batch.
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

/// Nanoseconds that a cache line takes from core `a` to core `b` and back; some 2 ms are spent on it. `None` where they are
/// one core.
///
/// # Errors
/// A core that this thread may not use, or `TimedOut` where others did not let one go for a second.
pub fn line_round_trip_ns(a: u32, b: u32) -> io::Result<Option<f64>> {
    if a == b {
        return Ok(None);
    }
    let (line, off) = (Line(AtomicU32::new(0)), AtomicBool::new(false));
    let end = End {
        line: &line.0,
        off: &off,
        until: Instant::now() + PATIENCE,
    };
    // A thread that cannot be pinned has the other not wait for it.
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
        let began = Instant::now();
        let here = allowed_cpus().expect("cores")[0];
        for (a, b) in [(here, 1023), (1023, here)] {
            assert!(line_round_trip_ns(a, b).is_err());
        }
        assert!(began.elapsed() < PATIENCE);
    }
}
