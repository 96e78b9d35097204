//! Findings about flows without an answer, and flows that are undecided.

use wirecost_audit::Finding;

use super::{add, checksums, device_of, ends, ports};
use crate::observations::Unreachable;
use crate::report::{FlowKind, FlowReport, PathReport, ReachabilityHint, Stream};

pub(super) fn judge(path: &PathReport, back: Option<&PathReport>, found: &mut Vec<Finding>) {
    let dead: Vec<_> = of_kind(path, |kind| kind == FlowKind::Dead);
    let undecided: Vec<_> = of_kind(path, |kind| kind == FlowKind::Undecided);
    if path.is_dead() && path.bad_checksums >= checksums::DEAD {
        checksums::every_one(path, found);
    } else if !dead.is_empty() {
        let (mut evidence, fix) = death(path, back, &dead);
        if path.stream == Some(Stream::Passed) {
            evidence.push_str(". TCP passes, in full segments: only UDP does not");
        }
        add(found, "path-dead", path, evidence, fix);
    }
    if !undecided.is_empty() {
        let least = undecided.iter().filter_map(|flow| flow.mtu).min();
        let passes = least.map_or_else(String::new, |mtu| format!("; {mtu} bytes pass"));
        add(
            found,
            "path-undecided",
            path,
            format!(
                "{}: on {} of {} flows the path MTU is undecided (loss, no further answers, or the limit on time or \
                 datagrams){passes}: source ports {}",
                ends(path),
                undecided.len(),
                path.flows.len(),
                ports(&undecided)
            ),
            vec![
                "# look for random loss first: ip -s link, and the counters of the switches".into(),
            ],
        );
    }
}

/// Evidence and fix of the finding that flows get no answer.
fn death(
    path: &PathReport,
    back: Option<&PathReport>,
    dead: &[&FlowReport],
) -> (String, Vec<String>) {
    let (ends, port) = (ends(path), path.port);
    let route = path.route_command();
    let rules = "nft list ruleset".to_owned();
    let others = "# and what filters between the hosts: security groups, a distributed firewall, network policies"
        .to_owned();
    if dead.len() < path.flows.len() {
        let evidence = format!(
            "{ends}: {} of {} flows get no answer, not even to small packets: source ports {}",
            dead.len(),
            path.flows.len(),
            ports(dead)
        );
        let look = "# one of several equal paths is dead: look at each link or member".to_owned();
        return (evidence, vec![look, rules]);
    }
    if back.is_some_and(|back| back.bad_checksums >= checksums::DEAD) {
        let evidence = format!(
            "{ends}: no answer, not even to small packets: what comes back arrives with a wrong UDP checksum"
        );
        let look = format!("# see bad-checksums on {}", path.to.host);
        return (evidence, vec![look]);
    }
    if let Some(unreachable) = &path.observations.unreachable {
        return refusal(path, unreachable);
    }
    if path.observations.acknowledged > Some(0) {
        let evidence = format!(
            "{ends}: no answer, not even to small packets: answers arrive at this host's device, and its own filter drops them"
        );
        return (evidence, vec![rules]);
    }
    let cannot_send = |one: &PathReport| {
        matches!(
            one.hint,
            Some(ReachabilityHint::NoRoute | ReachabilityHint::NoNeighbour(_))
        )
    };
    if !cannot_send(path) && back.is_some_and(cannot_send) {
        let other = &path.to.host;
        let evidence = format!(
            "{ends}: no answer, not even to small packets; {other} cannot send any (see its own finding)"
        );
        return (evidence, vec![format!("# see path-dead on {other}")]);
    }
    if path.observations.arrived > Some(0) {
        return lost_there(path, back);
    }
    match path.hint {
        Some(ReachabilityHint::NoNeighbour(next)) => {
            let device = device_of(path);
            let asks = if next.is_ipv6() {
                "neighbour solicitations"
            } else {
                "ARP requests"
            };
            let evidence = format!(
                "{ends}: no answer, not even to small packets: no host answers {asks} for {next} on {device}, so that no \
                 packet leaves this host"
            );
            let look = format!(
                "# whether {next} is up, has that address and mask, and is on the same link and VLAN"
            );
            let neighbour = format!("ip neigh show to {next} dev {device}");
            (evidence, vec![neighbour, look])
        }
        Some(ReachabilityHint::NoRoute) => (
            format!("{ends}: the sender has no route to {}", path.to.address),
            vec![route, "# then the missing route or address".to_owned()],
        ),
        Some(ReachabilityHint::OtherPort(other)) => (
            format!(
                "{ends}: no answer on UDP port {port}, not even to small packets, while port {other} is answered: \
                 something drops UDP to port {port}"
            ),
            vec![rules, others],
        ),
        Some(ReachabilityHint::Echo) => (
            format!(
                "{ends}: no answer to UDP, not even to small packets, while echo requests (ICMP) are answered: something \
                 drops UDP"
            ),
            vec![rules, others],
        ),
        None => (
            format!("{ends}: no answer, not even to small packets, nor to echo requests (ICMP)"),
            vec![route, rules, others],
        ),
    }
}

/// Evidence and fix where probes arrive at the other host's device, and no answer comes back.
fn lost_there(path: &PathReport, back: Option<&PathReport>) -> (String, Vec<String>) {
    let other = &path.to.host;
    let arrive = format!(
        "{}: no answer, not even to small packets: they arrive at the device of {other}",
        ends(path)
    );
    let unreachable = back.and_then(|back| back.observations.unreachable.as_ref());
    let heard = back.is_some_and(|back| back.observations.acknowledged > Some(0));
    if let Some(unreachable) = unreachable {
        let why = format!(
            "{arrive}, and its answers are refused by {}",
            unreachable.by
        );
        return (why, vec![format!("# see path-dead on {other}")]);
    }
    let rules = format!("# on {other}: nft list ruleset");
    if heard {
        // The other host receives answers to its own probes, so the path is open in both directions.
        return (
            format!("{arrive}, whose own filter drops them"),
            vec![rules],
        );
    }
    (
        format!("{arrive}, whose own filter drops them, or the answers are lost on the way back"),
        vec![rules],
    )
}

/// Evidence and fix where an ICMP destination unreachable message refuses the probes.
pub(crate) fn refusal(path: &PathReport, unreachable: &Unreachable) -> (String, Vec<String>) {
    let who = if unreachable.by == path.to.address {
        format!("{} itself ({})", path.to.host, unreachable.by)
    } else {
        unreachable.by.to_string()
    };
    let kind = if unreachable.by.is_ipv6() { 1 } else { 3 };
    let evidence = format!(
        "{}: {who} refuses them by ICMP: {} (type {kind}, code {})",
        ends(path),
        unreachable.words(),
        unreachable.code
    );
    let look = format!(
        "# on {who}: its filter and its routes: nft list ruleset; ip route get {}",
        path.to.address
    );
    (evidence, vec![look])
}

fn of_kind(path: &PathReport, wanted: impl Fn(FlowKind) -> bool) -> Vec<&FlowReport> {
    path.flows.iter().filter(|flow| wanted(flow.kind)).collect()
}
