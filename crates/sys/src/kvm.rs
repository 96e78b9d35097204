//! /dev/kvm: whether virtual machines can be created (Documentation/virt/kvm/api.rst).

#![expect(unsafe_code, reason = "KVM's ioctls have no wrapper in nix")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const KVM_GET_API_VERSION: u64 = 0xae00;
const KVM_CREATE_VM: u64 = 0xae01;

/// Version of the KVM API since Linux 2.6.22; a program must refuse any other.
pub const API_VERSION: i32 = 12;

/// An open /dev/kvm.
#[derive(Debug)]
pub struct Kvm(File);

/// A virtual machine without processors or memory. Destroyed when dropped.
#[derive(Debug)]
pub struct EmptyMachine {
    _fd: OwnedFd,
}

impl Kvm {
    /// Opens /dev/kvm.
    ///
    /// # Errors
    /// `ENOENT` where the device does not exist, `EACCES` where this user may not use it.
    pub fn open() -> io::Result<Self> {
        File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .map(Self)
    }

    /// Version of the KVM API; must be [`API_VERSION`].
    pub fn api_version(&self) -> io::Result<i32> {
        self.ask(KVM_GET_API_VERSION)
    }

    /// Creates a virtual machine, which needs virtualisation support of the processor, not only the device node.
    pub fn create_machine(&self) -> io::Result<EmptyMachine> {
        let fd = self.ask(KVM_CREATE_VM)?;
        // SAFETY: the kernel has just returned it to us, nobody else owns it.
        Ok(EmptyMachine {
            _fd: unsafe { OwnedFd::from_raw_fd(fd) },
        })
    }

    fn ask(&self, request: u64) -> io::Result<i32> {
        // SAFETY: both requests take an integer argument, here 0, and write to no memory of ours.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, 0) };
        if answer < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(answer)
        }
    }
}
