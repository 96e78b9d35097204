//! Findings about flows without an answer, and flows that are undecided.

use wirecost_audit::Finding;

use super::{add, device_of, ends, ports};
use crate::report::{FlowKind, FlowReport, PathReport, ReachabilityHint};

pub(super) fn judge(path: &PathReport, back: Option<&PathReport>, found: &mut Vec<Finding>) {
    let dead: Vec<_> = of_kind(path, |kind| kind == FlowKind::Dead);
    let undecided: Vec<_> = of_kind(path, |kind| kind == FlowKind::Undecided);
    if !dead.is_empty() {
        let (evidence, fix) = death(path, back, &dead);
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

/// What it means that flows get no answer, and where to look.
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
    match path.hint {
        Some(ReachabilityHint::NoNeighbour(next)) => {
            let device = device_of(path);
            let asks = if next.is_ipv6() {
                "neighbour solicitations"
            } else {
                "ARP requests"
            };
            let evidence = format!(
                "{ends}: no answer, not even to small packets: nobody answers {asks} for {next} on {device}, so that nothing \
                 leaves this host"
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
        None if back.is_some_and(|back| {
            matches!(
                back.hint,
                Some(ReachabilityHint::NoRoute | ReachabilityHint::NoNeighbour(_))
            )
        }) =>
        {
            let other = &path.to.host;
            let evidence = format!(
                "{ends}: no answer, not even to small packets; {other} cannot send any (see its own finding)"
            );
            (evidence, vec![format!("# see path-dead on {other}")])
        }
        None => (
            format!("{ends}: no answer, not even to small packets, nor to echo requests (ICMP)"),
            vec![route, rules, others],
        ),
    }
}

fn of_kind(path: &PathReport, wanted: impl Fn(FlowKind) -> bool) -> Vec<&FlowReport> {
    path.flows.iter().filter(|flow| wanted(flow.kind)).collect()
}
