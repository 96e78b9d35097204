//! A directory in memory that leaves nothing behind.

#![expect(
    unsafe_code,
    reason = "fsopen(2), fsconfig(2) and fsmount(2) have no wrapper in nix"
)]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::ptr;

// include/uapi/linux/mount.h
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_SET_STRING: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;
const FSMOUNT_CLOEXEC: libc::c_uint = 1;
const MOUNT_ATTR_NOSUID: libc::c_uint = 2;
const MOUNT_ATTR_NODEV: libc::c_uint = 4;
const MOUNT_ATTR_NOEXEC: libc::c_uint = 8;

/// A file system in memory that is mounted nowhere: a process that holds the descriptor sees it under
/// [`ScratchDirectory::path`], and it goes with its last holder, however that ends.
#[derive(Debug)]
pub struct ScratchDirectory {
    root: OwnedFd,
}

impl ScratchDirectory {
    /// Makes an empty tmpfs that only the calling user may enter.
    ///
    /// # Errors
    /// `EPERM` without `CAP_SYS_ADMIN` over the calling thread's mount namespace, `ENOSYS` before Linux 5.2.
    pub fn create() -> io::Result<Self> {
        // SAFETY: a terminated string and flags; returns a new descriptor or -1.
        let context =
            owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), FSOPEN_CLOEXEC) })?;
        configure(&context, FSCONFIG_SET_STRING, Some((c"mode", c"0700")))?;
        configure(&context, FSCONFIG_CMD_CREATE, None)?;
        let attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
        // SAFETY: a valid descriptor and flags; returns a new descriptor or -1.
        let root = owned(unsafe {
            libc::syscall(
                libc::SYS_fsmount,
                context.as_raw_fd(),
                FSMOUNT_CLOEXEC,
                attributes,
            )
        })?;
        Ok(Self { root })
    }

    /// Path of the directory, for this process and for a program that has the descriptor under the same number
    /// ([`crate::process::inherit_and_die_with_thread`]).
    pub fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.root.as_raw_fd().to_string())
    }
}

impl AsRawFd for ScratchDirectory {
    fn as_raw_fd(&self) -> RawFd {
        self.root.as_raw_fd()
    }
}

fn configure(
    context: &OwnedFd,
    command: libc::c_uint,
    pair: Option<(&CStr, &CStr)>,
) -> io::Result<()> {
    let (key, value) = pair.map_or((ptr::null(), ptr::null()), |(key, value)| {
        (key.as_ptr(), value.as_ptr())
    });
    // SAFETY: a valid descriptor; key and value are null or terminated strings that outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            command,
            key,
            value,
            0,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Takes the descriptor that a system call returned.
fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned it to us, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as RawFd) })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::Command;

    use super::*;
    use crate::process::inherit_and_die_with_thread;

    /// None without the privilege to mount.
    fn directory() -> Option<ScratchDirectory> {
        match ScratchDirectory::create() {
            Ok(directory) => Some(directory),
            Err(error) => {
                wirecost_skips::skip(format!("a file system cannot be made here: {error}"));
                None
            }
        }
    }

    #[test]
    fn files_and_sockets_are_in_it_and_nobody_else_sees_it() {
        let Some(directory) = directory() else { return };
        let path = directory.path();
        fs::write(path.join("paper"), "here").expect("written");
        let listener = UnixListener::bind(path.join("socket")).expect("bound");
        UnixStream::connect(path.join("socket")).expect("connected");
        drop(listener);
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("proc");
        assert!(!mounts.contains("paper"), "{mounts}");
        drop(directory);
        // The descriptor's number may be another directory's by now: the name is of this one alone.
        assert!(!path.join("paper").exists());
    }

    #[test]
    fn a_tied_program_finds_it_under_the_same_path_and_others_do_not() {
        let Some(directory) = directory() else { return };
        let note = directory.path().join("note");
        fs::write(&note, "here").expect("written");
        let mut command = Command::new("cat");
        inherit_and_die_with_thread(command.arg(&note), &directory);
        let output = command.output().expect("cat");
        assert_eq!(output.stdout, b"here", "{output:?}");
        let other = Command::new("cat").arg(&note).output().expect("cat");
        assert!(!other.status.success(), "{other:?}");
    }
}
