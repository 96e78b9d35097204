//! Judges a [`HostStack`]. Pure: no I/O, no clock.

mod bridges;
mod host;
mod logical;
mod offloads;
mod ovn;
mod ovs;
mod queues;
mod stacked;
mod tunnels;

use crate::finding::{Finding, Severity, kind_of};
use crate::snapshot::{Device, HostStack, Namespace};

pub use host::set_ipv6_mtu;
pub(crate) use tunnels::{fits, outside};

/// Every finding of a host, the most severe first.
pub fn judge(stack: &HostStack) -> Vec<Finding> {
    judged(stack, None)
}

/// What probes showed about the path of a host's packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProbeEvidence {
    /// Large TCP segments that this host sends are lost: settings that affect such a loss are judged too.
    pub lossy: bool,
    /// What the path carries, where that is less than the host sends.
    pub carries: Option<PathMtu>,
}

/// Largest packet that a path carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathMtu {
    /// Size of the IP packet, bytes.
    pub mtu: u32,
    /// Whether the packets are IPv6.
    pub six: bool,
}

/// As [`judge()`], with what probes showed.
pub fn judge_with_probes(stack: &HostStack, probes: &ProbeEvidence) -> Vec<Finding> {
    judged(stack, Some(probes))
}

fn judged(stack: &HostStack, probes: Option<&ProbeEvidence>) -> Vec<Finding> {
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
    queues::judge(stack, &mut found);
    // Last: some of these findings depend on earlier ones.
    host::judge(stack, probes, &mut found);
    let mut findings = found.findings;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// The findings so far.
pub(crate) struct Findings<'a> {
    host: &'a str,
    findings: Vec<Finding>,
}

impl Findings<'_> {
    /// Adds a finding. `id` must be in the catalogue; the tests check it.
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

    /// Name of a namespace for output: the host's name for the namespace that was read first.
    pub(crate) fn place<'a>(&'a self, namespace: &'a Namespace) -> &'a str {
        match namespace.label.as_str() {
            "host" => self.host,
            label => label,
        }
    }

    /// Whether a finding of severity `Error` was added.
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

/// The commands that raise a device's MTU, and that of a veth's peer where it is smaller.
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

/// The peer of a veth, where its namespace was read.
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
