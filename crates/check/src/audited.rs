//! The audit of a host, with its machine and its firewall rules.

use wirecost_audit::snapshot::NetnsEntry;
use wirecost_audit::{DropRule, HostStack};

/// The audit of a host.
#[derive(Debug, Clone)]
pub struct AuditedHost {
    /// The host's devices; [`HostStack::host`] is the host's name in reports.
    pub stack: HostStack,
    /// The machine that the host is on (its boot id): namespaces of one machine are told apart by their inode numbers.
    pub machine: String,
    /// How commands that the user types get into the host's namespace.
    pub enter: NetnsEntry,
    /// The host's firewall rules that drop packets; empty where they were not read.
    pub rules: Vec<DropRule>,
}
