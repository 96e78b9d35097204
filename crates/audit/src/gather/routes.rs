//! Routes: the device that packets to an address leave through, MTUs of routes, and exceptions learned from ICMP
//! too-big messages (include/uapi/linux/rtnetlink.h); and the remotes in a VXLAN device's forwarding database.

use std::io;
use std::net::IpAddr;

use wirecost_netlink::raw::Raw;
use wirecost_sys::socket::vrf_index;

use super::attributes::{Attributes, attribute};
use super::tunnels::OuterFlow;
use crate::snapshot::{IpRoute, Neighbour, Remote, RouteException, RouteMtu};

const GETROUTE: u16 = 26;
const GETNEIGH: u16 = 30;
/// Sizes of struct rtmsg and struct ndmsg, bytes.
const RTMSG: usize = 12;
const NDMSG: usize = 12;
const AF_INET: u8 = 2;
const AF_BRIDGE: u8 = 7;
const AF_INET6: u8 = 10;
/// The entry is an exception, not a route (`RTM_F_CLONED`).
const CLONED: u32 = 0x200;
/// Request flag: return the matching route rather than the lookup's result (`RTM_F_FIB_MATCH`).
const FIB_MATCH: u32 = 0x2000;
/// Request flag: name the table of the matching route (`RTM_F_LOOKUP_TABLE`); without it IPv4 answers the main table.
const LOOKUP_TABLE: u32 = 0x1000;
/// The router is on the link even where no address of the device covers it (`RTNH_F_ONLINK`).
const ONLINK: u32 = 4;
/// Tables that a command need not name: unspecified, main, local.
const MAIN: [u32; 3] = [0, 254, 255];
const RTN_UNICAST: u8 = 1;

const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
/// The router of an IPv4 route that is an IPv6 address: struct rtvia, the address family and the address.
const RTA_VIA: u16 = 18;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const NDA_DST: u16 = 1;
const NUD_INCOMPLETE: u16 = 0x01;
const NUD_FAILED: u16 = 0x20;

/// Routes of a namespace: those with MTUs, exceptions, and the devices of default routes.
#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) mtus: Vec<RouteMtu>,
    pub(super) exceptions: Vec<RouteException>,
    default_device: Option<u32>,
    /// The device of the first default route of another table than the main one.
    other_default: Option<u32>,
}

impl Routes {
    /// The device of the default route: the main table's or, where that has none, the first one of another.
    pub(super) fn default_device(&self) -> Option<u32> {
        self.default_device.or(self.other_default)
    }
}

/// Reads the routes of a namespace. `name` returns the name of a device by its index.
pub(super) fn read(
    netlink: &mut Raw,
    name: &mut dyn FnMut(u32) -> Option<String>,
) -> io::Result<Routes> {
    let mut routes = Routes::default();
    for family in [AF_INET, AF_INET6] {
        let mut body = [0; RTMSG];
        body[0] = family;
        let messages = match netlink.dump(GETROUTE, &body) {
            Ok(messages) => messages,
            // The kernel has no IPv6.
            Err(_) if family == AF_INET6 => continue,
            Err(error) => return Err(error),
        };
        for message in &messages {
            take(message, name, &mut routes);
        }
    }
    Ok(routes)
}

/// Whether a netlink message holds a route's MTU or an exception: for `examples/fuzz_audit.rs`.
pub fn reads_route(message: &[u8]) -> bool {
    let mut routes = Routes::default();
    let mut name = |index: u32| Some(format!("eth{index}"));
    take(message, &mut name, &mut routes);
    !routes.mtus.is_empty() || !routes.exceptions.is_empty()
}

fn take(message: &[u8], name: &mut dyn FnMut(u32) -> Option<String>, routes: &mut Routes) {
    let Some((header, attributes)) = message.split_at_checked(RTMSG) else {
        return;
    };
    let (family, length, kind) = (header[0], header[1], header[7]);
    let flags = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]);
    let attributes = Attributes(attributes);
    let metrics = attributes.nested(RTA_METRICS);
    let device = attributes.u32(RTA_OIF);
    let destination = attributes.address(RTA_DST);
    let mtu = metrics.u32(RTAX_MTU).filter(|&mtu| mtu > 0);
    if flags & CLONED != 0 {
        if let (Some(destination), Some(mtu)) = (destination, mtu) {
            routes.exceptions.push(RouteException {
                destination,
                device,
                mtu,
                proven: None,
            });
        }
        return;
    }
    if kind != RTN_UNICAST {
        return;
    }
    if length == 0 && family == AF_INET {
        // The first of several next hops: struct rtnexthop has the index after 4 bytes.
        let first = attributes
            .find(RTA_MULTIPATH)
            .and_then(|hops| Some(u32::from_ne_bytes(hops.get(4..8)?.try_into().ok()?)));
        // Other tables, such as a VPN's or a second card's, may come first in the kernel's list.
        let table = attributes.u32(RTA_TABLE).unwrap_or(header[4].into());
        let known = if MAIN.contains(&table) {
            &mut routes.default_device
        } else {
            &mut routes.other_default
        };
        *known = known.or(device).or(first);
    }
    if let Some(mtu) = mtu {
        let locked = metrics
            .u32(RTAX_LOCK)
            .is_some_and(|lock| lock & (1 << RTAX_MTU) != 0);
        routes.mtus.push(RouteMtu {
            destination: written(destination, length),
            device,
            mtu,
            locked,
            route: ip_route(message, name),
        });
    }
}

fn written(destination: Option<IpAddr>, length: u8) -> String {
    destination.map_or_else(
        || "default".to_owned(),
        |address| format!("{address}/{length}"),
    )
}

/// A route as `ip route` takes it; `None` where a next hop or its device cannot be named.
fn ip_route(message: &[u8], name: &mut dyn FnMut(u32) -> Option<String>) -> Option<IpRoute> {
    let (header, attributes) = message.split_at_checked(RTMSG)?;
    let attributes = Attributes(attributes);
    let flags = u32::from_ne_bytes(*header.get(8..12)?.first_chunk()?);
    let hops = match attributes.find(RTA_MULTIPATH) {
        Some(several) => hops(several, name)?,
        None => hop(attributes, &name(attributes.u32(RTA_OIF)?)?, flags),
    };
    let metric = attributes.u32(RTA_PRIORITY);
    let metric = metric.map_or_else(String::new, |metric| format!("metric {metric}"));
    let table = attributes.u32(RTA_TABLE);
    let table = table.filter(|table| !MAIN.contains(table));
    let table = table.map_or_else(String::new, |table| format!("table {table}"));
    let place = [metric, table].into_iter().filter(|word| !word.is_empty());
    Some(IpRoute {
        six: header[0] == AF_INET6,
        destination: written(attributes.address(RTA_DST), header[1]),
        source: attributes.address(RTA_PREFSRC),
        place: place.collect::<Vec<_>>().join(" "),
        hops,
    })
}

/// The router of a route or of one of its next hops.
fn router(attributes: Attributes<'_>) -> Option<IpAddr> {
    attributes
        .address(RTA_GATEWAY)
        .or_else(|| router_of_ipv6(attributes))
}

fn router_of_ipv6(attributes: Attributes<'_>) -> Option<IpAddr> {
    let address = attributes.find(RTA_VIA)?.get(2..)?;
    <[u8; 16]>::try_from(address).ok().map(IpAddr::from)
}

fn hop(attributes: Attributes<'_>, device: &str, flags: u32) -> String {
    let via = match attributes.address(RTA_GATEWAY) {
        Some(router) => format!("via {router} "),
        None => router_of_ipv6(attributes)
            .map_or_else(String::new, |router| format!("via inet6 {router} ")),
    };
    let onlink = if flags & ONLINK == 0 { "" } else { " onlink" };
    format!("{via}dev {device}{onlink}")
}

/// The next hops as `ip route` takes them. A struct rtnexthop (length, flags, weight - 1, device) is followed by
/// attributes.
fn hops(mut several: &[u8], name: &mut dyn FnMut(u32) -> Option<String>) -> Option<String> {
    const RTNEXTHOP: usize = 8;
    let mut words = Vec::new();
    while let Some(head) = several.first_chunk::<RTNEXTHOP>() {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let attributes = Attributes(several.get(RTNEXTHOP..length)?);
        let index = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
        let weight = match head[3] {
            0 => String::new(),
            more => format!(" weight {}", u16::from(more) + 1),
        };
        let hop = hop(attributes, &name(index)?, head[2].into());
        words.push(format!("nexthop {hop}{weight}"));
        several = several
            .get(length.next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Some(words.join(" "))
}

fn octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    }
}

/// Result of a route lookup between two addresses.
#[derive(Debug)]
pub(super) struct RouteLookup {
    /// Index of the output device.
    pub(super) device: u32,
    pub(super) router: Option<IpAddr>,
    /// MTU of the route itself, bytes.
    pub(super) mtu: Option<u32>,
    pub(super) route: Option<IpRoute>,
}

/// Looks up the route of packets between two addresses. `name` returns the name of a device by its index; it must use
/// another netlink connection.
pub(super) fn egress_route(
    netlink: &mut Raw,
    (from, to): (IpAddr, IpAddr),
    name: &mut dyn FnMut(u32) -> Option<String>,
) -> Option<RouteLookup> {
    // For an address in a VRF the routes are in the VRF's table: the kernel looks there when the VRF is the output
    // device.
    let vrf = vrf_index(from);
    let ((family, to), (_, from)) = (octets(to), octets(from));
    let mut ask = |flags: u32| {
        let mut body = vec![0; RTMSG];
        body[0] = family;
        body[1] = (8 * to.len()) as u8;
        body[2] = (8 * from.len()) as u8;
        body[8..12].copy_from_slice(&flags.to_ne_bytes());
        body.extend(attribute(RTA_DST, &to));
        body.extend(attribute(RTA_SRC, &from));
        if let Some(vrf) = vrf {
            body.extend(attribute(RTA_OIF, &vrf.to_ne_bytes()));
        }
        netlink.get(GETROUTE, &body).ok().flatten()
    };
    let answer = ask(0)?;
    let attributes = Attributes(answer.get(RTMSG..)?);
    // MTUs learned from ICMP too-big messages are not part of the matching route.
    let route = ask(FIB_MATCH | LOOKUP_TABLE);
    let metrics = route.as_deref().and_then(|message| message.get(RTMSG..));
    let mtu = metrics.and_then(|found| Attributes(found).nested(RTA_METRICS).u32(RTAX_MTU));
    Some(RouteLookup {
        device: attributes.u32(RTA_OIF)?,
        router: router(attributes),
        mtu: mtu.filter(|&mtu| mtu > 0),
        route: route.and_then(|message| ip_route(&message, name)),
    })
}

/// State of a neighbour on the link of a device.
pub(super) fn neighbour(netlink: &mut Raw, device: u32, address: IpAddr) -> Neighbour {
    let (family, bytes) = octets(address);
    let mut body = vec![0; NDMSG];
    body[0] = family;
    body[4..8].copy_from_slice(&device.to_ne_bytes());
    body.extend(attribute(NDA_DST, &bytes));
    let entry = netlink.get(GETNEIGH, &body).ok().flatten();
    let state = entry.as_deref().and_then(|message| message.get(8..10));
    match state.map_or(0, |state| u16::from_ne_bytes([state[0], state[1]])) {
        NUD_INCOMPLETE => Neighbour::Sought,
        NUD_FAILED => Neighbour::Missing,
        _ => Neighbour::Fine,
    }
}

/// The kernel's route of a tunnel's packets to an address, by the source, port, device and mark that policy rules may
/// match. `port` is the UDP destination port; 0 for a tunnel without UDP.
pub(super) fn tunnel_towards(
    netlink: &mut Raw,
    (address, port): (IpAddr, u16),
    outer: OuterFlow,
) -> Remote {
    const RTA_MARK: u16 = 16;
    const RTA_IP_PROTO: u16 = 27;
    const RTA_DPORT: u16 = 29;
    const UDP: u8 = 17;
    let mut more = Vec::new();
    let mut source_bits = 0;
    if let Some(local) = outer.local.filter(|it| it.is_ipv4() == address.is_ipv4()) {
        let (_, bytes) = octets(local);
        source_bits = (8 * bytes.len()) as u8;
        more.extend(attribute(RTA_SRC, &bytes));
    }
    if port != 0 {
        more.extend(attribute(RTA_IP_PROTO, &[UDP]));
        more.extend(attribute(RTA_DPORT, &port.to_be_bytes()));
    }
    for (number, value) in [(RTA_OIF, outer.link), (RTA_MARK, outer.mark)] {
        more.extend(value.map_or_else(Vec::new, |value| attribute(number, &value.to_ne_bytes())));
    }
    let exact = ask_towards(netlink, address, source_bits, &more);
    // The source is not an address of this host (yet), or the kernel does not accept ports (before 4.19).
    if exact.device.is_none() && !more.is_empty() {
        return towards(netlink, address);
    }
    exact
}

/// The kernel's route of packets to an address.
pub(super) fn towards(netlink: &mut Raw, address: IpAddr) -> Remote {
    ask_towards(netlink, address, 0, &[])
}

fn ask_towards(netlink: &mut Raw, address: IpAddr, source_bits: u8, more: &[u8]) -> Remote {
    let (family, bytes) = octets(address);
    let mut body = vec![0; RTMSG];
    body[0] = family;
    body[1] = (8 * bytes.len()) as u8;
    body[2] = source_bits;
    body.extend(attribute(RTA_DST, &bytes));
    body.extend(more);
    let answer = netlink.get(GETROUTE, &body).ok().flatten();
    let attributes = answer
        .as_deref()
        .and_then(|message| message.get(RTMSG..))
        .map(Attributes);
    // An MTU learned from a too-big message is reported as an exception, not as the route's.
    let learned = answer.as_deref().is_some_and(|message| {
        message.get(8..12).is_some_and(|flags| {
            let metrics = Attributes(message.get(RTMSG..).unwrap_or_default());
            u32::from_ne_bytes([flags[0], flags[1], flags[2], flags[3]]) & CLONED != 0
                && metrics.find(12).is_some_and(has_expiry)
        })
    });
    Remote {
        address,
        device: attributes.and_then(|attributes| attributes.u32(RTA_OIF)),
        route_mtu: attributes
            .and_then(|attributes| attributes.nested(RTA_METRICS).u32(RTAX_MTU))
            .filter(|&mtu| mtu > 0 && !learned),
    }
}

/// Whether the entry expires: `rta_expires`, the third number of struct rta_cacheinfo, is not 0 for learned entries.
fn has_expiry(cacheinfo: &[u8]) -> bool {
    cacheinfo
        .get(8..12)
        .is_some_and(|expires| expires.iter().any(|&byte| byte != 0))
}

/// Remotes in the forwarding databases of all devices: index of the device, and address.
pub(super) fn forwarding(netlink: &mut Raw) -> Vec<(u32, IpAddr)> {
    let mut body = [0; NDMSG];
    body[0] = AF_BRIDGE;
    let Ok(messages) = netlink.dump(GETNEIGH, &body) else {
        return Vec::new();
    };
    let entry = |message: &Vec<u8>| {
        let (header, attributes) = message.split_at_checked(NDMSG)?;
        let attributes = Attributes(attributes);
        let own = u32::from_ne_bytes(header.get(4..8)?.try_into().ok()?);
        let address = attributes.address(NDA_DST)?;
        (!address.is_unspecified() && !address.is_multicast()).then_some((own, address))
    };
    let mut found: Vec<_> = messages.iter().filter_map(entry).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests;
