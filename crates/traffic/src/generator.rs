//! How busy a load's own threads were, and whether they and not the path were the limit.

use wirecost_model::end_window::ThreadWindow;

use crate::snapshot::ThreadSnapshot;

/// Share of a window, 0..=1. A thread that slept for less never waited for its sockets: a thousand wake-ups a second
/// of a load that is limited elsewhere take about as much.
const NEVER_WAITED: f64 = 0.05;
/// Share of the polls of a spinning thread, 0..=1. If fewer found nothing to do, the thread was never idle.
const NEVER_IDLE: f64 = 0.01;
/// Share of a window, 0..=1. A spinning thread that other spinning threads preempted for longer counts as never idle:
/// data waited for it meanwhile.
const PREEMPTED: f64 = 0.2;

/// Load of one thread over a window of `seconds`. A thread that started within the window counts from zero; one that
/// never started counts as asleep.
pub(crate) fn thread_window(
    before: &ThreadSnapshot,
    after: &ThreadSnapshot,
    seconds: f64,
) -> ThreadWindow {
    let (busy, runnable) = match after.times {
        Some(after) if seconds > 0.0 => {
            let before = before.times.unwrap_or_default();
            (
                after.on_core.saturating_sub(before.on_core).as_secs_f64() / seconds,
                after.runnable.saturating_sub(before.runnable).as_secs_f64() / seconds,
            )
        }
        _ => (0.0, 0.0),
    };
    let polls = after.polls.saturating_sub(before.polls);
    let idle = after.idle_polls.saturating_sub(before.idle_polls);
    ThreadWindow {
        busy,
        runnable,
        idle_looks: (polls > 0).then(|| idle as f64 / polls as f64),
    }
}

/// Whether a thread always had something to do.
fn never_waited(thread: &ThreadWindow) -> bool {
    match thread.idle_looks {
        Some(idle) => idle < NEVER_IDLE || thread.runnable > PREEMPTED,
        None => thread.slept() < NEVER_WAITED,
    }
}

/// Whether all threads always had something to do.
pub(crate) fn generator_bound(threads: &[ThreadWindow]) -> bool {
    !threads.is_empty() && threads.iter().all(never_waited)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wirecost_sys::thread::ThreadTimes;

    use super::*;

    fn at(on_core_ms: u64, runnable_ms: u64, polls: u64, idle_polls: u64) -> ThreadSnapshot {
        ThreadSnapshot {
            times: Some(ThreadTimes {
                on_core: Duration::from_millis(on_core_ms),
                runnable: Duration::from_millis(runnable_ms),
            }),
            polls,
            idle_polls,
        }
    }

    fn over_a_second(after: ThreadSnapshot) -> ThreadWindow {
        thread_window(&at(0, 0, 0, 0), &after, 1.0)
    }

    #[test]
    fn a_thread_that_never_slept_was_the_limit_though_it_had_to_share_its_core() {
        assert!(never_waited(&over_a_second(at(970, 10, 0, 0))));
        assert!(never_waited(&over_a_second(at(500, 480, 0, 0))));
        assert!(!never_waited(&over_a_second(at(900, 40, 0, 0))));
    }

    #[test]
    fn a_thread_that_spins_is_judged_by_what_it_found() {
        assert!(never_waited(&over_a_second(at(1_000, 0, 1_000, 5))));
        assert!(!never_waited(&over_a_second(at(1_000, 0, 1_000, 900))));
        // Unless it was preempted.
        assert!(never_waited(&over_a_second(at(500, 500, 1_000, 900))));
    }

    #[test]
    fn a_load_is_generator_bound_when_all_of_its_threads_are() {
        let (full, half) = (
            over_a_second(at(990, 0, 0, 0)),
            over_a_second(at(500, 0, 0, 0)),
        );
        assert!(generator_bound(&[full, full]));
        assert!(!generator_bound(&[full, half]));
        assert!(!generator_bound(&[]));
    }

    #[test]
    fn a_thread_that_never_began_counts_as_one_that_slept_and_one_that_began_since_had_used_nothing()
     {
        let none = ThreadSnapshot {
            times: None,
            polls: 0,
            idle_polls: 0,
        };
        assert!(!never_waited(&thread_window(&none, &none, 1.0)));
        assert!(never_waited(&thread_window(&none, &at(990, 0, 0, 0), 1.0)));
    }
}
