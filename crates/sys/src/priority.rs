//! Priority of the calling thread: raised for a short task that must not queue behind hundreds of threads, or idle
//! only.

#![expect(
    unsafe_code,
    reason = "getpriority(2), setpriority(2) and sched_setscheduler(2) have no wrapper in nix"
)]

use std::io;

use nix::errno::Errno;

/// Highest priority as a nice value (sched(7)): 87 times the share of a thread of nice value 0.
const HIGHEST: i32 = -20;

/// Gives the calling thread precedence over others until this is dropped, where that is allowed (`RLIMIT_NICE`,
/// `CAP_SYS_NICE`). A thread that it starts meanwhile keeps the priority.
#[derive(Debug)]
pub struct RaisedPriority {
    /// Nice value to restore; `None` where nothing was changed.
    before: Option<i32>,
}

impl RaisedPriority {
    /// Raises the calling thread's priority.
    pub fn begin() -> Self {
        Self {
            before: nice().filter(|_| set_nice(HIGHEST)),
        }
    }
}

impl Drop for RaisedPriority {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set_nice(before);
        }
    }
}

/// From now on the calling thread runs only where nothing else wants to (`SCHED_IDLE`, sched(7)). Needs no privilege.
///
/// # Errors
/// `EPERM` where it is forbidden (seccomp).
pub fn only_when_idle() -> io::Result<()> {
    // SAFETY: all-zero is a value of this struct of numbers; it is only read.
    let done = unsafe {
        let parameters: libc::sched_param = std::mem::zeroed();
        libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters)
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The calling thread's nice value: on Linux each thread has its own (setpriority(2)).
fn nice() -> Option<i32> {
    Errno::clear();
    // SAFETY: no pointers; -1 is a value too, told from an error by errno.
    let value = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    (value != -1 || Errno::last_raw() == 0).then_some(value)
}

fn set_nice(value: i32) -> bool {
    // SAFETY: no pointers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, value) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_in_a_hurry_is_as_it_was_before_when_it_is_through() {
        // A thread of its own: whoever may not raise it again would leave the tests behind with it.
        let seen = std::thread::spawn(|| {
            assert!(set_nice(7), "lower is always allowed");
            let hurry = RaisedPriority::begin();
            let within = nice();
            let allowed = hurry.before.is_some();
            drop(hurry);
            (allowed, within, nice())
        });
        let (allowed, within, after) = seen.join().unwrap();
        assert_eq!(within, Some(if allowed { HIGHEST } else { 7 }));
        assert_eq!(after, Some(7));
    }
}
