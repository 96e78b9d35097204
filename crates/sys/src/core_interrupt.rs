//! Interrupts a core, after which the kernel has accounted the time that the core was idle until then.
//!
//! Why: `tick_sched` accounts idle time when an interrupt or a task ends it (kernel/time/tick-sched.c,
//! `tick_nohz_irq_enter`, `tick_nohz_stop_idle`), and an idle core may sleep for long. A thread that visits each core
//! would queue behind the tasks that run there; an interrupt does not.

#![expect(
    unsafe_code,
    reason = "perf_event_open(2) has no wrapper in nix or libc"
)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};

use libc::c_long;

/// `struct perf_event_attr` in its first published size, `PERF_ATTR_SIZE_VER0` (include/uapi/linux/perf_event.h).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    rest: [u64; 6],
}

const PERF_TYPE_SOFTWARE: u32 = 1;
/// Event that counts nothing (Linux 3.12).
const PERF_COUNT_SW_DUMMY: u64 = 9;
const PERF_FLAG_FD_CLOEXEC: c_long = 8;

/// Interrupts one core on request.
#[derive(Debug)]
pub struct CoreInterrupt(File);

impl CoreInterrupt {
    /// Opens an event on core `cpu`, by the kernel's number.
    ///
    /// # Errors
    /// `EACCES` or `EPERM` without `CAP_PERFMON` where `kernel.perf_event_paranoid` is above 0; `ENODEV` where the core
    /// is offline; `ENOSYS` or `ENOENT` where the kernel has no such events.
    pub fn of_core(cpu: u32) -> io::Result<Self> {
        let attributes = Attributes {
            kind: PERF_TYPE_SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: PERF_COUNT_SW_DUMMY,
            ..Attributes::default()
        };
        let (every_process, no_group): (c_long, c_long) = (-1, -1);
        // SAFETY: the attributes have the size that they state, and are only read; the rest are numbers.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                every_process,
                c_long::from(cpu),
                no_group,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given this descriptor to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        Ok(Self(fd.into()))
    }

    /// Returns when the core has taken the interrupt: an event's value is read on the core that it counts on
    /// (kernel/events/core.c, `perf_event_read`).
    ///
    /// # Errors
    /// Fails where the core went offline.
    pub fn now(&mut self) -> io::Result<()> {
        self.0.read_exact(&mut [0; 8])
    }
}

#[cfg(test)]
mod tests {
    use crate::process::allowed_cpus;

    use super::*;

    #[test]
    fn every_core_takes_it_and_one_that_is_not_there_is_an_error() {
        assert!(CoreInterrupt::of_core(100_000).is_err());
        for cpu in allowed_cpus().expect("cores") {
            match CoreInterrupt::of_core(cpu) {
                Ok(mut core_interrupt) => (0..3).for_each(|_| core_interrupt.now().expect("taken")),
                Err(error) => {
                    wirecost_skips::skip(format!("core {cpu}: {error}"));
                }
            }
        }
    }
}
