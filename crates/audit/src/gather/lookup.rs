//! Single lookups in the calling thread's namespace.

use std::io;
use std::net::IpAddr;

use wirecost_netlink::raw::Raw;

use super::{ipv6, links, routes};
use crate::snapshot::{EgressRoute, Neighbour};

/// The route of packets between two addresses out of the calling thread's namespace. `None` where there is no route.
///
/// # Errors
/// A netlink socket cannot be opened.
pub fn egress_route(from: IpAddr, to: IpAddr) -> io::Result<Option<EgressRoute>> {
    let mut asked = Raw::route()?;
    let mut name = |index| links::named(&mut asked, index).map(|(name, _)| name);
    let egress = routes::egress_route(&mut Raw::route()?, (from, to), &mut name);
    let Some(egress) = egress else {
        return Ok(None);
    };
    let device = links::named(&mut asked, egress.device);
    Ok(device.map(|(device, mtu)| EgressRoute {
        ipv6_mtu: ipv6::mtu(&device).filter(|&six| to.is_ipv6() && six < mtu),
        device_mtu: Some(mtu),
        device,
        router: egress.router,
        mtu: egress.mtu,
        route: egress.route,
    }))
}

/// State and address of the neighbour (next hop) of packets between two addresses, in the calling thread's namespace.
/// `None` where there is no route.
///
/// # Errors
/// A netlink socket cannot be opened.
pub fn neighbour(from: IpAddr, to: IpAddr) -> io::Result<Option<(IpAddr, Neighbour)>> {
    let mut netlink = Raw::route()?;
    let egress = routes::egress_route(&mut netlink, (from, to), &mut |_| None);
    Ok(egress.map(|egress| {
        let next = egress.router.unwrap_or(to);
        (next, routes::neighbour(&mut netlink, egress.device, next))
    }))
}

/// The first and the last source port that a tunnel of the calling thread's namespace with this destination port uses.
/// `None`: there is no such tunnel, or it has no port range of its own.
///
/// # Errors
/// The devices cannot be listed.
pub fn source_ports(port: u16) -> io::Result<Option<(u16, u16)>> {
    let links = links::read(&mut Raw::route()?)?;
    let mut tunnels = links.iter().filter_map(|link| link.device.tunnel.as_ref());
    Ok(tunnels.find_map(|tunnel| tunnel.source_ports.filter(|_| tunnel.port == port)))
}
