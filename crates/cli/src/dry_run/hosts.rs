//! Where a run would take place, in words: cores of the lab, or hosts and what is built on them.

use std::fmt::Write as _;

use wirecost_control::experiment::{PORTS, guest_addresses};
use wirecost_model::cell::{Experiment, Network};
use wirecost_model::datapath::Datapath;
use wirecost_model::plan::{Cores, Encapsulation, HostPair, Hosts, NamedPair, Plan};

use super::document::Document;

/// The hosts, and for a lab their cores.
pub(super) fn hosts(document: &Document<'_>, plan: &Plan) -> String {
    if plan.hosts != Hosts::Lab {
        return match plan.host_pairs() {
            Some(pairs) if plan.pairs.is_empty() => {
                let HostPair { a, b } = &pairs[0].hosts;
                format!("Between {a} and {b}, on all of their cores.")
            }
            Some(pairs) => {
                let mut text = "Between hosts, on all of their cores:".to_owned();
                for NamedPair { names, hosts } in pairs {
                    // Writing to a string does not fail.
                    let _ = write!(text, "\n  {names}: {} and {}", hosts.a, hosts.b);
                }
                text
            }
            None => "Between the hosts of --hosts.".to_owned(),
        };
    }
    let list = |host: &str| {
        let cpus = document.cpus.get(host).copied().unwrap_or_default();
        cpus.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (document.cores, plan.cores) {
        (Cores::Split, _) => format!(
            "Host a on core {}, host b on core {}.",
            list("a"),
            list("b")
        ),
        (Cores::Shared, Cores::Split) => format!(
            "Both hosts on core {}: with a single core, the CPU of sender and receiver cannot be separated.",
            list("a")
        ),
        (Cores::Shared, Cores::Shared) => format!("Both hosts on core {}.", list("a")),
    }
}

/// What a plan with tunnels builds on the hosts, one line for each network; empty for other plans.
pub(super) fn built_on_hosts(experiment: &Experiment) -> Vec<String> {
    if !experiment.plan.hosts.is_tunnel() {
        return Vec::new();
    }
    let mut networks: Vec<&Network> = experiment.cells.iter().map(|cell| &cell.network).collect();
    networks.sort_unstable();
    networks.dedup();
    let head = "Built on each, in a network namespace that is removed when the run ends; devices, addresses and routes \
                of the hosts themselves stay as they are:";
    let attached = attached_to_hosts(experiment);
    let lines = networks.into_iter().map(|network| {
        let [a, b] = guest_addresses(network).map(|addresses| {
            let first = addresses
                .first()
                .map(ToString::to_string)
                .unwrap_or_default();
            match addresses.len() {
                0 | 1 => first,
                more => format!("{first} and {} more", more - 1),
            }
        });
        let between = match network.datapath {
            Datapath::Ebpf => "eBPF",
            _ if network.encapsulation.is_routed() => "routes to them",
            _ => "a bridge",
        };
        format!(
            "  guests {a} (host a), {b} (host b); {between}; {}{}",
            network.encapsulation,
            ways_out(network)
        )
    });
    std::iter::once(head.to_owned())
        .chain(lines)
        .chain(attached.map(str::to_owned))
        .collect()
}

/// What a plan with tunnels changes on the hosts themselves; `None` where it changes nothing.
pub(crate) fn attached_to_hosts(experiment: &Experiment) -> Option<&'static str> {
    let mut cells = experiment.cells.iter();
    let ebpf = cells.any(|cell| cell.network.datapath == Datapath::Ebpf);
    (experiment.plan.hosts.is_tunnel() && ebpf).then_some(
        "Except with eBPF: for such a cell, and until another tunnel is measured, a program is attached to the device of \
         each host that has its address, and everything that the device receives passes it; the guests' ports \
         (`wcPIDgNUMBER`) are in the host's own network namespace. Both end with the agent.",
    )
}

/// What distinguishes a tunnel's packets on the hosts' network: VNI and UDP port, or IP protocol.
fn ways_out(network: &Network) -> String {
    let else_first = format!("or the first free of {} to {}", PORTS.start(), PORTS.end());
    match (&network.encapsulation, network.encapsulation.udp()) {
        (Encapsulation::Wireguard(tunnel), _) => format!(", UDP port {} {else_first}", tunnel.port),
        (_, Some(udp)) => format!(", VNI {}, UDP port {} {else_first}", udp.vni, udp.port),
        (Encapsulation::Ipip(_), _) => ", IP protocol 4 or 41".to_owned(),
        _ => ", IP protocol 47".to_owned(),
    }
}
