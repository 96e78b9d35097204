//! Routes and rules as rtnetlink messages.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteNextHop,
    RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};
use wirecost_model::ip::IpVersion;

use crate::netlink::{Intent, Netlink};

/// ICMP for IPv6 (RFC 4443, section 1): the library has no name for it.
const ICMPV6: i32 = 58;

/// Next hop of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextHop {
    /// Interface index of the device.
    pub(crate) device: u32,
    /// Address of the router; `None` where the destination is on the link.
    pub(crate) gateway: Option<IpAddr>,
}

/// Adds a route to a destination, an address and its prefix length in bits, by one next hop, or by several of equal
/// cost among which flows are divided. Packets larger than `mtu` bytes, where it is given, are not forwarded:
/// forwarding honours a route's MTU before the device's (include/net/ip.h, `ip_dst_mtu_maybe_forward`).
pub(crate) fn add(
    netlink: &mut Netlink,
    destination: (IpAddr, u8),
    hops: &[NextHop],
    mtu: Option<u32>,
) -> io::Result<()> {
    let message = message(destination, hops, mtu);
    netlink.apply(RouteNetlinkMessage::NewRoute(message), Intent::Create)
}

fn message(
    (destination, length): (IpAddr, u8),
    hops: &[NextHop],
    mtu: Option<u32>,
) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: family(destination),
        destination_prefix_length: length,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: match hops {
            [NextHop { gateway: None, .. }] => RouteScope::Link,
            _ => RouteScope::Universe,
        },
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    let attributes = &mut message.attributes;
    attributes.push(RouteAttribute::Destination(address(destination)));
    match hops {
        [hop] => {
            attributes.push(RouteAttribute::Oif(hop.device));
            attributes.extend(gateway(hop));
        }
        several => attributes.push(RouteAttribute::MultiPath(
            several.iter().map(member).collect(),
        )),
    }
    attributes.extend(mtu.map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)])));
    message
}

fn member(hop: &NextHop) -> RouteNextHop {
    let mut member = RouteNextHop::default();
    member.interface_index = hop.device;
    member.attributes.extend(gateway(hop));
    member
}

fn gateway(hop: &NextHop) -> Option<RouteAttribute> {
    hop.gateway.map(|via| RouteAttribute::Gateway(address(via)))
}

fn address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    }
}

const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Drops every ICMP message that this namespace itself would send, and none that it forwards: a rule for `iif lo`,
/// which matches locally generated packets (ip-rule(8)). Neighbour discovery still works, since its messages are not
/// routed (net/ipv6/ndisc.c).
pub(crate) fn drop_own_icmp(netlink: &mut Netlink, ip: IpVersion) -> io::Result<()> {
    let (family, protocol) = match ip {
        IpVersion::Ipv4 => (AddressFamily::Inet, IpProtocol::Icmp),
        IpVersion::Ipv6 => (AddressFamily::Inet6, IpProtocol::Other(ICMPV6)),
    };
    let mut message = RuleMessage::default();
    message.header.family = family;
    message.header.action = RuleAction::Blackhole;
    message.attributes = vec![
        RuleAttribute::Priority(10),
        RuleAttribute::Iifname("lo".to_owned()),
        RuleAttribute::IpProtocol(protocol),
    ];
    netlink.apply(RouteNetlinkMessage::NewRule(message), Intent::Create)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use netlink_packet_core::Emitable;

    use super::*;

    #[test]
    fn several_next_hops_are_one_route_with_its_mtu() {
        let destination = (IpAddr::from(Ipv4Addr::new(198, 18, 1, 2)), 32);
        let hop = |device, last| NextHop {
            device,
            gateway: Some(Ipv4Addr::new(198, 18, 64, last).into()),
        };
        let message = message(destination, &[hop(3, 2), hop(4, 6)], Some(1500));
        let mut bytes = vec![0; message.buffer_len()];
        message.emit(&mut bytes);
        let expected: Vec<u8> = [
            // struct rtmsg: AF_INET, /32, main table, RTPROT_STATIC, universe, unicast.
            &[2u8, 32, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0][..],
            &[8, 0, 1, 0, 198, 18, 1, 2], // RTA_DST
            &[36, 0, 9, 0],               // RTA_MULTIPATH
            &[16, 0, 0, 0, 3, 0, 0, 0, 8, 0, 5, 0, 198, 18, 64, 2],
            &[16, 0, 0, 0, 4, 0, 0, 0, 8, 0, 5, 0, 198, 18, 64, 6],
            &[12, 0, 8, 0, 8, 0, 2, 0, 0xdc, 5, 0, 0], // RTA_METRICS: RTAX_MTU 1500
        ]
        .concat();
        assert_eq!(bytes, expected);
    }
}
