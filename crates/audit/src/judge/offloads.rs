//! Offloads and receive scaling: tunnel offloads that a NIC has and that are off, and receive offloads that damage
//! forwarded packets.

use std::ptr;

use super::{Findings, other_end, outside};
use crate::snapshot::{Device, HostStack, Namespace};

/// Queueing disciplines that drop, delay or reorder packets on purpose.
const IMPAIRS: &[&str] = &["netem"];
/// Receive overruns below this number are not reported: they may be long past.
const OVERRUNS: u64 = 100;

pub(super) fn judge(stack: &HostStack, found: &mut Findings<'_>) {
    for namespace in &stack.namespaces {
        for device in namespace.devices.iter().filter(|device| device.up) {
            lro(namespace, device, found);
            receive_checksum(stack, namespace, device, found);
            if IMPAIRS.contains(&device.qdisc.as_str()) {
                found.add(
                    "impairment-qdisc",
                    Some(namespace),
                    Some(&device.name),
                    format!(
                        "{} has {} as its queueing discipline",
                        device.name, device.qdisc
                    ),
                    vec![
                        namespace
                            .enter
                            .command(&format!("tc qdisc del dev {} root", device.name)),
                    ],
                );
            }
            if device.physical {
                receive(namespace, device, stack.cpus, found);
                carries_tunnels(stack, namespace, device, found);
            }
        }
    }
}

fn is_on(device: &Device, feature: &str) -> bool {
    device.features.get(feature).is_some_and(|state| state.on)
}

fn is_off_though_there(device: &Device, feature: &str) -> bool {
    let state = device.features.get(feature);
    state.is_some_and(|state| !state.on && state.changeable)
}

/// LRO on a device that forwards: merged packets cannot be segmented again as they were (net/core/dev.c,
/// `dev_disable_lro`).
fn lro(namespace: &Namespace, device: &Device, found: &mut Findings<'_>) {
    if !is_on(device, "rx-lro") {
        return;
    }
    let bridged = device
        .controller
        .and_then(|index| namespace.device(index))
        .filter(|controller| controller.kind == "bridge" || controller.kind == "openvswitch");
    let routes = ["ipv4.ip_forward", "ipv6.conf.all.forwarding"]
        .into_iter()
        .find(|name| namespace.number(name) == Some(1));
    let why = match (bridged, routes) {
        (Some(bridge), _) => format!("it is a port of {}", bridge.name),
        (None, Some(name)) => format!("net.{name} is 1"),
        (None, None) => return,
    };
    found.add(
        "lro-while-forwarding",
        Some(namespace),
        Some(&device.name),
        format!(
            "{} has large-receive-offload on, and {why}: merged packets are forwarded larger than received, and \
             dropped by the next device",
            device.name
        ),
        vec![
            namespace
                .enter
                .command(&format!("ethtool -K {} lro off", device.name)),
        ],
    );
}

/// Whether packets enter the host by this device: a NIC, or a veth that is not a guest's port. Packets of a guest on
/// this host have no checksum yet, and none is verified.
fn is_outermost(stack: &HostStack, device: &Device) -> bool {
    let is_port_of_guest = || device.controller.is_some() && other_end(stack, device).is_some();
    device.physical || (device.kind == "veth" && !is_port_of_guest())
}

fn receive_checksum(
    stack: &HostStack,
    namespace: &Namespace,
    device: &Device,
    found: &mut Findings<'_>,
) {
    if !is_outermost(stack, device) || !is_off_though_there(device, "rx-checksum") {
        return;
    }
    found.add(
        "receive-checksum-off",
        Some(namespace),
        Some(&device.name),
        format!(
            "{} could check the checksums of what it receives (rx-checksum), and that is off: a core reads every \
             packet in full to check it",
            device.name
        ),
        vec![
            namespace
                .enter
                .command(&format!("ethtool -K {} rx on", device.name)),
        ],
    );
}

fn receive(namespace: &Namespace, device: &Device, cpus: u32, found: &mut Findings<'_>) {
    let queues = &device.queues;
    if queues.rx == 1 && cpus > 1 && queues.rps == 0 {
        found.add(
            "one-receive-queue",
            Some(namespace),
            Some(&device.name),
            format!(
                "{} has one receive queue, no receive steering (RPS), and the host {cpus} cores",
                device.name
            ),
            vec![
                namespace
                    .enter
                    .command(&format!("ethtool -L {} combined {cpus}", device.name)),
                format!(
                    "# where the card has no more queues: echo {} > /sys/class/net/{}/queues/rx-0/rps_cpus",
                    mask(cpus),
                    device.name
                ),
            ],
        );
    }
    if let Some((now, most)) = queues.rx_ring
        && now < most
        && device.drops.rx_missed >= OVERRUNS
    {
        found.add(
            "receive-ring-overruns",
            Some(namespace),
            Some(&device.name),
            format!(
                "{} dropped {} packets because no receive descriptor was free: it uses {now} of {most}",
                device.name, device.drops.rx_missed
            ),
            vec![
                namespace
                    .enter
                    .command(&format!("ethtool -G {} rx {most}", device.name)),
            ],
        );
    }
}

/// A mask of the first `cpus` cores, with commas between each 32 of them: the kernel refuses more than eight digits
/// without one (lib/bitmap-str.c, `bitmap_parse`).
fn mask(cpus: u32) -> String {
    let full = cpus.saturating_sub(1) / 32;
    let highest = (1_u64 << (cpus - full * 32)) - 1;
    format!("{highest:x}{}", ",ffffffff".repeat(full as usize))
}

/// Whether tunnels leave through this NIC: `Some(true)` with an outer checksum, `Some(false)` without, `None` no
/// tunnels.
fn tunnels_over(stack: &HostStack, namespace: &Namespace, device: &Device) -> Option<bool> {
    let through = |remote: &crate::snapshot::Remote| {
        let mut at = remote.device;
        // Follow a VLAN, a bond or a bridge down to the NIC.
        for _ in 0..8 {
            let Some(index) = at else { return false };
            if index == device.index || device.controller == Some(index) {
                return true;
            }
            at = namespace.device(index).and_then(|device| device.lower);
        }
        false
    };
    // An index means a device of one namespace only.
    let is_here = |there: &Namespace| ptr::eq(there, namespace);
    let of_kernel = stack.namespaces.iter().flat_map(|inside| {
        let devices = inside.devices.iter();
        devices
            .filter(|device| device.up && matches!(device.kind.as_str(), "vxlan" | "geneve"))
            .filter_map(|device| device.tunnel.as_ref())
            .filter(move |tunnel| outside(stack, inside, tunnel).is_some_and(is_here))
            .filter(move |tunnel| tunnel.remotes.iter().any(through))
            .map(|tunnel| tunnel.udp_checksum)
    });
    // Open vSwitch's bridges are in the namespace that was read first.
    let of_ovs = stack
        .ovs
        .iter()
        .filter(|_| stack.namespaces.first().is_some_and(is_here))
        .flat_map(|ovs| &ovs.bridges)
        .flat_map(|bridge| &bridge.interfaces)
        .filter(|interface| matches!(interface.kind.as_str(), "vxlan" | "geneve"))
        .filter(|interface| interface.remote.as_ref().is_some_and(through))
        .map(|interface| {
            interface
                .options
                .get("csum")
                .is_some_and(|csum| csum == "true")
        });
    of_kernel.chain(of_ovs).max()
}

fn carries_tunnels(
    stack: &HostStack,
    namespace: &Namespace,
    device: &Device,
    found: &mut Findings<'_>,
) {
    let Some(checksum) = tunnels_over(stack, namespace, device) else {
        return;
    };
    let (id, feature, what) = if checksum {
        (
            "tunnel-checksum-segmentation-off",
            "tx-udp_tnl-csum-segmentation",
            "segmentation of tunnelled packets with an outer checksum",
        )
    } else {
        (
            "tunnel-segmentation-off",
            "tx-udp_tnl-segmentation",
            "segmentation of tunnelled packets",
        )
    };
    if is_off_though_there(device, feature) {
        found.add(
            id,
            Some(namespace),
            Some(&device.name),
            format!(
                "tunnels leave through {}, whose {what} ({feature}) is off: the processor cuts them",
                device.name
            ),
            vec![
                namespace
                    .enter
                    .command(&format!("ethtool -K {} {feature} on", device.name)),
            ],
        );
    }
    if is_off_though_there(device, "rx-gro") {
        found.add(
            "gro-off",
            Some(namespace),
            Some(&device.name),
            format!(
                "tunnels arrive through {}, whose generic receive offload is off: every packet is handled by itself",
                device.name
            ),
            vec![
                namespace
                    .enter
                    .command(&format!("ethtool -K {} gro on", device.name)),
            ],
        );
    }
}
