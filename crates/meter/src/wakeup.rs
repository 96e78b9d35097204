//! What it costs a core to be woken: below saturation CPU is that, times how often it happens.
//!
//! A thread that does nothing is woken a few hundred times, and what its core was busy for is divided by that. What the
//! core does anyway, and what reading its counters takes, is measured beside it, asleep for as long, and taken off. Of some
//! batches the least counts: whatever else runs there only adds.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use wirecost_model::record::WakeupCost;
use wirecost_sys::priority;
use wirecost_sys::process::pin_to;
use wirecost_sys::thread::exact_timers;

use crate::idle::IdleTimes;

/// Times that a thread is woken in one batch, and how many batches.
const WAKEUPS: u32 = 200;
const BATCHES: u32 = 4;
/// From one to the next by a timer: far longer than it takes, and short enough for four batches in a tenth of a second.
const PERIOD: Duration = Duration::from_micros(100);

/// Measures on `cores`, the first for its timer, the first two for each other; it takes a quarter of a second.
/// `other_core_ns` is 0 where there is one core only. `None` where this thread may not use them, or where nothing could be
/// told from noise.
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

/// Nanoseconds that the cores together are busy for each of the wake-ups that `work` makes and tells.
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

/// How a core's busy time is told.
enum Busy {
    /// By its idle time in nanoseconds.
    Idle,
    /// By how much less a thread that runs when nothing else does gets done there.
    Loops(Vec<Looper>),
}

/// Loops of one core, in a cache line of its own.
#[repr(align(128))]
#[derive(Default)]
struct Looper {
    loops: AtomicU64,
    ended: AtomicBool,
}

/// Ends the loopers.
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

    /// The least of some batches, less the least of what the cores are busy for meanwhile.
    fn least(&self, cores: &[u32], work: fn(&[u32]) -> Option<u32>) -> Option<u64> {
        exact_timers().ok()?;
        // The first is to warm up.
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
        // Loops are known by their fastest only: nothing else ran then.
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

/// One batch.
struct Span {
    seconds: f64,
    busy_s: f64,
    loops: u64,
}

/// Cores that were busy while a thread was woken and while it slept, and the time from one wake-up to the next.
struct Batch {
    woken: f64,
    asleep: f64,
    period_s: f64,
}

/// What a wake-up takes by the quietest of the batches, nanoseconds. `None` where other programs were busy in all of them.
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

/// Sleeps again and again.
fn by_timer(_: &[u32]) -> Option<u32> {
    let began = Instant::now();
    let mut slept = 0;
    for turn in 1..=WAKEUPS {
        let left = (began + PERIOD * turn).saturating_duration_since(Instant::now());
        // Woken later than it is due for the next: that one does not happen.
        if !left.is_zero() {
            sleep(left);
            slept += 1;
        }
    }
    (slept > 0).then_some(slept)
}

/// Two threads wake each other in turns, the calling one on the first core.
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
        let loops = Busy::Loops(vec![Looper::default()]);
        if let Some(found) = of(&loops, &cores[..1], by_timer) {
            assert!(found < 10_000_000, "{found} ns");
        }
        let Busy::Loops(loopers) = &loops else {
            unreachable!("made so above");
        };
        assert!(loopers[0].loops.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn without_a_core_there_is_no_figure() {
        assert_eq!(wakeup_cost(&[]), None);
        assert_eq!(wakeup_cost(&[1023]), None);
    }
}
