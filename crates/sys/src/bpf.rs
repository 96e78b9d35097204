//! eBPF: just enough of bpf(2) to find out whether programs can be loaded and attached.
//!
//! Structures follow `union bpf_attr` of include/uapi/linux/bpf.h. No loader of programs for real work.

#![expect(unsafe_code, reason = "bpf(2) has no wrapper in nix")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_TCX_INGRESS: u32 = 46;

/// `struct bpf_insn`: code, registers, offset, immediate.
type Instruction = [u8; 8];

/// `r0 = -1` (`BPF_ALU64 | BPF_MOV | BPF_K`), `TCX_NEXT`: the packet goes on as without the program.
const RETURN_NEXT: Instruction = [0xb7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
/// `exit` (`BPF_JMP | BPF_EXIT`).
const EXIT: Instruction = [0x95, 0, 0, 0, 0, 0, 0, 0];

/// Attributes of `BPF_PROG_LOAD`, up to the last member needed.
#[repr(C)]
#[derive(Default)]
struct LoadAttributes {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
}

/// Attributes of `BPF_LINK_CREATE` for tcx.
#[repr(C)]
#[derive(Default)]
struct LinkAttributes {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
    relative_fd: u32,
    padding: u32,
    expected_revision: u64,
}

/// A loaded classifier of two instructions that passes every packet on. Unloaded when dropped.
#[derive(Debug)]
pub struct PassingClassifier(OwnedFd);

/// A program attached to a device's tcx ingress. Detached when dropped.
#[derive(Debug)]
pub struct TcxLink {
    _link: OwnedFd,
}

impl PassingClassifier {
    /// Loads the classifier as `BPF_PROG_TYPE_SCHED_CLS`, through verifier and JIT.
    ///
    /// # Errors
    /// `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN` in the initial user namespace, `ENOSYS` where
    /// the kernel has no bpf(2).
    pub fn load() -> io::Result<Self> {
        let program = [RETURN_NEXT, EXIT];
        let license = c"GPL";
        let mut attributes = LoadAttributes {
            prog_type: BPF_PROG_TYPE_SCHED_CLS,
            insn_cnt: program.len() as u32,
            insns: program.as_ptr() as u64,
            license: license.as_ptr() as u64,
            ..LoadAttributes::default()
        };
        // SAFETY: the attributes are those of this command, and the program and the license they
        // point at outlive the call; the kernel only reads them.
        unsafe { bpf(BPF_PROG_LOAD, &mut attributes) }.map(Self)
    }

    /// Attaches the classifier to the ingress of a device of the calling thread's network namespace (tcx, Linux 6.6).
    ///
    /// # Errors
    /// `EINVAL` where the kernel has no tcx, `ENODEV` for an unknown interface.
    pub fn attach_tcx_ingress(&self, ifindex: u32) -> io::Result<TcxLink> {
        let mut attributes = LinkAttributes {
            prog_fd: self.0.as_raw_fd() as u32,
            target_ifindex: ifindex,
            attach_type: BPF_TCX_INGRESS,
            ..LinkAttributes::default()
        };
        // SAFETY: the attributes are those of this command and hold no pointer.
        unsafe { bpf(BPF_LINK_CREATE, &mut attributes) }.map(|link| TcxLink { _link: link })
    }
}

/// One bpf(2) call that returns a descriptor.
///
/// # Safety
/// `attributes` must be a C structure with the members of `union bpf_attr` for `command`, and what
/// its pointers point at must be valid for the call.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the pointer and the size describe `attributes`; the rest is the caller's promise.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_mut(attributes),
            size_of::<T>(),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned it to us, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_loaded_or_refused_for_a_reason_that_is_known() {
        match PassingClassifier::load() {
            Ok(program) => {
                let error = program
                    .attach_tcx_ingress(u32::MAX >> 1)
                    .expect_err("device");
                let codes = [libc::ENODEV, libc::EINVAL];
                assert!(
                    codes.contains(&error.raw_os_error().expect("code")),
                    "{error}"
                );
            }
            // EINVAL would be our own mistake.
            Err(error) => assert!(
                [libc::EPERM, libc::ENOSYS].contains(&error.raw_os_error().expect("code")),
                "{error}"
            ),
        }
    }
}
