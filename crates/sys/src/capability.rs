//! Capabilities of this process (capabilities(7)): those that are not needed are given up.

#![expect(
    unsafe_code,
    reason = "capset(2) and prctl(2) for the bounding set have no wrapper in nix"
)]

use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sys::prctl;

/// A capability, by the kernel's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability(u32);

/// Numbers from include/uapi/linux/capability.h.
impl Capability {
    /// Access to files regardless of their permissions.
    pub const DAC_OVERRIDE: Self = Self(1);
    /// Reading files and searching directories regardless of their permissions.
    pub const DAC_READ_SEARCH: Self = Self(2);
    /// Binding to ports below 1024.
    pub const NET_BIND_SERVICE: Self = Self(10);
    /// Configuring devices and routes, and privileged socket options.
    pub const NET_ADMIN: Self = Self(12);
    /// Raw and packet sockets.
    pub const NET_RAW: Self = Self(13);
    /// Locking memory.
    pub const IPC_LOCK: Self = Self(14);
    /// Inspecting other processes.
    pub const SYS_PTRACE: Self = Self(19);
    /// Namespaces, mounts and much else.
    pub const SYS_ADMIN: Self = Self(21);
    /// Raising priorities.
    pub const SYS_NICE: Self = Self(23);
    /// Exceeding resource limits.
    pub const SYS_RESOURCE: Self = Self(24);
    /// Performance events (Linux 5.8).
    pub const PERFMON: Self = Self(38);
}

/// `_LINUX_CAPABILITY_VERSION_3`: two words of each set.
const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Removes every capability but `kept` from the permitted, effective, inheritable, ambient and bounding sets of the
/// calling thread and of every thread that it starts from now on, and sets `no_new_privs`. A capability that is not
/// permitted now is not gained.
///
/// # Errors
/// Errors of capset(2) and prctl(2). Without `CAP_SETPCAP`, as in some containers, the bounding set stays as it is;
/// `no_new_privs` keeps anything in it from being gained.
pub fn keep_only(kept: &[Capability]) -> io::Result<()> {
    let mask = kept.iter().fold(0, |mask, kept| mask | 1u64 << kept.0);
    let permitted = mask & permitted()?;
    for capability in (0..64).filter(|number| mask >> number & 1 == 0) {
        match bounding(libc::PR_CAPBSET_DROP, capability) {
            Ok(_) => {}
            // The kernel knows no capability of this number, or this process lacks CAP_SETPCAP.
            Err(Errno::EINVAL | Errno::EPERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let half = |shift: u32| Data {
        effective: (permitted >> shift) as u32,
        permitted: (permitted >> shift) as u32,
        inheritable: 0,
    };
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let data = [half(0), half(32)];
    // SAFETY: both are laid out as the kernel's, and only read. With no inheritable capability there is no ambient one.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) };
    Errno::result(done)?;
    prctl::set_no_new_privs()?;
    Ok(())
}

fn bounding(option: i32, capability: u32) -> Result<i32, Errno> {
    // SAFETY: takes integers only.
    Errno::result(unsafe { libc::prctl(option, libc::c_ulong::from(capability), 0, 0, 0) })
}

/// The permitted set of the calling thread.
fn permitted() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapPrm:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .ok_or_else(|| io::Error::other("no CapPrm in /proc/thread-self/status"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets() -> Vec<(String, String)> {
        let status = fs::read_to_string("/proc/thread-self/status").expect("status");
        let lines = status.lines().filter_map(|line| line.split_once(":\t"));
        lines
            .filter(|(name, _)| name.starts_with("Cap") || *name == "NoNewPrivs")
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn a_thread_keeps_what_is_named_and_nothing_else_in_any_set() {
        // A thread has sets of its own: the other tests keep theirs.
        let after = std::thread::spawn(|| {
            let before = permitted().expect("status");
            keep_only(&[Capability::NET_RAW]).expect("given up");
            (before, sets())
        });
        let (before, after) = after.join().expect("a thread");
        let had = before & 1 << Capability::NET_RAW.0;
        let kept = format!("{had:016x}");
        for (name, value) in after {
            match name.as_str() {
                "CapPrm" | "CapEff" => assert_eq!(value, kept, "{name}"),
                "CapInh" | "CapAmb" => assert_eq!(value, format!("{:016x}", 0), "{name}"),
                "NoNewPrivs" => assert_eq!(value, "1"),
                // Only who has CAP_SETPCAP (8) may change it.
                "CapBnd" if before >> 8 & 1 == 1 => assert_eq!(value, format!("{:016x}", 1 << 13)),
                _ => {}
            }
        }
    }
}
