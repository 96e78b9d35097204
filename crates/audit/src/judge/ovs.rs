//! Open vSwitch: its tunnels have no MTU of their own, so the MTU of its ports is compared with the tunnels' underlay.

use super::tunnels::{path, underlay};
use super::{Findings, set_mtu};
use crate::snapshot::{HostStack, Namespace, Ovs, OvsInterface};

/// Encapsulation of OVN's Geneve packets: with an option of 8 bytes (ovn-architecture(7), "Tunnel Encapsulations").
const OVN: &str = "geneve:ovn";

pub(super) fn judge(stack: &HostStack, found: &mut Findings<'_>) {
    let (Some(ovs), Some(namespace)) = (&stack.ovs, stack.namespaces.first()) else {
        return;
    };
    for bridge in &ovs.bridges {
        for interface in &bridge.interfaces {
            if let (Some(wanted), Some(mtu)) = (interface.mtu_request, interface.mtu)
                && wanted != mtu
            {
                found.add(
                    "ovs-mtu-request-unmet",
                    Some(namespace),
                    Some(&interface.name),
                    format!(
                        "{} was asked for an MTU of {wanted} and has {mtu}",
                        interface.name
                    ),
                    vec![
                        format!(
                            "ovs-vsctl get Interface {} mtu mtu_request error",
                            interface.name
                        ),
                        format!(
                            "ovs-vsctl set Interface {} mtu_request={wanted}",
                            interface.name
                        ),
                    ],
                );
            }
        }
    }
    tunnels(namespace, ovs, found);
}

/// MTU of an interface that guests send through: internal ports and devices. `None` for tunnels and patch ports.
fn sender(interface: &OvsInterface) -> Option<u32> {
    let sends = matches!(
        interface.kind.as_str(),
        "" | "system" | "internal" | "dpdkvhostuserclient"
    );
    interface.mtu.filter(|_| sends)
}

fn tunnels(namespace: &Namespace, ovs: &Ovs, found: &mut Findings<'_>) {
    for bridge in &ovs.bridges {
        // A bridge's internal port has the default MTU and rarely an address.
        let largest = bridge
            .interfaces
            .iter()
            .filter(|interface| interface.name != bridge.name && !is_uplink(namespace, interface))
            .filter_map(|interface| Some((sender(interface)?, interface)))
            .max_by_key(|(mtu, _)| *mtu);
        let Some((mtu, guest)) = largest else {
            continue;
        };
        for tunnel in bridge
            .interfaces
            .iter()
            .filter(|interface| interface.is_tunnel())
        {
            let stack = stack_of(ovs, tunnel);
            let userspace = bridge.datapath == "netdev";
            exceeds(namespace, (guest, mtu), (tunnel, stack), userspace, found);
        }
    }
}

/// The encapsulation of a tunnel, in the notation of `wirecost overhead`.
pub(super) fn stack_of<'a>(ovs: &Ovs, tunnel: &'a OvsInterface) -> &'a str {
    match tunnel.kind.as_str() {
        "geneve" if ovs.is_ovn() => OVN,
        // Open vSwitch's GRE carries Ethernet; a key adds 4 bytes.
        "gre" | "ip6gre" if tunnel.options.contains_key("key") => "gretap:key",
        "gre" | "ip6gre" => "gretap",
        kind => kind,
    }
}

fn is_uplink(namespace: &Namespace, interface: &OvsInterface) -> bool {
    namespace
        .devices
        .iter()
        .any(|device| device.name == interface.name && device.physical)
}

fn exceeds(
    namespace: &Namespace,
    (guest, mtu): (&OvsInterface, u32),
    (tunnel, stack): (&OvsInterface, &str),
    userspace: bool,
    found: &mut Findings<'_>,
) {
    let Some(remote) = &tunnel.remote else { return };
    let (Some(under), Some(around)) = (underlay(namespace, remote), path(stack, remote.address))
    else {
        return;
    };
    let (Ok(needs), Ok(fits)) = (around.underlay_mtu(mtu), around.guest_mtu(under.mtu)) else {
        return;
    };
    if needs <= under.mtu {
        return;
    }
    let options = stack == OVN
        && path("geneve", remote.address)
            .and_then(|path| path.underlay_mtu(mtu).ok())
            .is_some_and(|needs| needs <= under.mtu);
    let id = if options {
        "geneve-options-not-counted"
    } else {
        "tunnel-exceeds-underlay"
    };
    if found.has(id, &guest.name) {
        return;
    }
    let mut evidence = format!(
        "{} sends up to {mtu} bytes into {} ({stack}): {needs} bytes to {}, and {} takes {}",
        guest.name, tunnel.name, remote.address, under.device.name, under.mtu
    );
    if options {
        evidence.push_str(". Without the 8 bytes of OVN's option they would fit");
    }
    if userspace {
        evidence.push_str(
            ". Larger packets are dropped without ICMP; only ovs-vswitchd's log reports it",
        );
    }
    let mut fix = vec![format!(
        "ovs-vsctl set Interface {} mtu_request={fits}",
        guest.name
    )];
    if stack == OVN {
        fix.push(format!(
            "# in OVN, for the guests: ovn-nbctl set DHCP_Options UUID options:mtu={fits}"
        ));
    }
    fix.push(format!(
        "# or, where every switch on the way carries it: {}",
        set_mtu(namespace, &under.device.name, needs)
    ));
    found.add(id, Some(namespace), Some(&guest.name), evidence, fix);
}
