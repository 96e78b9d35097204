//! CPU time of one wake-up. Below saturation, the CPU time of a load is this cost times the number of wake-ups.
//!
//! A thread that does nothing else is woken a few hundred times; the busy time of its core divided by that is the cost.
//! The core's other work, and the reading of its counters, is measured during an equally long sleep and subtracted. The
//! batch with the lowest cost counts: whatever else runs on the core only adds.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use wirecost_model::record::WakeupCost;
use wirecost_sys::priority;
use wirecost_sys::process::pin_to;
use wirecost_sys::thread::exact_timers;

use crate::idle::IdleTimes;

/// Wake-ups in one batch, and batches in one measurement.
const WAKEUPS: u32 = 200;
const BATCHES: u32 = 4;
/// Time between two wake-ups by a timer: far longer than a wake-up takes; four batches take less than a tenth of a
/// second.
const PERIOD: Duration = Duration::from_micros(100);

/// Measures the cost of a wake-up by a timer on the first of `cores`, and of one by another thread between the first
/// two. Takes a quarter of a second. `other_core_ns` is 0 where there is only one core. `None` where this thread may
/// not run on the cores, or where the cost could not be told from noise.
pub fn wakeup_cost(cores: &[u32]) -> Option<WakeupCost> {
    let timer_ns = cost(&cores[..1.min(cores.len())], by_timer)?;
    let other_core_ns = match cores {
        [one, other, ..] => cost(&[*one, *other], by_each_other)?,
        _ => 0,
    };
    Some(WakeupCost {
        timer_ns,
        other_core_ns,
    })
}

/// Busy time of all `cores` for each wake-up, nanoseconds. `work` causes wake-ups and returns their number.
fn cost(cores: &[u32], work: fn(&[u32]) -> Option<u32>) -> Option<u64> {
    of(&Busy::of(cores)?, cores, work)
}

fn of(busy: &Busy, cores: &[u32], work: fn(&[u32]) -> Option<u32>) -> Option<u64> {
    let first = *cores.first()?;
    thread::scope(|scope| {
        let loopers = busy.start(scope, cores);
        let measured = scope
            .spawn(|| {
                pin_to(&[first]).ok()?;
                busy.least(cores, work)
            })
            .join();
        loopers.stop();
        measured.ok()?
    })
}

/// How the busy time of a core is measured.
enum Busy {
    /// From its idle time in nanoseconds.
    Idle,
    /// From the loops of a thread of idle priority on the core: fewer loops mean that the core was busier.
    Loops(Vec<Looper>),
}

/// Loops counted on one core, in a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Looper {
    loops: AtomicU64,
    ended: AtomicBool,
}

/// The running loop threads; `stop` ends them.
struct Loopers<'a>(&'a [Looper]);

impl Loopers<'_> {
    fn stop(&self) {
        for looper in self.0 {
            looper.ended.store(true, Ordering::Relaxed);
        }
    }
}

impl Busy {
    fn of(cores: &[u32]) -> Option<Self> {
        if IdleTimes::open(cores).is_some() {
            return Some(Self::Idle);
        }
        (!cores.is_empty()).then(|| Self::Loops(cores.iter().map(|_| Looper::default()).collect()))
    }

    fn start<'a, 'scope>(
        &'a self,
        scope: &'scope thread::Scope<'scope, '_>,
        cores: &[u32],
    ) -> Loopers<'a>
    where
        'a: 'scope,
    {
        let Self::Loops(loopers) = self else {
            return Loopers(&[]);
        };
        for (looper, core) in loopers.iter().zip(cores.to_vec()) {
            scope.spawn(move || {
                if pin_to(&[core]).is_err() || priority::only_when_idle().is_err() {
                    return;
                }
                while !looper.ended.load(Ordering::Relaxed) {
                    (0..100).for_each(|_| spin_loop());
                    looper.loops.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Loopers(loopers)
    }

    /// Cost of a wake-up in the cheapest of some batches, less the lowest busy time while asleep, nanoseconds.
    fn least(&self, cores: &[u32], work: fn(&[u32]) -> Option<u32>) -> Option<u64> {
        exact_timers().ok()?;
        // The first batch is a warm-up.
        work(cores)?;
        let mut batches = Vec::new();
        for _ in 0..BATCHES {
            let (woken, wakeups) = self.during(cores, || work(cores))?;
            let (asleep, _) = self.during(cores, || {
                sleep(PERIOD * WAKEUPS);
                Some(0)
            })?;
            batches.push((woken, asleep, wakeups));
        }
        // The full rate is that of the fastest span asleep: nothing else ran on the cores then.
        let rate = |span: &Span| span.loops as f64 / span.seconds;
        let full = batches
            .iter()
            .map(|(_, asleep, _)| rate(asleep))
            .fold(0.0, f64::max);
        let share = |span: &Span| match self {
            Self::Idle => span.busy_s / span.seconds,
            Self::Loops(_) => cores.len() as f64 * (1.0 - rate(span) / full),
        };
        let shares: Vec<_> = batches
            .iter()
            .map(|(woken, asleep, wakeups)| Batch {
                woken: share(woken),
                asleep: share(asleep),
                period_s: woken.seconds / f64::from(*wakeups),
            })
            .collect();
        least_ns(&shares)
    }

    fn during(&self, cores: &[u32], work: impl FnOnce() -> Option<u32>) -> Option<(Span, u32)> {
        match self {
            Self::Idle => {
                let mut times = IdleTimes::open(cores)?;
                let (began, before) = times.read().ok()??;
                let wakeups = work()?;
                let (ended, after) = times.read().ok()??;
                let seconds = (ended - began).as_secs_f64();
                let idle: u64 = before
                    .iter()
                    .zip(&after)
                    .map(|((_, before), (_, after))| {
                        after.idle_ns - before.idle_ns + after.iowait_ns - before.iowait_ns
                    })
                    .sum();
                let busy_s = seconds * cores.len() as f64 - idle as f64 / 1e9;
                Some((
                    Span {
                        seconds,
                        busy_s,
                        loops: 0,
                    },
                    wakeups,
                ))
            }
            Self::Loops(loopers) => {
                let all = || {
                    loopers
                        .iter()
                        .map(|looper| looper.loops.load(Ordering::Relaxed))
                        .sum::<u64>()
                };
                let (began, before) = (Instant::now(), all());
                let wakeups = work()?;
                let loops = all() - before;
                let seconds = began.elapsed().as_secs_f64();
                Some((
                    Span {
                        seconds,
                        busy_s: 0.0,
                        loops,
                    },
                    wakeups,
                ))
            }
        }
    }
}

/// Length, busy time and loops of one batch.
struct Span {
    seconds: f64,
    busy_s: f64,
    loops: u64,
}

/// Number of cores busy while a thread was woken and while it slept, and the time between two wake-ups.
struct Batch {
    woken: f64,
    asleep: f64,
    period_s: f64,
}

/// Cost of a wake-up in the quietest of the batches, nanoseconds. `None` where other programs were busy in all of them.
fn least_ns(batches: &[Batch]) -> Option<u64> {
    let asleep = batches
        .iter()
        .map(|batch| batch.asleep)
        .fold(f64::INFINITY, f64::min);
    let least = batches
        .iter()
        .map(|batch| (batch.woken - asleep) * batch.period_s)
        .fold(f64::INFINITY, f64::min);
    (least > 0.0 && least.is_finite()).then_some((least * 1e9).round() as u64)
}

/// Sleeps until each period ends; returns how often the thread slept.
fn by_timer(_: &[u32]) -> Option<u32> {
    let began = Instant::now();
    let mut slept = 0;
    for turn in 1..=WAKEUPS {
        let left = (began + PERIOD * turn).saturating_duration_since(Instant::now());
        // A thread that wakes after the next one is due skips that one.
        if !left.is_zero() {
            sleep(left);
            slept += 1;
        }
    }
    (slept > 0).then_some(slept)
}

/// Two threads wake each other in turn; the calling thread runs on the first core.
fn by_each_other(cores: &[u32]) -> Option<u32> {
    let &[_, other, ..] = cores else { return None };
    let turn = AtomicU32::new(0);
    let await_turn = |odd: u32| {
        while turn.load(Ordering::Acquire) % 2 != odd && turn.load(Ordering::Relaxed) < WAKEUPS {
            thread::park();
        }
        turn.load(Ordering::Relaxed) < WAKEUPS
    };
    let here = thread::current();
    thread::scope(|scope| {
        let there = scope.spawn(|| {
            let pinned = pin_to(&[other]).is_ok();
            while pinned && await_turn(1) {
                turn.fetch_add(1, Ordering::Release);
                here.unpark();
            }
            turn.store(WAKEUPS, Ordering::Release);
            here.unpark();
            pinned
        });
        while await_turn(0) {
            turn.fetch_add(1, Ordering::Release);
            there.thread().unpark();
        }
        there.thread().unpark();
        there.join().ok()?.then_some(WAKEUPS)
    })
}

#[cfg(test)]
mod tests {
    use wirecost_sys::process::allowed_cpus;

    use super::*;

    fn batch(woken: f64, asleep: f64) -> Batch {
        Batch {
            woken,
            asleep,
            period_s: 1e-4,
        }
    }

    #[test]
    fn the_quietest_batch_counts_and_what_the_core_does_anyway_is_taken_off() {
        let disturbed = [batch(0.25, 0.9), batch(0.20, 0.02), batch(0.8, 0.05)];
        assert_eq!(least_ns(&disturbed), Some(18_000));
        assert_eq!(least_ns(&[batch(1.0, 1.0)]), None, "never quiet");
        assert_eq!(least_ns(&[]), None);
    }

    #[test]
    fn threads_wake_as_often_as_they_tell() {
        let cores = allowed_cpus().expect("cores");
        let woken = by_timer(&cores[..1]).expect("by its timer");
        assert!((1..=WAKEUPS).contains(&woken), "{woken}");
        if cores.len() > 1 {
            assert_eq!(by_each_other(&cores[..2]), Some(WAKEUPS));
            assert_eq!(by_each_other(&[cores[0], 1023]), None);
        }
    }

    #[test]
    fn a_wakeup_costs_less_than_a_tick_however_it_is_told() {
        let cores = allowed_cpus().expect("cores");
        // Beside other programs there may be no quiet batch, and then no figure.
        if let Some(found) = wakeup_cost(&cores) {
            assert!(found.timer_ns < 10_000_000, "{found:?}");
            assert_eq!(found.other_core_ns > 0, cores.len() > 1, "{found:?}");
        }
        // A loop of the lowest priority may get nothing of a busy core for one measurement.
        let has_looped = (0..50).any(|_| {
            let loops = Busy::Loops(vec![Looper::default()]);
            if let Some(found) = of(&loops, &cores[..1], by_timer) {
                assert!(found < 10_000_000, "{found} ns");
            }
            let Busy::Loops(loopers) = &loops else {
                unreachable!("made so above");
            };
            loopers[0].loops.load(Ordering::Relaxed) > 0
        });
        assert!(has_looped);
    }

    #[test]
    fn without_a_core_there_is_no_figure() {
        assert_eq!(wakeup_cost(&[]), None);
        assert_eq!(wakeup_cost(&[1023]), None);
    }
}
