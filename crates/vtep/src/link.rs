//! What is needed of rtnetlink(7): devices, a veth pair, and the neighbour entry of the next hop.

use std::io;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::Duration;

use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteMetric, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use wirecost_netlink::{Intent, Netlink};

/// A device as the kernel describes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) mtu: u32,
    pub(crate) mac: [u8; 6],
    /// Whether its frames have an Ethernet header.
    pub(crate) is_ethernet: bool,
}

/// The next hop towards a remote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextHop {
    pub(crate) mac: Option<[u8; 6]>,
    pub(crate) mtu: Option<u32>,
}

/// Number of times that a neighbour is looked up, and the interval. A neighbour that exists answers
/// within microseconds, but an IPv6 interface that has just come up takes a second or two until it
/// does.
const ASKS: usize = 300;
const BETWEEN_ASKS: Duration = Duration::from_millis(10);

/// An rtnetlink connection to the namespace in which it was opened.
pub(crate) struct Links {
    netlink: Netlink,
}

impl Links {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            netlink: Netlink::open()?,
        })
    }

    pub(crate) fn device(&mut self, name: &str) -> io::Result<Device> {
        let ask = RouteNetlinkMessage::GetLink(named(name));
        let answer = self.netlink.get(ask)?;
        let Some(RouteNetlinkMessage::NewLink(link)) = answer else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let mut device = Device {
            index: link.header.index,
            mtu: 0,
            mac: [0; 6],
            is_ethernet: matches!(
                link.header.link_layer_type,
                LinkLayerType::Ether | LinkLayerType::Loopback
            ),
        };
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => device.mtu = *mtu,
                LinkAttribute::Address(mac) => {
                    device.mac = mac.as_slice().try_into().unwrap_or_default();
                }
                _ => {}
            }
        }
        Ok(device)
    }

    /// Makes a veth pair of this MTU, with both ends in this namespace.
    pub(crate) fn create_pair(&mut self, names: [&str; 2], mtu: u32) -> io::Result<()> {
        let [mut own, peer] = names.map(|name| {
            let mut link = named(name);
            link.attributes.push(LinkAttribute::Mtu(mtu));
            link
        });
        own.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.netlink
            .apply(RouteNetlinkMessage::NewLink(own), Intent::Create)
    }

    pub(crate) fn bring_up(&mut self, name: &str) -> io::Result<()> {
        let mut link = named(name);
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.netlink
            .apply(RouteNetlinkMessage::SetLink(link), Intent::Change)
    }

    pub(crate) fn remove(&mut self, name: &str) -> io::Result<()> {
        let delete = RouteNetlinkMessage::DelLink(named(name));
        self.netlink.apply(delete, Intent::Change)
    }

    /// The next hop's MAC address on the route to `address` through `device`, and the MTU of that
    /// route. The MAC address is `None` if the neighbour has not answered yet; the kernel is made
    /// to resolve it.
    ///
    /// # Errors
    /// `ENETUNREACH` or `EHOSTUNREACH` if there is no route.
    pub(crate) fn next_hop(&mut self, address: IpAddr, device: u32) -> io::Result<NextHop> {
        let route = self.route(address, device)?;
        let mtu = route
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                RouteAttribute::Metrics(metrics) => {
                    metrics.iter().find_map(|metric| match metric {
                        RouteMetric::Mtu(mtu) => Some(*mtu),
                        _ => None,
                    })
                }
                _ => None,
            });
        let hop = route.attributes.iter().find_map(gateway);
        let hop = hop.unwrap_or(address);
        for _ in 0..ASKS {
            if let Some(mac) = self.neighbour(hop, device)? {
                return Ok(NextHop {
                    mac: Some(mac),
                    mtu,
                });
            }
            // Makes the kernel resolve the neighbour, as a packet to it would (net/core/neighbour.c, NTF_USE).
            let mut use_it = neighbour(hop, device);
            use_it.header.flags = NeighbourFlags::Use;
            let ask = RouteNetlinkMessage::NewNeighbour(use_it);
            self.netlink.apply(ask, Intent::Replace)?;
            sleep(BETWEEN_ASKS);
        }
        Ok(NextHop { mac: None, mtu })
    }

    fn neighbour(&mut self, hop: IpAddr, device: u32) -> io::Result<Option<[u8; 6]>> {
        let ask = RouteNetlinkMessage::GetNeighbour(neighbour(hop, device));
        let answer = match self.netlink.get(ask) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let Some(RouteNetlinkMessage::NewNeighbour(found)) = answer else {
            return Ok(None);
        };
        // States with a valid address: NUD_VALID of include/net/neighbour.h.
        let valid = [
            NeighbourState::Permanent,
            NeighbourState::Noarp,
            NeighbourState::Reachable,
            NeighbourState::Probe,
            NeighbourState::Stale,
            NeighbourState::Delay,
        ];
        if !valid.contains(&found.header.state) {
            return Ok(None);
        }
        Ok(found
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                NeighbourAttribute::LinkLayerAddress(mac) => mac.as_slice().try_into().ok(),
                _ => None,
            }))
    }

    fn route(&mut self, address: IpAddr, device: u32) -> io::Result<RouteMessage> {
        let mut message = RouteMessage::default();
        let (family, bits, destination) = match address {
            IpAddr::V4(v4) => (AddressFamily::Inet, 32, RouteAddress::Inet(v4)),
            IpAddr::V6(v6) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(v6)),
        };
        message.header.address_family = family;
        message.header.destination_prefix_length = bits;
        message.attributes = vec![
            RouteAttribute::Destination(destination),
            RouteAttribute::Oif(device),
        ];
        match self.netlink.get(RouteNetlinkMessage::GetRoute(message))? {
            Some(RouteNetlinkMessage::NewRoute(route)) => Ok(route),
            _ => Err(io::ErrorKind::NetworkUnreachable.into()),
        }
    }
}

/// The next router, where an attribute of a route has it: also one with an IPv6 address on a route of IPv4
/// (`via inet6`, `RTA_VIA`).
fn gateway(attribute: &RouteAttribute) -> Option<IpAddr> {
    match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(v4))
        | RouteAttribute::Via(RouteVia::Inet(v4)) => Some(IpAddr::V4(*v4)),
        RouteAttribute::Gateway(RouteAddress::Inet6(v6))
        | RouteAttribute::Via(RouteVia::Inet6(v6)) => Some(IpAddr::V6(*v6)),
        _ => None,
    }
}

fn named(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(name.to_owned()));
    message
}

fn neighbour(hop: IpAddr, device: u32) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.ifindex = device;
    let (family, destination) = match hop {
        IpAddr::V4(v4) => (AddressFamily::Inet, NeighbourAddress::Inet(v4)),
        IpAddr::V6(v6) => (AddressFamily::Inet6, NeighbourAddress::Inet6(v6)),
    };
    message.header.family = family;
    message.attributes = vec![NeighbourAttribute::Destination(destination)];
    message
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn the_next_router_of_a_route_may_be_of_the_other_ip_version() {
        let four = RouteAttribute::Gateway(RouteAddress::Inet(Ipv4Addr::LOCALHOST));
        assert_eq!(gateway(&four), Some(Ipv4Addr::LOCALHOST.into()));
        let six = RouteAttribute::Via(RouteVia::Inet6(Ipv6Addr::LOCALHOST));
        assert_eq!(gateway(&six), Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(gateway(&RouteAttribute::Oif(2)), None);
    }
}
