//! What an agent of an existing host is started for, and which capabilities (capabilities(7)) it keeps for that.

use std::io;

use wirecost_sys::capability::{self, Capability};

/// What an agent of an existing host is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duty {
    /// Loads between addresses that the host has, and proofs of its path.
    Load,
    /// Proofs and searches of a path, and the audit of the host.
    Check,
    /// Guests, bridges and tunnels in namespaces of its own.
    Build,
    /// Settings of the host.
    Change,
    /// Commands of plans, and whatever else the login may do.
    #[default]
    Commands,
}

/// Of loads:
const LOAD: &[Capability] = &[
    // SO_BUSY_POLL, SO_RCVBUFFORCE and SO_SNDBUFFORCE, and a congestion control that is not allowed to all.
    Capability::NET_ADMIN,
    // `--port` below 1024.
    Capability::NET_BIND_SERVICE,
    // A thread that accepts hundreds of connections comes before others; the meter's threads.
    Capability::SYS_NICE,
    // More descriptors than the hard limit of RLIMIT_NOFILE.
    Capability::SYS_RESOURCE,
    // Buffers that are registered with io_uring.
    Capability::IPC_LOCK,
    // Interrupts to idle cores, for the meter (perf_event_open(2)).
    Capability::PERFMON,
    // Faults of a migrated machine's memory that the kernel meets (userfaultfd(2)).
    Capability::SYS_PTRACE,
    // An NBD server's socket that belongs to another user.
    Capability::DAC_OVERRIDE,
];

/// Beside them, of checks:
const CHECK: &[Capability] = &[
    // Packet sockets, ICMP and proofs over TCP.
    Capability::NET_RAW,
    // Other network namespaces of the host, which the audit enters; SYS_PTRACE for those of processes.
    Capability::SYS_ADMIN,
    Capability::DAC_READ_SEARCH,
];

/// Beside those of loads, of tunnels between hosts:
const BUILD: &[Capability] = &[
    // Namespaces of guests, and a sysfs of their own.
    Capability::SYS_ADMIN,
    // Captures of full-size frames.
    Capability::NET_RAW,
];

impl Duty {
    const ALL: [Self; 5] = [
        Self::Load,
        Self::Check,
        Self::Build,
        Self::Change,
        Self::Commands,
    ];

    /// Whether a user other than root cannot do it.
    pub const fn needs_root(self) -> bool {
        matches!(self, Self::Build | Self::Change)
    }

    /// As an agent's `--duty` argument.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Check => "check",
            Self::Build => "build",
            Self::Change => "change",
            Self::Commands => "commands",
        }
    }

    /// The duty of that word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|duty| duty.word() == word)
    }

    /// What is kept of the capabilities that there are; `None`: all of them.
    fn kept(self) -> Option<Vec<Capability>> {
        let more = match self {
            Self::Load => &[][..],
            Self::Check => CHECK,
            Self::Build => BUILD,
            // Commands of plans are processes of its own.
            Self::Change | Self::Commands => return None,
        };
        Some([LOAD, more].concat())
    }

    /// Gives up for good, in every set, the capabilities that are not needed, and the way to others by executing a program
    /// (`no_new_privs`). To be called while the process has one thread.
    ///
    /// # Errors
    /// Those of prctl(2) and capset(2).
    pub(crate) fn confine(self) -> io::Result<()> {
        match self.kept() {
            Some(kept) => capability::keep_only(&kept),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duty_has_a_word_and_only_what_changes_the_host_keeps_everything() {
        for duty in Duty::ALL {
            assert_eq!(Duty::of_word(duty.word()), Some(duty));
            let changes = matches!(duty, Duty::Change | Duty::Commands);
            assert_eq!(duty.kept().is_none(), changes);
        }
        assert_eq!(Duty::of_word("all"), None);
        let load = Duty::Load.kept().expect("a list");
        assert!(!load.contains(&Capability::SYS_ADMIN) && !load.contains(&Capability::NET_RAW));
    }
}
