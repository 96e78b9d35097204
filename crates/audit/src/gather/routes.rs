//! Routes: which device packets to an address really use, MTUs of routes, and what too-big messages left behind
//! (include/uapi/linux/rtnetlink.h); and the other ends that a VXLAN device's forwarding database names.

use std::io;
use std::net::IpAddr;

use super::netlink::{Attributes, Netlink, attribute};
use crate::snapshot::{Exception, Remote, RouteMtu};

const GETROUTE: u16 = 26;
const GETNEIGH: u16 = 30;
/// struct rtmsg and struct ndmsg.
const RTMSG: usize = 12;
const NDMSG: usize = 12;
const AF_INET: u8 = 2;
const AF_BRIDGE: u8 = 7;
const AF_INET6: u8 = 10;
/// An exception and not a route (`RTM_F_CLONED`).
const CLONED: u32 = 0x200;
const RTN_UNICAST: u8 = 1;

const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const NDA_DST: u16 = 1;

/// What a namespace's tables say.
#[derive(Debug, Default)]
pub(super) struct Routes {
    pub(super) mtus: Vec<RouteMtu>,
    pub(super) exceptions: Vec<Exception>,
    pub(super) default_device: Option<u32>,
}

pub(super) fn read(netlink: &mut Netlink) -> io::Result<Routes> {
    let mut routes = Routes::default();
    for family in [AF_INET, AF_INET6] {
        let mut body = [0; RTMSG];
        body[0] = family;
        let messages = match netlink.dump(GETROUTE, &body) {
            Ok(messages) => messages,
            // A kernel without IPv6.
            Err(_) if family == AF_INET6 => continue,
            Err(error) => return Err(error),
        };
        for message in &messages {
            take(message, &mut routes);
        }
    }
    Ok(routes)
}

fn take(message: &[u8], routes: &mut Routes) {
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
            routes.exceptions.push(Exception {
                destination,
                device,
                mtu,
            });
        }
        return;
    }
    if kind != RTN_UNICAST {
        return;
    }
    if length == 0 && family == AF_INET && routes.default_device.is_none() {
        // Of several equal ones the first: struct rtnexthop has the index behind 4 bytes.
        let first = attributes
            .find(RTA_MULTIPATH)
            .and_then(|hops| Some(u32::from_ne_bytes(hops.get(4..8)?.try_into().ok()?)));
        routes.default_device = device.or(first);
    }
    if let Some(mtu) = mtu {
        let locked = metrics
            .u32(RTAX_LOCK)
            .is_some_and(|lock| lock & (1 << RTAX_MTU) != 0);
        routes.mtus.push(RouteMtu {
            destination: match destination {
                Some(address) => format!("{address}/{length}"),
                None => "default".into(),
            },
            device,
            mtu,
            locked,
        });
    }
}

fn octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, address.octets().to_vec()),
    }
}

/// The index of the device that packets between two addresses leave through, and the router that they go to first.
pub(super) fn way_out(
    netlink: &mut Netlink,
    from: IpAddr,
    to: IpAddr,
) -> Option<(u32, Option<IpAddr>)> {
    let ((family, to), (_, from)) = (octets(to), octets(from));
    let mut body = vec![0; RTMSG];
    body[0] = family;
    body[1] = (8 * to.len()) as u8;
    body[2] = (8 * from.len()) as u8;
    body.extend(attribute(RTA_DST, &to));
    body.extend(attribute(RTA_SRC, &from));
    let answer = netlink.get(GETROUTE, &body).ok().flatten()?;
    let attributes = Attributes(answer.get(RTMSG..)?);
    Some((attributes.u32(RTA_OIF)?, attributes.address(RTA_GATEWAY)))
}

/// How packets to an address leave: the kernel's own answer.
pub(super) fn towards(netlink: &mut Netlink, address: IpAddr) -> Remote {
    let (family, bytes) = octets(address);
    let mut body = vec![0; RTMSG];
    body[0] = family;
    body[1] = (8 * bytes.len()) as u8;
    body.extend(attribute(RTA_DST, &bytes));
    let answer = netlink.get(GETROUTE, &body).ok().flatten();
    let attributes = answer
        .as_deref()
        .and_then(|message| message.get(RTMSG..))
        .map(Attributes);
    // An answer that was learned from a too-big message is told as an exception, and is no setting.
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

/// struct rta_cacheinfo: `rta_expires` is the third number, not 0 with what was learned.
fn has_expiry(cacheinfo: &[u8]) -> bool {
    cacheinfo
        .get(8..12)
        .is_some_and(|expires| expires.iter().any(|&byte| byte != 0))
}

/// The other ends in the forwarding databases: device and address.
pub(super) fn forwarding(netlink: &mut Netlink) -> Vec<(u32, IpAddr)> {
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
