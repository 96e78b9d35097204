//! Everything that was found out about two hosts and the path between them, put together: what to say, once.

use std::net::IpAddr;

use wirecost_audit::snapshot::Enter;
use wirecost_audit::{Finding, HostStack};
use wirecost_pmtu::Limit;

use crate::judge::judge;
use crate::one_sided::{OneSidedReport, judge_one_sided};
use crate::report::{Kind, PathReport};

/// A host as it was read.
#[derive(Debug, Clone)]
pub struct Audited {
    /// Its devices; [`HostStack::host`] is what reports call it.
    pub stack: HostStack,
    /// Which machine it is on: namespaces of one machine are told apart by their number.
    pub machine: String,
    /// How commands get there from where the user types.
    pub enter: Enter,
}

/// Every finding, the worst first, and of the same severity what packets showed before what is configured.
pub fn assess(
    paths: &[PathReport],
    one_sided: Option<&OneSidedReport>,
    hosts: &mut [Audited],
) -> Vec<Finding> {
    forget_what_we_caused(hosts, paths);
    for host in &mut *hosts {
        if let Some(own) = host.stack.namespaces.first_mut() {
            own.enter = host.enter.clone();
        }
    }
    let mut findings = judge(paths);
    findings.extend(one_sided.into_iter().flat_map(judge_one_sided));
    let senders = paths.iter().chain(one_sided.map(|report| &report.path));
    for path in senders {
        for finding in &mut findings {
            if finding.host == path.from.host {
                make_typable(finding, path, hosts);
            }
        }
    }
    let lossy: Vec<&str> = paths
        .iter()
        .chain(one_sided.map(|report| &report.path))
        .filter(|path| path.failing().any(|flow| flow.kind == Kind::SILENT))
        .map(|path| path.from.host.as_str())
        .collect();
    findings.extend(about_devices(hosts, &lossy));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// A router's message about a probe leaves an exception behind; it says what the path's own line says. Hosts of one
/// machine see each other's.
fn forget_what_we_caused(hosts: &mut [Audited], paths: &[PathReport]) {
    let signalled =
        |flow: &crate::FlowReport| matches!(flow.kind, Kind::Told(Limit::Signalled { .. }));
    for path in paths.iter().filter(|path| path.flows.iter().any(signalled)) {
        let sender = hosts
            .iter()
            .find(|host| host.stack.host == path.from.host)
            .and_then(|host| Some((host.machine.clone(), host.stack.namespaces.first()?.inode)));
        let Some((machine, inode)) = sender else {
            continue;
        };
        // A message in the destination's own name is a tunnel's: the underlay's router told the namespace that has it.
        let from_tunnel = path
            .flows
            .iter()
            .any(|flow| matches!(flow.kind, Kind::Told(Limit::Signalled { by, .. }) if by == path.to.address));
        for host in hosts.iter_mut().filter(|host| host.machine == machine) {
            let is_own = host.stack.host == path.from.host;
            for (at, namespace) in host.stack.namespaces.iter_mut().enumerate() {
                if from_tunnel && is_own {
                    let tunnels = namespace
                        .devices
                        .iter()
                        .filter_map(|device| device.tunnel.as_ref());
                    let remotes: Vec<IpAddr> = tunnels
                        .flat_map(|tunnel| &tunnel.remotes)
                        .map(|remote| remote.address)
                        .collect();
                    namespace
                        .exceptions
                        .retain(|exception| !remotes.contains(&exception.destination));
                }
                let same = inode.is_some() && namespace.inode == inode;
                if same || (is_own && at == 0) {
                    namespace
                        .exceptions
                        .retain(|exception| exception.destination != path.to.address);
                }
            }
        }
    }
}

/// Gets commands to their host.
fn make_typable(finding: &mut Finding, path: &PathReport, hosts: &[Audited]) {
    let Some(host) = hosts.iter().find(|host| host.stack.host == path.from.host) else {
        return;
    };
    let entered = ["ip -n ", "ip netns exec ", "nsenter "];
    for line in &mut finding.fix {
        if !line.starts_with('#') && !entered.iter().any(|start| line.starts_with(start)) {
            *line = host.enter.command(line);
        }
    }
}

/// Findings about devices, beside what is lost of what the `lossy` hosts send. Hosts on one machine see each other's: each device is told of once, by its own host where
/// that was asked.
fn about_devices(hosts: &[Audited], lossy: &[&str]) -> Vec<Finding> {
    let mut told: Vec<(Option<Place<'_>>, Finding)> = Vec::new();
    for own in [true, false] {
        for host in hosts {
            let is_lossy = lossy.contains(&host.stack.host.as_str());
            for finding in wirecost_audit::judge_beside(&host.stack, is_lossy) {
                let is_own = finding.host == host.stack.host;
                if is_own != own {
                    continue;
                }
                let place = place(host, &finding);
                let again = told.iter().any(|(other, known)| {
                    place.is_some()
                        && *other == place
                        && known.id == finding.id
                        && known.device == finding.device
                });
                if !again {
                    told.push((place, finding));
                }
            }
        }
    }
    told.into_iter().map(|(_, finding)| finding).collect()
}

/// A namespace: of which machine, and its inode there.
type Place<'a> = (&'a str, u64);

fn place<'a>(host: &'a Audited, finding: &Finding) -> Option<Place<'a>> {
    let rest = finding.host.strip_prefix(host.stack.host.as_str())?;
    let label = rest
        .strip_prefix(" (")
        .and_then(|rest| rest.strip_suffix(')'));
    let mut namespaces = host.stack.namespaces.iter();
    let namespace = match label {
        Some(label) => namespaces.find(|namespace| namespace.label == label)?,
        None => namespaces.next()?,
    };
    Some((&host.machine, namespace.inode?))
}
