//! The specification of a lab host.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wirecost_model::cell::Network;
use wirecost_model::logical::Topology;

use crate::names::{Side, guest_port, prefix};
use crate::{addresses, underlay};

/// One lab host: an underlay device, a bridge, guests behind it, and a tunnel where the network has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Which of the two.
    pub side: Side,
    /// MTU, rate, encapsulation, IP versions, guests, and what is between the hosts.
    pub network: Network,
    /// Cores that handle what the underlay receives, on each of its queues; `None` leaves it to the core that
    /// sent it.
    pub receive_cpus: Option<Vec<u32>>,
    /// Microseconds between two releases of the line, where there is one and what emulates it takes steps.
    pub release_us: u32,
    /// Whether some network of the run has several links: then every line is emulated as these are.
    #[serde(default)]
    pub several_links: bool,
    /// The core that the line's work is done on, which is none of a host's; `None` leaves it to the host that sends.
    pub line_core: Option<u32>,
    /// Of the tunnel's ends at host a and host b, drawn for each lab; a tunnel that does not encrypt has no use for them.
    pub secrets: [EndSecret; 2],
    /// Instead of an underlay that is made: the addresses that hosts a and b have on a network of their own.
    pub own_underlay: Option<[IpAddr; 2]>,
}

/// What one end of a tunnel that encrypts keeps to itself. A lab's hosts know both: neither has to ask the other.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSecret(pub [u8; 32]);

/// Not shown.
impl fmt::Debug for EndSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndSecret")
    }
}

/// A router's port in a subnet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouterEnd {
    /// Its address there.
    pub address: IpAddr,
    /// Length of the subnet's prefix, bits.
    pub prefix: u8,
    /// Its hardware address.
    pub mac: [u8; 6],
}

impl HostSpec {
    /// The host's address on the underlay, used where the path is tunnelled.
    pub fn underlay_address(&self) -> IpAddr {
        self.address_of(self.side)
    }

    /// The other host's.
    pub fn underlay_peer(&self) -> IpAddr {
        self.address_of(self.side.other())
    }

    fn address_of(&self, side: Side) -> IpAddr {
        match (self.own_underlay, side) {
            (Some([a, _]), Side::A) => a,
            (Some([_, b]), Side::B) => b,
            (None, side) => {
                let place = underlay::place(&self.network.transit, side);
                place.address(self.network.underlay_ip)
            }
        }
    }

    /// The secret of this host's end of the tunnel, and the other's.
    pub(crate) const fn end_secrets(&self) -> (&EndSecret, &EndSecret) {
        let [a, b] = &self.secrets;
        match self.side {
            Side::A => (a, b),
            Side::B => (b, a),
        }
    }

    /// The hardware address that the underlay knows the host by.
    pub fn underlay_mac(&self) -> [u8; 6] {
        underlay::place(&self.network.transit, self.side).mac()
    }

    /// Who is across the host's link of the underlay, by address and hardware address: the other host, or what passes
    /// packets on to it.
    pub fn next_hop(&self) -> (IpAddr, [u8; 6]) {
        let across = underlay::place(&self.network.transit, self.side).across();
        (across.address(self.network.underlay_ip), across.mac())
    }

    /// The hardware addresses of the guests of one side, by number: known to both hosts without asking.
    pub fn guest_macs(&self, side: Side) -> Vec<[u8; 6]> {
        let macs = (0..self.network.guests).map(|number| addresses::guest_mac(side, number));
        macs.collect()
    }

    /// The host's ends of the guests' devices, by number.
    pub fn guest_ports(&self) -> Vec<String> {
        (0..self.network.guests as usize).map(guest_port).collect()
    }

    /// The guests' addresses, by number.
    pub fn guest_addresses(&self) -> Vec<IpAddr> {
        self.guest_addresses_of(self.side)
    }

    /// The addresses of the guests of one side, by number.
    pub fn guest_addresses_of(&self, side: Side) -> Vec<IpAddr> {
        let ip = self.network.guest_ip;
        let routed = self.logical_router(side).is_some();
        let address = |number| {
            if routed {
                addresses::routed_guest(ip, side, number)
            } else {
                addresses::guest(ip, side, number)
            }
        };
        (0..self.network.guests).map(address).collect()
    }

    /// The logical router's end in the guests' subnet of one side, where OVN routes between the two.
    pub fn logical_router(&self, side: Side) -> Option<RouterEnd> {
        let network = &self.network;
        let routes = network.datapath.is_ovn() && network.logical.topology == Topology::Routed;
        let address = addresses::logical_router(network.guest_ip, side);
        routes.then(|| RouterEnd {
            address,
            prefix: prefix(address),
            mac: addresses::logical_router_mac(side),
        })
    }
}
