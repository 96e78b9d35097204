//! Guests of a host that routes for them: a tunnel device that carries IP packets and no frames cannot be a bridge's
//! port.
//!
//! The guests keep the addresses that they have behind a bridge, all in one subnet. For every guest of the other host a
//! guest has a neighbour entry with the hardware address of its own port on its host; the host routes these packets
//! into the tunnel. Neighbour entries are permanent on both sides, as on the underlay: nothing is resolved.

use std::net::IpAddr;

use wirecost_model::ip::IpVersion;

use crate::addresses;
use crate::device;
use crate::error::{BuildError, Context};
use crate::guest::Guest;
use crate::ipv6;
use crate::names::Side;
use crate::netlink::Netlink;
use crate::route::{self, NextHop};
use crate::underlay;

/// Parameters of a host that routes.
pub(crate) struct Routing<'a> {
    /// Which of the two hosts.
    pub(crate) side: Side,
    /// IP version of the guests.
    pub(crate) ip: IpVersion,
    pub(crate) guests: &'a mut [Guest],
    /// Name of the tunnel device, towards the other host's guests.
    pub(crate) tunnel: &'a str,
}

impl Routing<'_> {
    /// Makes the host, whose network namespace the calling thread is in, route between its guests and the tunnel. All
    /// devices must exist and be up.
    ///
    /// # Errors
    /// Where the kernel refuses a step.
    pub(crate) fn set_up(self, netlink: &mut Netlink) -> Result<(), BuildError> {
        let Self {
            side,
            ip,
            guests,
            tunnel,
        } = self;
        underlay::forward(ip)?;
        if ip == IpVersion::Ipv6 {
            ipv6::enable(tunnel)?;
        }
        let others: Vec<IpAddr> = (0..guests.len() as u32)
            .map(|number| addresses::guest(ip, side.other(), number))
            .collect();
        for (number, guest) in (0..).zip(guests) {
            let port = guest.port.clone();
            if ip == IpVersion::Ipv6 {
                ipv6::enable(&port)?;
            }
            let (address, mac) = (guest.address(), addresses::guest_mac(side, number));
            let device = index(netlink, &port)?;
            device::add_neighbour(netlink, device, address, mac).with_context(|| {
                format!("adding the neighbour of `{port}` with the address {address}")
            })?;
            to(netlink, (address, whole(address)), device)?;
            guest.reach(&others, addresses::port_mac(side, number))?;
        }
        let device = index(netlink, tunnel)?;
        to(netlink, addresses::guest_range(ip), device)
    }
}

/// Adds a route to a destination by a device.
fn to(netlink: &mut Netlink, destination: (IpAddr, u8), device: u32) -> Result<(), BuildError> {
    let hop = NextHop {
        device,
        gateway: None,
    };
    let (address, length) = destination;
    route::add(netlink, destination, &[hop], None)
        .with_context(|| format!("making the route to {address}/{length}"))
}

fn index(netlink: &mut Netlink, name: &str) -> Result<u32, BuildError> {
    let found = device::read(netlink, name).with_context(|| format!("reading `{name}` back"))?;
    Ok(found.index)
}

/// Prefix length of a single address, bits.
const fn whole(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

#[cfg(test)]
mod tests;
