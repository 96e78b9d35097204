//! OVN's logical network: the MTUs that OVN announces to guests and that its routers enforce, against what carries the
//! packets from this host.

use super::Findings;
use super::ovs::stack_of;
use super::tunnels::{path, underlay};
use crate::snapshot::{
    LogicalRouter, LogicalSwitch, Namespace, Northbound, Ovs, OvsInterface, RouterPort,
};

/// MTU of a guest that gets none by DHCP: Ethernet's, bytes.
const WITHOUT_OPTION: u32 = 1500;

pub(super) fn judge(
    namespace: &Namespace,
    ovs: &Ovs,
    tunnels: &[&OvsInterface],
    found: &mut Findings<'_>,
) {
    let Some(north) = &ovs.northbound else { return };
    let network = Network {
        north,
        ovs,
        tunnels: tightest(namespace, ovs, tunnels),
    };
    for switch in &north.switches {
        if let Some(carried) = network.carried(switch) {
            network.announced(namespace, switch, &carried, found);
        }
    }
    for router in &north.routers {
        for port in &router.ports {
            network.leaving(namespace, router, port, found);
        }
    }
    network.hosts(namespace, found);
}

/// The largest packet that the network below a logical switch carries.
#[derive(Debug, Clone)]
struct GuestMtuLimit {
    /// Size of the guests' IP packet, bytes.
    mtu: u32,
    /// What limits the size, in words.
    by: String,
}

/// The tunnel of this host with the least room for guests' packets.
fn tightest(namespace: &Namespace, ovs: &Ovs, tunnels: &[&OvsInterface]) -> Option<GuestMtuLimit> {
    let room = tunnels.iter().filter_map(|tunnel| {
        let remote = tunnel.remote.as_ref()?;
        let stack = stack_of(ovs, tunnel);
        let under = underlay(namespace, remote)?;
        let mtu = path(stack, remote.address)?.guest_mtu(under.mtu).ok()?;
        let by = format!(
            "{} ({stack}) through {}, MTU {}",
            tunnel.name, under.device.name, under.mtu
        );
        Some(GuestMtuLimit { mtu, by })
    });
    room.min_by_key(|carried| carried.mtu)
}

struct Network<'a> {
    north: &'a Northbound,
    ovs: &'a Ovs,
    tunnels: Option<GuestMtuLimit>,
}

impl Network<'_> {
    /// What the network below a switch carries; `None`: this host does not know.
    fn carried(&self, switch: &LogicalSwitch) -> Option<GuestMtuLimit> {
        match &switch.physical {
            None => self.tunnels.clone(),
            Some(physical) => self.uplink(physical),
        }
    }

    /// The smallest MTU on the bridge that a physical network is mapped to (ovn-controller(8), `ovn-bridge-mappings`).
    fn uplink(&self, physical: &str) -> Option<GuestMtuLimit> {
        let mappings = self.ovs.external_ids.get("ovn-bridge-mappings")?;
        let mut mappings = mappings.split(',').filter_map(|one| one.split_once(':'));
        let (_, name) = mappings.find(|(network, _)| network.trim() == physical)?;
        let mut bridges = self.ovs.bridges.iter();
        let bridge = bridges.find(|bridge| bridge.name == name.trim())?;
        let devices = bridge.interfaces.iter().filter_map(|interface| {
            let mtu = interface.mtu.filter(|_| interface.is_device())?;
            Some(GuestMtuLimit {
                mtu,
                by: format!("{} of {}, MTU {mtu}", interface.name, bridge.name),
            })
        });
        devices.min_by_key(|carried| carried.mtu)
    }

    fn port(&self, name: &str) -> Option<&RouterPort> {
        let mut ports = self.north.routers.iter().flat_map(|router| &router.ports);
        ports.find(|port| port.name == name)
    }

    /// The MTU of a switch's guests, bytes: the largest that is announced to them, else the largest of their devices on
    /// this host.
    fn guests(&self, switch: &LogicalSwitch) -> Option<u32> {
        let by_dhcp = switch
            .dhcp
            .iter()
            .map(|dhcp| dhcp.mtu.unwrap_or(WITHOUT_OPTION));
        let routers = switch.routers.iter().filter_map(|name| self.port(name));
        let by_routers = routers.filter_map(|port| port.advertised_mtu);
        let seen = || {
            let interfaces = self.ovs.bridges.iter().flat_map(|it| &it.interfaces);
            let here = interfaces.filter(|interface| {
                let port = interface.logical_port.as_ref();
                port.is_some_and(|port| switch.guests.contains(port))
            });
            here.filter_map(|interface| interface.mtu).max()
        };
        by_dhcp.chain(by_routers).max().or_else(seen)
    }

    fn nbctl(&self, set: &str) -> String {
        match &self.north.remote {
            None => format!("ovn-nbctl set {set}"),
            Some(remote) => format!("ovn-nbctl --db={remote} set {set}"),
        }
    }

    fn announced(
        &self,
        namespace: &Namespace,
        switch: &LogicalSwitch,
        carried: &GuestMtuLimit,
        found: &mut Findings<'_>,
    ) {
        let fits = carried.mtu;
        let mut said = Vec::new();
        let mut fix = Vec::new();
        for dhcp in &switch.dhcp {
            if dhcp.mtu.unwrap_or(WITHOUT_OPTION) > fits {
                said.push(match dhcp.mtu {
                    Some(mtu) => format!("DHCP ({}) says {mtu}", dhcp.cidr),
                    None => format!(
                        "DHCP ({}) says none, and guests take {WITHOUT_OPTION}",
                        dhcp.cidr
                    ),
                });
                fix.push(self.nbctl(&format!("DHCP_Options {} options:mtu={fits}", dhcp.uuid)));
            }
        }
        for port in switch.routers.iter().filter_map(|name| self.port(name)) {
            if let Some(mtu) = port.advertised_mtu.filter(|mtu| *mtu > fits) {
                said.push(format!("router advertisements of {} say {mtu}", port.name));
                let row = format!("Logical_Router_Port {}", port.name);
                fix.push(self.nbctl(&format!("{row} ipv6_ra_configs:mtu={fits}")));
            }
        }
        if said.is_empty() {
            return;
        }
        fix.push(
            "# then renew the guests' DHCP leases, or restart the guests: they keep the old MTU"
                .to_owned(),
        );
        found.add(
            "ovn-announced-mtu-exceeds-path",
            Some(namespace),
            Some(&switch.name),
            format!(
                "the MTU of guests at {}: {}. {} carries {fits}: larger packets to other hosts are lost, and no sender is \
                 told",
                switch.name,
                said.join("; "),
                carried.by
            ),
            fix,
        );
    }

    /// Judges the gateway MTU of a router's port against the network behind the port.
    fn leaving(
        &self,
        namespace: &Namespace,
        router: &LogicalRouter,
        port: &RouterPort,
        found: &mut Findings<'_>,
    ) {
        let mut switches = self.north.switches.iter();
        let Some(exit) = switches.find(|switch| switch.routers.contains(&port.name)) else {
            return;
        };
        let Some(carried) = self.carried(exit) else {
            return;
        };
        let fits = carried.mtu;
        let behind = self.behind(router, port, exit);
        let sent = behind.iter().filter_map(|switch| self.guests(switch)).max();
        let command = self.nbctl(&format!(
            "Logical_Router_Port {} options:gateway_mtu={fits}",
            port.name
        ));
        let guests = |mtu| format!("guests behind {} send up to {mtu} bytes", router.name);
        match port.gateway_mtu {
            Some(mtu) if mtu > fits && sent.is_none_or(|sent| sent > fits) => found.add(
                "ovn-gateway-mtu-exceeds-path",
                Some(namespace),
                Some(&port.name),
                format!(
                    "gateway_mtu of {} is {mtu}, and {} carries {fits} there: packets between {} and {mtu} bytes are lost \
                     without an ICMP message",
                    port.name,
                    carried.by,
                    fits + 1
                ),
                vec![command],
            ),
            Some(mtu) => {
                if let (Some(all), Some(sent)) = (&port.gateway_mtu_bypass, sent)
                    && sent > mtu
                {
                    found.add(
                        "ovn-gateway-mtu-bypassed",
                        Some(namespace),
                        Some(&port.name),
                        format!(
                            "{}, gateway_mtu of {} is {mtu}, and its gateway_mtu_bypass lets larger packets that match `{all}` \
                             through without an ICMP message",
                            guests(sent),
                            port.name
                        ),
                        vec![],
                    );
                }
            }
            None => {
                // Packets too large for the guests' own switch are lost there, not at this port.
                let arriving = behind.iter().filter_map(|switch| {
                    let sent = self.guests(switch)?;
                    Some(self.carried(switch).map_or(sent, |own| sent.min(own.mtu)))
                });
                if let Some(sent) = arriving.max().filter(|sent| *sent > fits) {
                    found.add(
                        "ovn-gateway-mtu-missing",
                        Some(namespace),
                        Some(&port.name),
                        format!(
                            "{}, and {} carries {fits} behind {}, which has no gateway_mtu: larger packets are lost without an \
                             ICMP message",
                            guests(sent),
                            carried.by,
                            port.name
                        ),
                        vec![command],
                    );
                }
            }
        }
    }

    /// The switches whose packets may leave `router` through `port`, except the switch at the port.
    fn behind(
        &self,
        router: &LogicalRouter,
        port: &RouterPort,
        exit: &LogicalSwitch,
    ) -> Vec<&LogicalSwitch> {
        let mut routers = vec![router];
        let mut switches: Vec<&LogicalSwitch> = Vec::new();
        let mut at = 0;
        while let Some(router) = routers.get(at).copied() {
            at += 1;
            for one in router.ports.iter().filter(|one| one.name != port.name) {
                let mut next: Vec<&str> = one.peer.as_deref().into_iter().collect();
                for switch in &self.north.switches {
                    let is_new = switch.name != exit.name
                        && switch.routers.contains(&one.name)
                        && !switches.iter().any(|known| known.name == switch.name);
                    if is_new {
                        switches.push(switch);
                        next.extend(switch.routers.iter().map(String::as_str));
                    }
                }
                for other in &self.north.routers {
                    let is_next = other
                        .ports
                        .iter()
                        .any(|it| next.contains(&it.name.as_str()));
                    if is_next && !routers.iter().any(|known| known.name == other.name) {
                        routers.push(other);
                    }
                }
            }
        }
        switches
    }

    /// Reports chassis that the northbound database names and the southbound one does not have.
    fn hosts(&self, namespace: &Namespace, found: &mut Findings<'_>) {
        let Some(chassis) = &self.ovs.chassis else {
            return;
        };
        let is_there = |name: &String| {
            let mut known = chassis.iter();
            known.any(|known| known.name == *name || known.hostname == *name)
        };
        let missing: Vec<String> = self
            .north
            .requested_chassis
            .iter()
            .filter(|(name, _)| !is_there(name))
            .map(|(name, what)| format!("{name} ({})", told(what)))
            .collect();
        if missing.is_empty() {
            return;
        }
        let known: Vec<&str> = chassis.iter().map(|known| known.name.as_str()).collect();
        found.add(
            "ovn-named-chassis-missing",
            Some(namespace),
            None,
            format!(
                "the northbound database asks for {}; the southbound one has {}",
                missing.join(", "),
                known.join(", ")
            ),
            vec![
                "# there: systemctl restart ovn-controller, and ovs-vsctl get open_vswitch . \
                 external-ids:system-id is to be that name"
                    .to_owned(),
            ],
        );
    }
}

/// The first of several names, and how many more there are.
fn told(what: &[String]) -> String {
    match what {
        [] => String::new(),
        [one] => one.clone(),
        [one, rest @ ..] => format!("{one} and {} more", rest.len()),
    }
}
