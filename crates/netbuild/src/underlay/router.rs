//! A router: forwards by IP address, reports packets that are too big, and may divide flows among equal-cost paths.

use std::net::IpAddr;

use wirecost_model::ip::IpVersion;
use wirecost_model::transit::{Hop, Icmp, Mtus};

use crate::addresses::LinkEnd;
use crate::error::{BuildError, Context};
use crate::netlink::Netlink;
use crate::ready;
use crate::route::{self, NextHop};
use crate::underlay::node::{Node, WireEnd, without_offloads};
use crate::underlay::{connect, set, set_if_there};

/// A device of a router.
#[derive(Debug, Clone)]
pub(super) struct Port {
    pub(super) device: String,
    pub(super) place: LinkEnd,
}

impl Port {
    pub(super) fn new(device: &str, place: LinkEnd) -> Self {
        Self {
            device: device.to_owned(),
            place,
        }
    }

    pub(super) fn wire_end(&self) -> WireEnd {
        WireEnd::inner(&self.device, Some(self.place))
    }
}

/// Configuration of a router.
pub(super) struct Router<'t> {
    pub(super) towards_a: Vec<Port>,
    pub(super) towards_b: Vec<Port>,
    /// Upper bound on the IP packets that it forwards, bytes, for each direction; `None`: what its devices take.
    pub(super) mtu: Option<Mtus>,
    pub(super) icmp: Icmp,
    /// The plan's hop, where the router is one.
    pub(super) hop: Option<&'t Hop>,
}

/// Gives a router its addresses and its routes to the two hosts, whose places are `ends`.
pub(super) fn set_up(
    node: &mut Node,
    router: &Router<'_>,
    ends: [LinkEnd; 2],
    ip: IpVersion,
) -> Result<(), BuildError> {
    node.within(|netlink| {
        forward(ip)?;
        let mtu = router.mtu;
        let ways = [
            (&router.towards_a, ends[0], mtu.map(|mtu| mtu.from_b)),
            (&router.towards_b, ends[1], mtu.map(|mtu| mtu.from_a)),
        ];
        for (ports, host, mtu) in ways {
            let hops = ports.iter().map(|port| next_hop(netlink, port, host, ip));
            let hops: Vec<NextHop> = hops.collect::<Result<_, _>>()?;
            let address = host.address(ip);
            let length = if address.is_ipv4() { 32 } else { 128 };
            route::add(netlink, (address, length), &hops, mtu)
                .with_context(|| format!("making the route to {address}"))?;
        }
        if router.icmp == Icmp::Filtered {
            route::drop_own_icmp(netlink, ip)
                .with_context(|| format!("adding a rule that drops {ip}'s ICMP"))?;
        }
        Ok(())
    })
}

/// Waits until a router's addresses can be used.
pub(super) fn wait_until_ready(
    node: &mut Node,
    router: &Router<'_>,
    ip: IpVersion,
) -> Result<(), BuildError> {
    node.within(|_| {
        for port in router.towards_a.iter().chain(&router.towards_b) {
            if let IpAddr::V6(address) = port.place.address(ip) {
                ready::address(address)?;
            }
        }
        Ok(())
    })
}

/// Sets the port up, makes it send frames instead of super-packets, and returns the next hop for a host's packets by
/// it.
fn next_hop(
    netlink: &mut Netlink,
    port: &Port,
    host: LinkEnd,
    ip: IpVersion,
) -> Result<NextHop, BuildError> {
    let device = connect(netlink, &port.device, port.place, ip)?;
    without_offloads(&port.device)?;
    let across = port.place.across();
    Ok(NextHop {
        device,
        gateway: (across != host).then(|| across.address(ip)),
    })
}

/// Makes the calling thread's namespace forward packets, as a router does.
pub(crate) fn forward(ip: IpVersion) -> Result<(), BuildError> {
    match ip {
        IpVersion::Ipv4 => {
            set("ipv4/ip_forward", "1")?;
            // A packet that returns by another of several equal paths must not be dropped as spoofed.
            set("ipv4/conf/all/rp_filter", "0")?;
            set("ipv4/conf/default/rp_filter", "0")?;
            // Hash flows by ports as well as by addresses (Documentation/networking/ip-sysctl.rst).
            set_if_there("ipv4/fib_multipath_hash_policy", "1")
        }
        IpVersion::Ipv6 => {
            set("ipv6/conf/all/forwarding", "1")?;
            set("ipv6/conf/default/forwarding", "1")?;
            set_if_there("ipv6/fib_multipath_hash_policy", "1")
        }
    }
}
