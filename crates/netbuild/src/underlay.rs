//! The network between two hosts: one wire, or switches, routers and equal-cost paths, each in a namespace of its own.
//! The process that created these namespaces holds them; when it ends, the kernel removes them all.
//!
//! ```text
//! host a ── switch ── router ──┬─ member 0 ─┬── host b
//!                        fork  ├─ member 1 ─┤  fork
//!                              └─ member 2 ─┘
//! ```
//!
//! Devices between the hosts accept what the hosts send, whatever its size: which sizes a hop does not forward is
//! decided inside it, for each direction, so that a router sees the packets that it reports as too big.

mod chain;
mod fault;
pub(crate) mod line_namespace;
mod nftables;
mod node;
mod router;
mod switch;

use std::fs;
use std::io;
use std::net::IpAddr;

use wirecost_model::ip::IpVersion;
use wirecost_model::transit::Transit;
use wirecost_sys::namespace::Netns;

use crate::addresses::{LinkEnd, underlay_range};
use crate::device::up;
use crate::device::{self, PeerNamespace};
use crate::error::{BuildError, Context};
use crate::ipv6;
use crate::names::{Side, UNDERLAY_DEVICE, prefix};
use crate::netlink::Netlink;
use crate::ready;
use crate::route::{self, NextHop};
use line_namespace::LineNamespace;
use node::Node;

/// MTU of the devices between the hosts: the largest (include/uapi/linux/if_ether.h, `ETH_MAX_MTU`).
const ANY_SIZE: u32 = 65535;

/// Parameters of an underlay.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnderlayParameters {
    /// MTU of the hosts' devices, bytes.
    pub(crate) mtu: u32,
    /// Number of transmit queues, and of receive queues, of every veth from host to host: one with fewer would merge
    /// the hosts' flows again.
    pub(crate) queues: u32,
    /// IP version of the underlay, which carries tunnels.
    pub(crate) ip: IpVersion,
}

/// The network between two hosts. Dropping it removes it.
#[derive(Debug)]
pub struct Underlay {
    nodes: Vec<Node>,
}

impl Underlay {
    /// Creates the network from the calling thread's network namespace, host a's, to `peer`, host b's. Both hosts then
    /// have a device `underlay` of that MTU in bytes, still down. The namespaces in between are the calling process's,
    /// in whose user namespace both hosts must be.
    ///
    /// # Errors
    /// Where the kernel refuses a step; the error says what the kernel lacks.
    pub fn between(
        transit: &Transit,
        mtu: u32,
        ip: IpVersion,
        peer: &Netns,
    ) -> Result<Self, BuildError> {
        use std::os::fd::AsFd;
        let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
        let peer = PeerNamespace::Fd(peer.as_fd());
        let wire = UnderlayParameters { mtu, queues: 1, ip };
        Self::build(transit, wire, (&mut netlink, None), peer)
    }

    /// Creates the network from host a's namespace, that of `a`, or from that of its line, `line_namespace`, to `b`:
    /// host b's namespace, or that of its line.
    pub(crate) fn build(
        transit: &Transit,
        wire: UnderlayParameters,
        (a, line_namespace): (&mut Netlink, Option<&LineNamespace>),
        b: PeerNamespace<'_>,
    ) -> Result<Self, BuildError> {
        use std::os::fd::AsFd;
        let line_namespace =
            line_namespace.map(|line_namespace| PeerNamespace::Fd(line_namespace.netns().as_fd()));
        chain::build(transit, wire, (a, line_namespace), b).map(|nodes| Self { nodes })
    }

    /// Waits until all links between the hosts are up, for which both hosts' devices must be up.
    ///
    /// # Errors
    /// Where a link does not come up within 5 s.
    pub fn wait_until_ready(&mut self) -> Result<(), BuildError> {
        let mut nodes = self.nodes.iter_mut();
        nodes.try_for_each(|node| node.within(ready::links))
    }

    /// Number of network namespaces between the hosts.
    pub fn namespaces(&self) -> usize {
        self.nodes.len()
    }
}

/// Creates the namespace of a host's line, which receives on `core`, and the host's own device.
pub(crate) fn make_line_namespace(
    core: u32,
    (transit, side): (&Transit, Side),
    wire: UnderlayParameters,
    netlink: &mut Netlink,
) -> Result<LineNamespace, BuildError> {
    let own = chain::host(place(transit, side), wire.mtu);
    LineNamespace::build(core, &own, wire.queues, netlink)
}

/// The end of a link that a host is at.
pub(crate) fn place(transit: &Transit, side: Side) -> LinkEnd {
    match side {
        Side::A => LinkEnd::near_a(0),
        Side::B => LinkEnd::near_b(chain::last_link(transit)),
    }
}

/// The address that a host has on the underlay.
pub fn address(transit: &Transit, side: Side, ip: IpVersion) -> IpAddr {
    place(transit, side).address(ip)
}

/// Gives the host whose network namespace the calling thread is in its address on the underlay and its route to the
/// other host, and sets the device up. Packets get through once [`ready_here`] has returned on both hosts, and
/// [`Underlay::wait_until_ready`].
///
/// # Errors
/// Where the kernel refuses a step.
pub fn join_here(transit: &Transit, side: Side, ip: IpVersion) -> Result<(), BuildError> {
    let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
    join(UNDERLAY_DEVICE, transit, side, ip, &mut netlink)
}

/// Waits until the host whose network namespace the calling thread is in can use its underlay device and its address.
///
/// # Errors
/// Where it cannot within 5 s: the device's other end may be down.
pub fn ready_here(transit: &Transit, side: Side, ip: IpVersion) -> Result<(), BuildError> {
    let mut netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
    ready::link(&mut netlink, UNDERLAY_DEVICE)?;
    match address(transit, side, ip) {
        IpAddr::V4(_) => Ok(()),
        IpAddr::V6(address) => ready::address(address),
    }
}

/// As [`join_here`] for any `device`: the underlay's, or that of a switch of which the underlay's is a port.
pub(crate) fn join(
    device: &str,
    transit: &Transit,
    side: Side,
    ip: IpVersion,
    netlink: &mut Netlink,
) -> Result<(), BuildError> {
    let place = place(transit, side);
    let device = connect(netlink, device, place, ip)?;
    if transit.is_routed() {
        let gateway = place.across().address(ip);
        let hop = NextHop {
            device,
            gateway: Some(gateway),
        };
        route::add(netlink, underlay_range(ip), &[hop], None)
            .with_context(|| format!("routing the underlay through {gateway}"))?;
    }
    Ok(())
}

/// Gives a device the address of its place, adds a neighbour entry for the link's other end, and sets the device up.
/// Returns its interface index.
///
/// There is no neighbour discovery: a guest that sends by itself would make its host ask for the other host before that
/// is built, and then again only after a second (RFC 4861, section 10, RETRANS_TIMER).
fn connect(
    netlink: &mut Netlink,
    name: &str,
    place: LinkEnd,
    ip: IpVersion,
) -> Result<u32, BuildError> {
    let index = device::read(netlink, name)
        .with_context(|| format!("reading `{name}`"))?
        .index;
    if ip == IpVersion::Ipv6 {
        ipv6::enable(name)?;
    }
    let address = place.address(ip);
    device::add_address(netlink, index, address, prefix(address))
        .with_context(|| format!("giving `{name}` the address {address}"))?;
    up(netlink, name)?;
    let (peer, mac) = (place.across().address(ip), place.across().mac());
    device::add_neighbour(netlink, index, peer, mac)
        .with_context(|| format!("adding the neighbour of `{name}` with the address {peer}"))?;
    Ok(index)
}

pub(crate) use router::forward;

/// Writes a sysctl below `net` in the calling thread's network namespace.
pub(crate) fn set(path: &str, value: &str) -> Result<(), BuildError> {
    let path = format!("/proc/sys/net/{path}");
    fs::write(&path, value).with_context(|| format!("writing {value} to {path}"))
}

/// As [`set`], where the kernel has the sysctl.
fn set_if_there(path: &str, value: &str) -> Result<(), BuildError> {
    match fs::write(format!("/proc/sys/net/{path}"), value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.with_context(|| format!("writing {value} to /proc/sys/net/{path}")),
    }
}
