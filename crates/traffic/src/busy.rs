//! How busy a load's own threads were, and whether they and not the path were the limit.

use wirecost_model::end_window::ThreadWindow;

use crate::snapshot::ThreadSnapshot;

/// A thread that slept for less than this share of a window never waited for its sockets: a wake-up and the look
/// around it take about as much in a load that is limited elsewhere a thousand times a second.
const NEVER_WAITED: f64 = 0.05;
/// Likewise for a thread that spins: the share of its looks that found nothing to do.
const NEVER_IDLE: f64 = 0.01;
/// And where such a thread was kept from a processor for more than this share of the window, by others that spin: what
/// came meanwhile waited for it.
const KEPT: f64 = 0.2;

/// One thread over a window of so many seconds. One that began within it had used nothing before; one that never did
/// counts as one that slept.
pub(crate) fn between(
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
    let looks = after.looks.saturating_sub(before.looks);
    let idle = after.idle.saturating_sub(before.idle);
    ThreadWindow {
        busy,
        runnable,
        idle_looks: (looks > 0).then(|| idle as f64 / looks as f64),
    }
}

/// Whether a thread had something to do all the time.
fn never_waited(thread: &ThreadWindow) -> bool {
    match thread.idle_looks {
        Some(idle) => idle < NEVER_IDLE || thread.runnable > KEPT,
        None => thread.slept() < NEVER_WAITED,
    }
}

/// Whether each of them had something to do all the time.
pub(crate) fn generator_bound(threads: &[ThreadWindow]) -> bool {
    !threads.is_empty() && threads.iter().all(never_waited)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wirecost_sys::thread::ThreadTimes;

    use super::*;

    fn at(on_core_ms: u64, runnable_ms: u64, looks: u64, idle: u64) -> ThreadSnapshot {
        ThreadSnapshot {
            times: Some(ThreadTimes {
                on_core: Duration::from_millis(on_core_ms),
                runnable: Duration::from_millis(runnable_ms),
            }),
            looks,
            idle,
        }
    }

    fn over_a_second(after: ThreadSnapshot) -> ThreadWindow {
        between(&at(0, 0, 0, 0), &after, 1.0)
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
        // Unless it had to share its core.
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
            looks: 0,
            idle: 0,
        };
        assert!(!never_waited(&between(&none, &none, 1.0)));
        assert!(never_waited(&between(&none, &at(990, 0, 0, 0), 1.0)));
    }
}
