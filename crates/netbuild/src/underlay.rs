//! What lies between two hosts: one wire, or switches, routers and equal-cost paths, each in a namespace
//! of its own that the process which laid it holds. With that process the kernel drops it all.
//!
//! ```text
//! host a ── switch ── router ──┬─ member 0 ─┬── host b
//!                        fork  ├─ member 1 ─┤  fork
//!                              └─ member 2 ─┘
//! ```
//!
//! Devices between the hosts take what the hosts send, whatever its size: what a hop does not carry is
//! decided inside it, by direction, so that a router sees what it complains about.

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
use crate::error::{BuildError, Step};
use crate::ipv6;
use crate::names::{Side, UNDERLAY_DEVICE, prefix};
use crate::netlink::Netlink;
use crate::ready;
use crate::route::{self, NextHop};
use line_namespace::LineNamespace;
use node::Node;

/// MTU of the devices between the hosts: the largest (include/uapi/linux/if_ether.h, `ETH_MAX_MTU`).
const ANY_SIZE: u32 = 65535;

/// What the underlay is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wire {
    /// MTU of the hosts' devices, bytes.
    pub(crate) mtu: u32,
    /// Transmit and as many receive queues of every veth from host to host: one with fewer would put the
    /// hosts' flows back together.
    pub(crate) queues: u32,
    /// What carries tunnels.
    pub(crate) ip: IpVersion,
}

/// The network between two hosts. Dropping it removes it.
#[derive(Debug)]
pub struct Underlay {
    nodes: Vec<Node>,
}

impl Underlay {
    /// Lays it from the calling thread's network namespace, host a's, to `peer`, host b's. Both hosts
    /// then have a device `underlay` of that MTU in bytes, still down. The namespaces in between are the
    /// calling process's, in whose user namespace both hosts must be.
    ///
    /// # Errors
    /// Where the kernel refuses a step, with what it lacks.
    pub fn between(
        transit: &Transit,
        mtu: u32,
        ip: IpVersion,
        peer: &Netns,
    ) -> Result<Self, BuildError> {
        use std::os::fd::AsFd;
        let mut netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
        let peer = PeerNamespace::Fd(peer.as_fd());
        let wire = Wire { mtu, queues: 1, ip };
        Self::lay(transit, wire, (&mut netlink, None), peer)
    }

    /// From host a's namespace, that of its netlink, and from that of its line where it has one; `b` likewise.
    pub(crate) fn lay(
        transit: &Transit,
        wire: Wire,
        (a, line_namespace): (&mut Netlink, Option<&LineNamespace>),
        b: PeerNamespace<'_>,
    ) -> Result<Self, BuildError> {
        use std::os::fd::AsFd;
        let line_namespace =
            line_namespace.map(|line_namespace| PeerNamespace::Fd(line_namespace.netns().as_fd()));
        chain::lay(transit, wire, (a, line_namespace), b).map(|nodes| Self { nodes })
    }

    /// Waits until all links between the hosts are up, which takes both hosts' devices to be.
    ///
    /// # Errors
    /// A link that does not come up within 5 s.
    pub fn wait_until_ready(&mut self) -> Result<(), BuildError> {
        let mut nodes = self.nodes.iter_mut();
        nodes.try_for_each(|node| node.within(ready::links))
    }

    /// Network namespaces between the hosts.
    pub fn namespaces(&self) -> usize {
        self.nodes.len()
    }
}

/// Makes the namespace of a host's line, which receives on `core`, and the host's own device.
pub(crate) fn make_line_namespace(
    core: u32,
    (transit, side): (&Transit, Side),
    wire: Wire,
    netlink: &mut Netlink,
) -> Result<LineNamespace, BuildError> {
    let own = chain::host(place(transit, side), wire.mtu);
    LineNamespace::lay(core, &own, wire.queues, netlink)
}

/// Where a host is on the underlay.
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

/// Gives the host whose network namespace the calling thread is in its address on the underlay and its
/// way to the other host, and switches the device on.
/// Packets get through once [`ready_here`] says so on both hosts, and [`Underlay::wait_until_ready`].
///
/// # Errors
/// Where the kernel refuses a step.
pub fn join_here(transit: &Transit, side: Side, ip: IpVersion) -> Result<(), BuildError> {
    let mut netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
    join(UNDERLAY_DEVICE, transit, side, ip, &mut netlink)
}

/// Waits until the host whose network namespace the calling thread is in can use its device and address.
///
/// # Errors
/// Where that is not so within 5 s: the device's other end may be down.
pub fn ready_here(transit: &Transit, side: Side, ip: IpVersion) -> Result<(), BuildError> {
    let mut netlink = Netlink::open().step(|| "opening rtnetlink".into())?;
    ready::link(&mut netlink, UNDERLAY_DEVICE)?;
    match address(transit, side, ip) {
        IpAddr::V4(_) => Ok(()),
        IpAddr::V6(address) => ready::address(address),
    }
}

/// `device` is the one that takes the address: the underlay's, or a switch's that the underlay's is a port of.
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
            .step(|| format!("routing the underlay through {gateway}"))?;
    }
    Ok(())
}

/// Gives a device the address of its place, tells it who is across, and switches it on. Returns its index.
///
/// Nobody asks for a neighbour: a guest that speaks by itself would make its host ask for the other before
/// that is built, and then again only after a second (RFC 4861, section 10, RETRANS_TIMER).
fn connect(
    netlink: &mut Netlink,
    name: &str,
    place: LinkEnd,
    ip: IpVersion,
) -> Result<u32, BuildError> {
    let index = device::read(netlink, name)
        .step(|| format!("reading `{name}`"))?
        .index;
    if ip == IpVersion::Ipv6 {
        ipv6::allow(name)?;
    }
    let address = place.address(ip);
    device::add_address(netlink, index, address, prefix(address))
        .step(|| format!("giving `{name}` the address {address}"))?;
    up(netlink, name)?;
    let (peer, mac) = (place.across().address(ip), place.across().mac());
    device::add_neighbour(netlink, index, peer, mac)
        .step(|| format!("adding the neighbour of `{name}` with the address {peer}"))?;
    Ok(index)
}

pub(crate) use router::forward;

/// Writes a setting of the calling thread's network namespace.
pub(crate) fn set(path: &str, value: &str) -> Result<(), BuildError> {
    let path = format!("/proc/sys/net/{path}");
    fs::write(&path, value).step(|| format!("writing {value} to {path}"))
}

/// The same where the kernel has the setting.
fn set_if_there(path: &str, value: &str) -> Result<(), BuildError> {
    match fs::write(format!("/proc/sys/net/{path}"), value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.step(|| format!("writing {value} to /proc/sys/net/{path}")),
    }
}
