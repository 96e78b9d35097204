//! Memory with a descriptor and without a name (memfd_create(2)), which a program that this process starts can map too.

#![expect(unsafe_code, reason = "a new descriptor is owned by hand")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use crate::shared_memory::SharedMemory;

/// A file in memory, mapped in this process. Freed when no process has it open or mapped any more.
#[derive(Debug)]
pub struct MemoryFile {
    fd: OwnedFd,
    memory: SharedMemory,
}

impl MemoryFile {
    /// A file of `bytes` zero bytes. A page is allocated when it is first written to.
    ///
    /// # Errors
    /// `ENOMEM`, `EMFILE`.
    pub fn new(bytes: usize) -> io::Result<Self> {
        // SAFETY: a terminated name and a flag; returns a new descriptor or -1.
        let fd = unsafe { libc::memfd_create(c"wirecost".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned it to us, nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: takes integers only.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let memory = SharedMemory::of_file(&fd, bytes)?;
        Ok(Self { fd, memory })
    }

    /// The mapped content.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    /// Path of the file for a program that has the descriptor under the same number
    /// ([`crate::process::inherit_and_die_with_thread`]).
    pub fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.fd.as_raw_fd().to_string())
    }
}

impl AsRawFd for MemoryFile {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::inherit_and_die_with_thread;

    #[test]
    fn a_tied_program_reads_what_was_stored() {
        let file = MemoryFile::new(4096).expect("memory");
        file.memory().store(0, b"here");
        let mut command = Command::new("head");
        inherit_and_die_with_thread(command.args(["-c", "4"]).arg(file.path()), &file);
        let output = command.output().expect("head");
        assert_eq!(output.stdout, b"here", "{output:?}");
    }
}
