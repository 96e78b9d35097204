//! Judges what was read from a host. Pure: no I/O, no clock.

mod bridges;
mod host;
mod logical;
mod offloads;
mod ovn;
mod ovs;
mod stacked;
mod tunnels;

use crate::finding::{Finding, Severity, kind_of};
use crate::snapshot::{Device, HostStack, Namespace};

pub use host::set_ipv6_mtu;
pub(crate) use tunnels::{fits, outside};

/// Every finding of a host, the worst first.
pub fn judge(stack: &HostStack) -> Vec<Finding> {
    judged(stack, None)
}

/// What packets showed of the path that a host's packets take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shown {
    /// Large TCP segments that this host sends vanish: settings matter that decide what becomes of that.
    pub lossy: bool,
    /// What it carries, where that is less than is sent.
    pub carries: Option<Carries>,
}

/// What a path carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carries {
    /// IP packet, bytes.
    pub mtu: u32,
    /// Over IPv6.
    pub six: bool,
}

/// The same beside what packets showed.
pub fn judge_beside(stack: &HostStack, shown: &Shown) -> Vec<Finding> {
    judged(stack, Some(shown))
}

fn judged(stack: &HostStack, shown: Option<&Shown>) -> Vec<Finding> {
    let mut found = Findings {
        host: &stack.host,
        findings: Vec::new(),
    };
    bridges::judge(stack, &mut found);
    stacked::judge(stack, &mut found);
    tunnels::judge(stack, &mut found);
    ovs::judge(stack, &mut found);
    ovn::judge(stack, &mut found);
    offloads::judge(stack, &mut found);
    // Last: some of it matters beside other findings only.
    host::judge(stack, shown, &mut found);
    let mut findings = found.findings;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// Findings so far.
pub(crate) struct Findings<'a> {
    host: &'a str,
    findings: Vec<Finding>,
}

impl Findings<'_> {
    /// Adds a finding. `id` is one of the catalogue's; the tests hold that.
    pub(crate) fn add(
        &mut self,
        id: &'static str,
        namespace: Option<&Namespace>,
        device: Option<&str>,
        evidence: String,
        fix: Vec<String>,
    ) {
        debug_assert!(kind_of(id).is_some(), "{id} is not in the catalogue");
        let host = match namespace {
            Some(namespace) if namespace.label != "host" => {
                format!("{} ({})", self.host, namespace.label)
            }
            _ => self.host.to_owned(),
        };
        self.findings.push(Finding {
            id,
            severity: kind_of(id).map_or(Severity::Warning, |kind| kind.severity),
            host,
            device: device.map(str::to_owned),
            evidence,
            fix,
            elsewhere: false,
        });
    }

    /// What a namespace is called: the one that was asked by the host's name.
    pub(crate) fn place<'a>(&'a self, namespace: &'a Namespace) -> &'a str {
        match namespace.label.as_str() {
            "host" => self.host,
            label => label,
        }
    }

    /// Whether something was found that loses packets.
    pub(crate) fn has_errors(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    pub(crate) fn has(&self, id: &str, device: &str) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.id == id && finding.device.as_deref() == Some(device))
    }
}

/// The command that sets a device's MTU.
pub(crate) fn set_mtu(namespace: &Namespace, device: &str, mtu: u32) -> String {
    namespace
        .enter
        .command(&format!("ip link set dev {device} mtu {mtu}"))
}

/// The commands that raise a device's MTU; of a veth the other end's as well, which otherwise would be the smaller one.
pub(crate) fn raise(
    stack: &HostStack,
    namespace: &Namespace,
    device: &Device,
    mtu: u32,
) -> Vec<String> {
    let other = other_end(stack, device).filter(|(_, other)| other.mtu < mtu);
    std::iter::once(set_mtu(namespace, &device.name, mtu))
        .chain(other.map(|(there, other)| set_mtu(there, &other.name, mtu)))
        .collect()
}

/// A veth's other end, where its namespace was read.
pub(crate) fn other_end<'a>(
    stack: &'a HostStack,
    device: &Device,
) -> Option<(&'a Namespace, &'a Device)> {
    let peer = device.peer.as_ref()?;
    let namespace = stack.namespaces.get(peer.namespace?)?;
    Some((namespace, namespace.device(peer.index)?))
}

#[cfg(test)]
mod tests;
