//! The specification of a lab host.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wirecost_model::cell::Network;
use wirecost_model::logical::Topology;

use crate::names::{Side, prefix};
use crate::{addresses, underlay};

/// One lab host: an underlay device, a bridge, guests behind it, and a tunnel where the network has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSpec {
    /// Which of the two hosts.
    pub side: Side,
    /// MTU, rate, encapsulation, IP versions, guests, and what is between the hosts.
    pub network: Network,
    /// Cores that process what the underlay device receives, on each of its queues; `None`: the core that sent a packet
    /// processes it.
    pub receive_cpus: Option<Vec<u32>>,
    /// Microseconds between two releases of packets by the line, where there is one and its emulation works in steps.
    pub release_us: u32,
    /// Whether some network of the run has several links: every line is then emulated as those are.
    #[serde(default)]
    pub several_links: bool,
    /// Core that does the line's work, which no host uses; `None`: the sending host's cores do it.
    pub line_core: Option<u32>,
    /// Secrets of the tunnel's ends at host a and host b, drawn for each lab; not used by a tunnel that does not
    /// encrypt.
    pub secrets: [EndSecret; 2],
    /// Addresses of hosts a and b on an existing network, in place of an underlay that the lab creates.
    #[serde(rename = "own_underlay")]
    pub existing_underlay: Option<[IpAddr; 2]>,
}

/// Private key of one end of a tunnel that encrypts. A lab's hosts know both keys: neither has to ask the other.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSecret(pub [u8; 32]);

/// Does not show the key.
impl fmt::Debug for EndSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndSecret")
    }
}

/// A router's port in a subnet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouterPort {
    /// Address of the port.
    pub address: IpAddr,
    /// Length of the subnet's prefix, bits.
    pub prefix: u8,
    /// Hardware address of the port.
    pub mac: [u8; 6],
}

impl HostSpec {
    /// The host's address on the underlay, used where the path is tunnelled.
    pub fn underlay_address(&self) -> IpAddr {
        self.address_of(self.side)
    }

    /// The other host's address on the underlay.
    pub fn underlay_peer(&self) -> IpAddr {
        self.address_of(self.side.other())
    }

    fn address_of(&self, side: Side) -> IpAddr {
        match (self.existing_underlay, side) {
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

    /// The host's hardware address on the underlay.
    pub fn underlay_mac(&self) -> [u8; 6] {
        underlay::place(&self.network.transit, self.side).mac()
    }

    /// Address and hardware address of the other end of the host's underlay link: the other host, or the router towards
    /// it.
    pub fn next_hop(&self) -> (IpAddr, [u8; 6]) {
        let across = underlay::place(&self.network.transit, self.side).across();
        (across.address(self.network.underlay_ip), across.mac())
    }

    /// Hardware addresses of one side's guests, by number: fixed, so that both hosts know them without asking.
    pub fn guest_macs(&self, side: Side) -> Vec<[u8; 6]> {
        let macs = (0..self.network.guests).map(|number| addresses::guest_mac(side, number));
        macs.collect()
    }

    /// Addresses of this host's guests, by number.
    pub fn guest_addresses(&self) -> Vec<IpAddr> {
        self.guest_addresses_of(self.side)
    }

    /// Addresses of one side's guests, by number.
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
    pub fn logical_router(&self, side: Side) -> Option<RouterPort> {
        let network = &self.network;
        let routes = network.datapath.is_ovn() && network.logical.topology == Topology::Routed;
        let address = addresses::logical_router(network.guest_ip, side);
        routes.then(|| RouterPort {
            address,
            prefix: prefix(address),
            mac: addresses::logical_router_mac(side),
        })
    }
}
