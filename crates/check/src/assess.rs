//! Combines the reports on two hosts and the path between them into one list of findings.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use wirecost_audit::snapshot::{Enter, RouteException};
use wirecost_audit::{Finding, HostStack};
use wirecost_pmtu::Limit;

use crate::judge::{TAG_BYTES, judge, opposite};
use crate::one_sided::{OneSidedReport, judge_one_sided};
use crate::report::{FlowKind, PathReport, RequiredMtu};

/// A host as it was read.
#[derive(Debug, Clone)]
pub struct AuditedHost {
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
    hosts: &mut [AuditedHost],
) -> Vec<Finding> {
    let every: Vec<&PathReport> = paths
        .iter()
        .chain(one_sided.map(|report| &report.path))
        .collect();
    forget_what_we_caused(hosts, &every);
    forget_what_is_elsewhere(hosts, &every);
    for host in &mut *hosts {
        if let Some(own) = host.stack.namespaces.first_mut() {
            own.enter = host.enter.clone();
        }
    }
    let mut findings = judge(paths);
    findings.extend(one_sided.into_iter().flat_map(judge_one_sided));
    for path in &every {
        for finding in &mut findings {
            if finding.host == path.from.host {
                make_typable(finding, path, hosts);
            }
        }
    }
    name_small_receivers(paths, hosts, &mut findings);
    let lossy: Vec<&str> = every
        .iter()
        .filter(|path| path.failing().any(|flow| flow.kind == FlowKind::BLACK_HOLE))
        .map(|path| path.from.host.as_str())
        .collect();
    findings.extend(about_devices(hosts, &lossy));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// A router's message about a probe leaves an exception behind; it says what the path's own line says. Hosts of one
/// machine see each other's.
fn forget_what_we_caused(hosts: &mut [AuditedHost], paths: &[&PathReport]) {
    let signalled =
        |flow: &crate::FlowReport| matches!(flow.kind, FlowKind::Told(Limit::Signalled { .. }));
    for path in paths {
        let told = path.flows.iter().any(signalled);
        // What a check before this one was told is no news where this one wants no more.
        let allowed = |exception: &RouteException| told || exception.mtu >= path.wanted.bytes();
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
            .any(|flow| matches!(flow.kind, FlowKind::Told(Limit::Signalled { by, .. }) if by == path.to.address));
        for host in hosts.iter_mut().filter(|host| host.machine == machine) {
            let is_own = host.stack.host == path.from.host;
            for (at, namespace) in host.stack.namespaces.iter_mut().enumerate() {
                if from_tunnel && is_own && told {
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
                    namespace.exceptions.retain(|exception| {
                        exception.destination != path.to.address || !allowed(exception)
                    });
                }
            }
        }
    }
}

/// What the kernel remembers of destinations that are neither an end of this path nor of a tunnel on these hosts: a
/// host that talks to the world has many of those, and they say nothing about this path.
fn forget_what_is_elsewhere(hosts: &mut [AuditedHost], paths: &[&PathReport]) {
    let namespaces = hosts.iter().flat_map(|host| &host.stack.namespaces);
    let devices = namespaces.flat_map(|namespace| &namespace.devices);
    let tunnels = devices.filter_map(|device| device.tunnel.as_ref());
    let remotes = tunnels.flat_map(|tunnel| &tunnel.remotes);
    let remotes = remotes.map(|remote| remote.address);
    let ends = paths.iter().map(|path| path.to.address);
    let known: BTreeSet<IpAddr> = remotes.chain(ends).collect();
    for host in hosts {
        for namespace in &mut host.stack.namespaces {
            namespace
                .exceptions
                .retain(|exception| known.contains(&exception.destination));
        }
    }
}

/// Where as much arrives as the receiving host's own device takes, it is that device which drops the rest; on one link,
/// that is: a router that says nothing has the same MTU on the receiver's link.
fn name_small_receivers(paths: &[PathReport], hosts: &[AuditedHost], findings: &mut [Finding]) {
    for path in paths {
        let (Some(back), Some(carried)) = (opposite(paths, path), path.mtu()) else {
            continue;
        };
        let (RequiredMtu::Device(takes), Some(way)) = (back.wanted, &back.leaving) else {
            continue;
        };
        let on_link = path
            .leaving
            .as_ref()
            .is_some_and(|way| way.router.is_none());
        let is_there = on_link
            && takes < path.wanted.bytes()
            && (takes..=takes + TAG_BYTES).contains(&carried);
        let finding = findings
            .iter_mut()
            .find(|finding| finding.id == "path-drops-silently" && finding.host == path.from.host);
        if let Some(finding) = finding.filter(|_| is_there) {
            let wanted = path.wanted.bytes();
            let _ = write!(
                finding.evidence,
                ". That is what {} of {} takes by its own MTU, {takes}",
                way.device, path.to.host
            );
            let command = format!("ip link set dev {} mtu {wanted}", way.device);
            let host = hosts.iter().find(|host| host.stack.host == path.to.host);
            let command = host.map_or(command.clone(), |host| host.enter.command(&command));
            let there = format!("# on {}:", path.to.host);
            finding.fix.splice(..1, [there, command]);
        }
    }
}

/// Gets commands to their host.
fn make_typable(finding: &mut Finding, path: &PathReport, hosts: &[AuditedHost]) {
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
fn about_devices(hosts: &[AuditedHost], lossy: &[&str]) -> Vec<Finding> {
    let mut told: Vec<(Option<NetnsKey<'_>>, Finding)> = Vec::new();
    for own in [true, false] {
        for host in hosts {
            let is_lossy = lossy.contains(&host.stack.host.as_str());
            for finding in wirecost_audit::judge_with_loss(&host.stack, is_lossy) {
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
type NetnsKey<'a> = (&'a str, u64);

fn place<'a>(host: &'a AuditedHost, finding: &Finding) -> Option<NetnsKey<'a>> {
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
