//! Combines the reports on two hosts and the path between them into one list of findings.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::IpAddr;

use wirecost_audit::snapshot::{Namespace, RouteException};
use wirecost_audit::{Finding, PathMtu, ProbeEvidence, Severity};
use wirecost_pmtu::Limit;

use crate::audited::AuditedHost;
use crate::judge::{TAG_BYTES, judge, opposite};
use crate::observations::Unreachable;
use crate::one_sided::{OneSidedReport, judge_one_sided};
use crate::report::{FlowKind, PathReport, RequiredMtu};
use crate::scope::{concerns, devices_on_path};
use crate::southbound;
use crate::tcp_proof::{TcpReport, judge_tcp};

/// All findings, the worst first. Findings about the checked path come before those elsewhere on the hosts; among
/// errors, those of devices, which are causes, come before those of paths.
pub fn assess(
    paths: &[PathReport],
    one_sided: Option<&OneSidedReport>,
    tcp: Option<&TcpReport>,
    hosts: &mut [AuditedHost],
) -> Vec<Finding> {
    let every: Vec<&PathReport> = paths
        .iter()
        .chain(one_sided.map(|report| &report.path))
        .chain(tcp.map(|report| &report.path))
        .collect();
    forget_what_we_caused(hosts, &every);
    forget_what_is_elsewhere(hosts, &every);
    tell_what_is_stale(hosts, &every);
    forget_underlays_elsewhere(hosts, &every);
    southbound::share(hosts);
    for host in &mut *hosts {
        if let Some(own) = host.stack.namespaces.first_mut() {
            own.enter = host.enter.clone();
        }
    }
    let mut findings = judge(paths);
    findings.extend(one_sided.into_iter().flat_map(judge_one_sided));
    findings.extend(tcp.into_iter().flat_map(judge_tcp));
    for path in &every {
        for finding in &mut findings {
            if finding.host == path.from.host {
                make_typable(finding, path, hosts);
            }
        }
    }
    name_small_receivers(paths, hosts, &mut findings);
    name_rules(&every, hosts, &mut findings);
    let mut all: Vec<(bool, Finding)> = findings.into_iter().map(|it| (true, it)).collect();
    all.extend(
        about_devices(hosts, &every)
            .into_iter()
            .map(|it| (false, it)),
    );
    all.sort_by_key(|(of_path, finding)| {
        let cause = !of_path && finding.severity == Severity::Error;
        (
            finding.elsewhere,
            Reverse(finding.severity),
            !cause,
            !of_path,
        )
    });
    all.into_iter().map(|(_, finding)| finding).collect()
}

/// Adds to findings the firewall rules that explain them, with the commands that remove the rules.
fn name_rules(paths: &[&PathReport], hosts: &[AuditedHost], findings: &mut [Finding]) {
    for path in paths {
        let six = path.to.address.is_ipv6();
        let mut of_path = findings
            .iter_mut()
            .filter(|finding| finding.host == path.from.host);
        let icmp: &[&str] = if six {
            &["icmpv6", "ipv6-icmp"]
        } else {
            &["icmp"]
        };
        let own = path.observations.acknowledged > Some(0);
        // A filter on this host, too, refuses in the name of this host.
        let by_others = |it: Unreachable| it.by != path.from.address || !it.is_of_a_filter();
        let refused = path.observations.unreachable.is_some_and(by_others);
        let udp: &[&str] = &["udp"];
        let Some((finding, host, protocols, hook)) = of_path.find_map(|finding| match finding.id {
            "too-big-dropped-here" => Some((finding, &path.from.host, icmp, "input")),
            // A filter of a host's own does not tell equal-cost paths apart.
            "path-dead" if !path.is_dead() => None,
            "path-dead" if own => Some((finding, &path.from.host, udp, "input")),
            "path-dead" if path.observations.arrived > Some(0) => {
                Some((finding, &path.to.host, udp, "input"))
            }
            // What another refuses has left this host.
            "path-dead" if refused => None,
            "path-dead" if path.observations.arrived == Some(0) => {
                Some((finding, &path.from.host, udp, "output"))
            }
            _ => None,
        }) else {
            continue;
        };
        let Some(host) = hosts.iter().find(|it| it.stack.host == *host) else {
            continue;
        };
        let rules = host
            .rules
            .iter()
            .filter(|rule| rule.drops(hook, protocols) && rule.may_match(six));
        let mut fix = Vec::new();
        for rule in rules {
            let met = rule
                .packets
                .map_or_else(String::new, |met| format!(", which met {met} packets"));
            let _ = write!(
                finding.evidence,
                ". Rule on {}{met}: `{}`",
                host.stack.host, rule.rule
            );
            let there = [format!("# the rule on {}:", host.stack.host)];
            let undo = rule.undo.iter().map(|undo| host.enter.command(undo));
            fix.extend(there.into_iter().chain(undo));
        }
        if finding.id == "path-dead" && !fix.is_empty() {
            finding.fix = fix;
        } else {
            finding.fix.extend(fix);
        }
    }
}

/// What the probes showed of the paths from a host, for the audit of that host.
fn probe_evidence(host: &str, paths: &[&PathReport]) -> ProbeEvidence {
    let mut narrow = paths.iter().filter(|path| path.from.host == host);
    let lossy = |path: &&&PathReport| path.loses_large_segments();
    let least = narrow
        .clone()
        .filter(|path| path.failing().next().is_some())
        .filter_map(|path| Some((path.mtu()?, path.to.address.is_ipv6())))
        .min();
    ProbeEvidence {
        lossy: narrow.any(|path| lossy(&path)),
        carries: least.map(|(mtu, six)| PathMtu { mtu, six }),
    }
}

/// Removes a tunnel's remotes without a route where packets of the path pass the tunnel: its socket must be in another
/// namespace. A VXLAN device reports that (`IFLA_LINK_NETNSID`), a Geneve device does not (drivers/net/geneve.c, Linux
/// 6.12).
fn forget_underlays_elsewhere(hosts: &mut [AuditedHost], paths: &[&PathReport]) {
    for path in paths.iter().filter(|path| path.mtu().is_some()) {
        let own = hosts
            .iter_mut()
            .find(|host| host.stack.host == path.from.host);
        let own = own.and_then(|host| host.stack.namespaces.first_mut());
        let (Some(own), Some(leaving)) = (own, &path.leaving) else {
            continue;
        };
        let device = own.devices.iter().find(|it| it.name == leaving.device);
        let Some(used) = device.map(|device| [Some(device.index), device.lower]) else {
            continue;
        };
        for device in &mut own.devices {
            if used.contains(&Some(device.index))
                && let Some(tunnel) = &mut device.tunnel
            {
                tunnel.remotes.retain(|remote| remote.device.is_some());
            }
        }
    }
}

/// Marks PMTU exceptions as stale where packets larger than the exception allows arrive.
fn tell_what_is_stale(hosts: &mut [AuditedHost], paths: &[&PathReport]) {
    for path in paths {
        let every = path.flows.iter().all(|flow| flow.kind.is_known());
        let (Some(mtu), true) = (path.mtu(), every) else {
            continue;
        };
        let own = hosts
            .iter_mut()
            .find(|host| host.stack.host == path.from.host);
        let Some(own) = own.and_then(|host| host.stack.namespaces.first_mut()) else {
            continue;
        };
        // Exceptions of a host that fragments come from its own tunnel, not from the path.
        if path.sender_fragmentation.is_some() {
            own.exceptions
                .retain(|it| it.destination != path.to.address);
        }
        for exception in &mut own.exceptions {
            if exception.destination == path.to.address && exception.mtu < mtu {
                exception.proven = Some(mtu);
            }
        }
    }
}

/// Removes the PMTU exceptions that the probes themselves caused by a router's too-big messages: the report on the path
/// says the same. Hosts on one machine see each other's exceptions.
fn forget_what_we_caused(hosts: &mut [AuditedHost], paths: &[&PathReport]) {
    let signalled =
        |flow: &crate::FlowReport| matches!(flow.kind, FlowKind::Known(Limit::Signalled { .. }));
    for path in paths {
        let told = path.flows.iter().any(signalled);
        // An exception that is not smaller than the required size says nothing new, even if an earlier check caused it.
        let allowed = |exception: &RouteException| told || exception.mtu >= path.required.bytes();
        let sender = hosts
            .iter()
            .find(|host| host.stack.host == path.from.host)
            .and_then(|host| Some((host.machine.clone(), host.stack.namespaces.first()?.inode)));
        let Some((machine, inode)) = sender else {
            continue;
        };
        // A too-big message from the destination's own address comes from a tunnel: a router of the underlay reported
        // to the namespace of the tunnel's socket.
        let from_tunnel = path
            .flows
            .iter()
            .any(|flow| matches!(flow.kind, FlowKind::Known(Limit::Signalled { by, .. }) if by == path.to.address));
        for host in hosts.iter_mut().filter(|host| host.machine == machine) {
            let is_own = host.stack.host == path.from.host;
            let remotes = if from_tunnel && is_own {
                tunnel_remotes(&host.stack.namespaces)
            } else {
                BTreeSet::new()
            };
            for (at, namespace) in host.stack.namespaces.iter_mut().enumerate() {
                namespace
                    .exceptions
                    .retain(|exception| !remotes.contains(&(at, exception.destination)));
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

/// Remotes of the tunnels of a host, each with the position of the namespace of its tunnel's socket: packets to the
/// remote leave from there.
fn tunnel_remotes(namespaces: &[Namespace]) -> BTreeSet<(usize, IpAddr)> {
    let namespaces = namespaces.iter().enumerate();
    namespaces
        .flat_map(|(at, namespace)| {
            let tunnels = namespace.devices.iter().filter_map(|it| it.tunnel.as_ref());
            tunnels.flat_map(move |tunnel| {
                let there = tunnel.socket.unwrap_or(at);
                tunnel.remotes.iter().map(move |it| (there, it.address))
            })
        })
        .collect()
}

/// Removes PMTU exceptions of destinations that are neither the other end of a path, in its sender's namespace, nor the
/// remote of a tunnel, in the namespace of the tunnel's socket. A host with many peers has many of those, and they say
/// nothing about this path.
fn forget_what_is_elsewhere(hosts: &mut [AuditedHost], paths: &[&PathReport]) {
    for host in hosts {
        let remotes = tunnel_remotes(&host.stack.namespaces);
        let own = paths
            .iter()
            .filter(|path| path.from.host == host.stack.host);
        let ends: BTreeSet<IpAddr> = own.map(|path| path.to.address).collect();
        for (at, namespace) in host.stack.namespaces.iter_mut().enumerate() {
            namespace.exceptions.retain(|exception| {
                let to = exception.destination;
                (at == 0 && ends.contains(&to)) || remotes.contains(&(at, to))
            });
        }
    }
}

/// Names the receiver's device as the cause of a PMTU black hole where the path carries just the MTU of that device.
/// Only for hosts on one link: with a router between them, the router may be the one that drops.
fn name_small_receivers(paths: &[PathReport], hosts: &[AuditedHost], findings: &mut [Finding]) {
    for path in paths {
        let (Some(back), Some(carried)) = (opposite(paths, path), path.mtu()) else {
            continue;
        };
        let Some((takes, way)) = back
            .leaving
            .as_ref()
            .and_then(|way| Some((way.device_mtu?, way)))
        else {
            continue;
        };
        let on_link = path
            .leaving
            .as_ref()
            .is_some_and(|way| way.router.is_none());
        let expected = matches!(path.required, RequiredMtu::Expected(_));
        let is_there = on_link
            && !expected
            && takes < path.required.bytes()
            && (takes..=takes + TAG_BYTES).contains(&carried);
        let finding = findings
            .iter_mut()
            .find(|finding| finding.id == "path-drops-silently" && finding.host == path.from.host);
        if let Some(finding) = finding.filter(|_| is_there) {
            let wanted = path.required.bytes();
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

/// Prefixes the commands of a finding so that they run in the namespace of the host.
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

/// Findings of the audits about devices, given what the probes showed. Hosts on one machine see each other's devices:
/// each device is reported once, by its own host where that was checked. `tcp-mtu-probing-off` is reported once, with
/// the commands for all hosts.
fn about_devices(hosts: &[AuditedHost], paths: &[&PathReport]) -> Vec<Finding> {
    let mut told: Vec<(Option<NetnsKey<'_>>, Finding)> = Vec::new();
    let pair: Vec<IpAddr> = paths
        .iter()
        .flat_map(|path| [path.from.address, path.to.address])
        .collect();
    for own in [true, false] {
        for host in hosts {
            let mut from = paths.iter().filter(|it| it.from.host == host.stack.host);
            let way = from.find_map(|path| path.leaving.as_ref());
            let devices = way.and_then(|way| devices_on_path(&host.stack, &way.device, &pair));
            let probes = probe_evidence(&host.stack.host, paths);
            for mut finding in wirecost_audit::judge_with_probes(&host.stack, &probes) {
                let is_own = finding.host == host.stack.host;
                if is_own != own {
                    continue;
                }
                let here = devices.as_ref();
                finding.elsewhere = here.is_some_and(|here| !concerns(&host.stack, &finding, here));
                let place = place(host, &finding);
                let again = told.iter_mut().find(|(other, known)| {
                    place.is_some()
                        && *other == place
                        && known.id == finding.id
                        && known.device == finding.device
                });
                let once = finding.id == "tcp-mtu-probing-off";
                match again {
                    Some((_, known)) => known.elsewhere &= finding.elsewhere,
                    None if once => match told.iter_mut().find(|(_, it)| it.id == finding.id) {
                        Some((_, known)) => known.fix.extend(finding.fix),
                        None => told.push((place, finding)),
                    },
                    None => told.push((place, finding)),
                }
            }
        }
    }
    told.into_iter().map(|(_, finding)| finding).collect()
}

/// A network namespace: its machine, and the namespace's inode number there.
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
