//! A host that was audited.

use wirecost_audit::HostStack;
use wirecost_audit::snapshot::Enter;

use crate::seen::DropRule;

/// A host as it was read.
#[derive(Debug, Clone)]
pub struct AuditedHost {
    /// Its devices; [`HostStack::host`] is what reports call it.
    pub stack: HostStack,
    /// Which machine it is on: namespaces of one machine are told apart by their number.
    pub machine: String,
    /// How commands get there from where the user types.
    pub enter: Enter,
    /// Rules of its own filter that drop packets, where that was asked.
    pub rules: Vec<DropRule>,
}
