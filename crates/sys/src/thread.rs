//! Times of a thread of this process: on a core, and waiting for one; the rest of the time it slept.

use std::fs;
use std::io;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;

/// The calling thread's id, as /proc/self/task names it.
pub fn current() -> u32 {
    gettid().as_raw().cast_unsigned()
}

/// A thread's times since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTimes {
    /// On a core, in user and kernel mode.
    pub on_core: Duration,
    /// Runnable, waiting for a core (/proc/PID/task/TID/schedstat); zero where the kernel does not count it.
    pub runnable: Duration,
}

/// Reads the times of a living thread of this process.
///
/// The time on a core is the thread's CPU clock (`CLOCK_THREAD_CPUTIME_ID` of that thread), exact to the nanosecond.
///
/// # Errors
/// `EINVAL` where the thread has ended.
pub fn times(tid: u32) -> io::Result<ThreadTimes> {
    // A thread's CPU clock by number: include/linux/posix-timers_types.h, make_thread_cpuclock; 2 is CPUCLOCK_SCHED,
    // 4 the per-thread bit.
    let clock = ClockId::from_raw((!tid.cast_signed() << 3) | 6);
    let on_core = clock_gettime(clock)?;
    let runnable = fs::read_to_string(format!("/proc/self/task/{tid}/schedstat"))
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .map_or(Duration::ZERO, Duration::from_nanos);
    Ok(ThreadTimes {
        on_core: Duration::from_nanos(on_core.num_nanoseconds().cast_unsigned()),
        runnable,
    })
}

/// Makes the calling thread's timers expire when they are due, and not up to 50 us later (`PR_SET_TIMERSLACK`).
pub fn exact_timers() -> io::Result<()> {
    Ok(prctl::set_timerslack(1)?)
}

/// Raises the soft limit on open descriptors of this process to `wanted`, or as near as the hard limit allows
/// (`RLIMIT_NOFILE`), and returns it. Never lowers it.
pub fn raise_descriptor_limit(wanted: u64) -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let target = wanted.min(hard);
    if target <= soft {
        return Ok(soft);
    }
    setrlimit(Resource::RLIMIT_NOFILE, target, hard)?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_is_seen_from_another() {
        let (tell, told) = std::sync::mpsc::channel();
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            let mut sum = 0u64;
            while times(current()).unwrap().on_core < Duration::from_millis(5) {
                sum = std::hint::black_box(sum + 1);
            }
            tell.send(current()).unwrap();
            let _ = wait.recv();
        });
        let tid = told.recv().unwrap();
        assert!(times(tid).unwrap().on_core >= Duration::from_millis(5));
        drop(release);
        worker.join().unwrap();
    }

    #[test]
    fn the_descriptor_limit_is_never_lowered() {
        let before = raise_descriptor_limit(0).unwrap();
        assert_eq!(raise_descriptor_limit(before - 1).unwrap(), before);
        assert!(raise_descriptor_limit(before + 1).unwrap() >= before);
    }
}
