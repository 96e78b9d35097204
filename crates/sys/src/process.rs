//! Processes and threads: allowed processors, death with the parent, credentials, and signals by pidfd instead of by
//! id.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Pid, Uid, getppid, setgroups, setresgid, setresuid};

use crate::socket::poll_readable;

/// The processors that the calling thread may use, ascending.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count())
        .filter(|&cpu| set.is_set(cpu).unwrap_or(false))
        .map(|cpu| cpu as u32)
        .collect())
}

/// Pins the calling thread, and every thread it starts from now on, to these processors.
pub fn pin_to(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)?;
    Ok(())
}

/// Asks the kernel to kill this process when the thread that started it ends, a stopped process
/// included. Call it after any change of credentials: these clear it (prctl(2)).
///
/// # Errors
/// Fails where the parent is gone already.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid().as_raw() as u32 == parent {
        Ok(())
    } else {
        Err(io::Error::other("the parent process is gone"))
    }
}

/// Makes a program that the calling thread starts die with that thread, even when stopped, and inherit a descriptor
/// under its number.
///
/// Whatever ends this process also ends the program, since the thread ends with it (`PR_SET_PDEATHSIG`, prctl(2)).
#[expect(unsafe_code, reason = "what a child does before execve(2) is unsafe")]
pub fn inherit_and_die_with_thread(command: &mut Command, descriptor: &impl AsRawFd) {
    let (parent, fd) = (std::process::id(), descriptor.as_raw_fd());
    let before_exec = move || {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        if getppid().as_raw() as u32 != parent {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // SAFETY: takes integers only.
        if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    };
    // SAFETY: three system calls, nothing that allocates or locks.
    unsafe { command.pre_exec(before_exec) };
}

/// Gives up root permanently: sets the real, effective and saved ids to `id`, and drops groups and capabilities. Makes
/// the process own its /proc files again (`PR_SET_DUMPABLE`), without which it could not write its own uid_map.
///
/// # Errors
/// `EPERM` without `CAP_SETUID` and `CAP_SETGID`, `EINVAL` where the user namespace has no such id.
pub fn become_plain_user(id: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    setgroups(&[])?;
    setresgid(gid, gid, gid)?;
    setresuid(uid, uid, uid)?;
    prctl::set_dumpable(true)?;
    Ok(())
}

/// Soft and hard limit on the descriptors that a process may have open (`RLIMIT_NOFILE`).
pub fn descriptor_limit() -> io::Result<(u64, u64)> {
    Ok(getrlimit(Resource::RLIMIT_NOFILE)?)
}

/// A process by handle (pidfd_open(2)): unlike a process id, it cannot come to mean another process.
#[derive(Debug)]
pub struct PidFd(OwnedFd);

impl PidFd {
    /// Opens the process that has this id now.
    ///
    /// # Errors
    /// `ESRCH` where no process has the id.
    #[expect(unsafe_code, reason = "pidfd_open(2) has no wrapper in nix")]
    pub fn open(pid: u32) -> io::Result<Self> {
        // SAFETY: takes integers only, returns a new descriptor or -1.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned it to us, nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Waits until the process has ended; `false` where it has not ended within the time. Goes on after a signal.
    pub fn wait(&self, within: Duration) -> io::Result<bool> {
        Ok(!poll_readable(&[self.0.as_fd()], within)?.is_empty())
    }

    /// Continues a stopped process (`SIGCONT`); a running one does not notice.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(libc::SIGCONT)
    }

    /// Kills the process, a stopped one included (`SIGKILL`).
    pub fn kill(&self) -> io::Result<()> {
        self.signal(libc::SIGKILL)
    }

    #[expect(unsafe_code, reason = "pidfd_send_signal(2) has no wrapper in nix")]
    fn signal(&self, number: i32) -> io::Result<()> {
        // SAFETY: a valid descriptor, a signal number, no siginfo (null is allowed), no flags.
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.0.as_raw_fd(),
                number,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        };
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::thread::JoinHandleExt;
    use std::process::Stdio;
    use std::thread;

    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, sigaction};

    use super::*;

    extern "C" fn pass_over(_: libc::c_int) {}

    #[test]
    #[expect(
        unsafe_code,
        reason = "a handler, and a signal to one thread, have no safe function"
    )]
    fn a_wait_for_a_process_goes_on_after_a_signal() {
        let handler = SigHandler::Handler(pass_over);
        let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing.
        unsafe { sigaction(Signal::SIGUSR1, &action) }.unwrap();
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let handle = PidFd::open(child.id()).unwrap();
        let waiting = thread::spawn(move || handle.wait(Duration::from_mins(1)));
        for _ in 0..100 {
            // SAFETY: the thread is joined later, so that its id is valid.
            unsafe { libc::pthread_kill(waiting.as_pthread_t(), libc::SIGUSR1) };
            thread::sleep(Duration::from_millis(1));
        }
        // Without input it ends.
        drop(child.stdin.take());
        let ended = waiting.join().unwrap();
        child.wait().unwrap();
        assert!(ended.unwrap());
    }
}
