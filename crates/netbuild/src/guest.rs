//! A host's guests: each a network namespace of its own behind the host's bridge, as a virtual machine
//! is behind its virtual switch.

use std::fs;
use std::net::IpAddr;
use std::os::fd::AsFd;

use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::{HeldNetns, Netns};

use crate::device::{self, PeerNamespace, VethEnd};
use crate::device::{enslave, has_queues, up};
use crate::error::{BuildError, Context};
use crate::ipv6;
use crate::names::{GUEST_DEVICE, guest_port, prefix};
use crate::netlink::Netlink;
use crate::ready;
use crate::route::{self, NextHop};

/// What the host's end of a guest's device leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uplink {
    /// The bridge of this interface index.
    Bridge(u32),
    /// The host itself, which routes; the guest has to know this hardware address.
    Router {
        /// Hardware address of the host's end.
        mac: [u8; 6],
    },
    /// A program that takes every frame.
    Program,
}

impl Uplink {
    /// Hardware address of the host's end; `None`: the kernel draws one.
    const fn mac(self) -> Option<[u8; 6]> {
        match self {
            Self::Router { mac } => Some(mac),
            Self::Bridge(_) | Self::Program => None,
        }
    }
}

/// One guest. Its namespace ends with it.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) namespace: HeldNetns,
    pub(crate) netlink: Netlink,
    pub(crate) ethtool: Ethtool,
    /// Name of the host's end of the guest's device.
    pub(crate) port: String,
    address: IpAddr,
    mac: [u8; 6],
}

impl Guest {
    /// Creates the namespaces of guests with these addresses, numbered in that order from 0.
    pub(crate) fn all(addresses: &[(IpAddr, [u8; 6])]) -> Result<Vec<Self>, BuildError> {
        // The kernel sets namespaces up in parallel; one after the other they take longer.
        let names: Vec<String> = (0..addresses.len()).map(|n| format!("guest{n}")).collect();
        let namespaces = HeldNetns::create_all(&names)
            .with_context(|| "making the guests' namespaces".into())?;
        let numbered = namespaces.into_iter().zip(addresses).enumerate();
        numbered
            .map(|(number, (namespace, addresses))| Self::set_up(number, namespace, *addresses))
            .collect()
    }

    /// Applies the settings that devices take over when they are created.
    fn set_up(
        number: usize,
        namespace: HeldNetns,
        (address, mac): (IpAddr, [u8; 6]),
    ) -> Result<Self, BuildError> {
        let inside = || -> Result<_, BuildError> {
            ipv6::disable()?;
            raise_tsq_limit()?;
            let netlink = Netlink::open().with_context(|| "opening rtnetlink".into())?;
            let ethtool = Ethtool::open().with_context(|| "opening ethtool".into())?;
            Ok((netlink, ethtool))
        };
        let (mut netlink, ethtool) = within(namespace.netns(), inside)?;
        up(&mut netlink, "lo")?;
        Ok(Self {
            namespace,
            netlink,
            ethtool,
            port: guest_port(number),
            address,
            mac,
        })
    }

    /// Creates the guest's device, whose other end is in `host`'s namespace; `mtu` in bytes.
    pub(crate) fn connect(
        &mut self,
        host: &mut Netlink,
        uplink: Uplink,
        mtu: u32,
        queues: u32,
    ) -> Result<(), BuildError> {
        let Self { port, address, .. } = self;
        let end = |name, mac| VethEnd {
            name,
            mtu,
            mac,
            queues,
        };
        let inside = PeerNamespace::Fd(self.namespace.netns().as_fd());
        device::create_veth_between(
            host,
            (None, end(port, uplink.mac())),
            (inside, end(GUEST_DEVICE, Some(self.mac))),
        )
        .with_context(|| format!("making the veth `{port}` towards its guest"))?;
        match uplink {
            Uplink::Bridge(bridge) => enslave(host, port, bridge)?,
            Uplink::Router { .. } => up(host, port)?,
            Uplink::Program => {
                device::set_no_link_local(host, port)
                    .with_context(|| format!("keeping IPv6 from `{port}`"))?;
                up(host, port)?;
            }
        }
        let own = device::read(&mut self.netlink, GUEST_DEVICE)
            .with_context(|| format!("reading `{GUEST_DEVICE}` behind `{port}` back"))?;
        has_queues(GUEST_DEVICE, &own, queues)?;
        if address.is_ipv6() {
            within(self.namespace.netns(), || ipv6::enable(GUEST_DEVICE))?;
        }
        device::add_address(&mut self.netlink, own.index, *address, prefix(*address))
            .with_context(|| {
                format!("giving `{GUEST_DEVICE}` behind `{port}` the address {address}")
            })?;
        up(&mut self.netlink, GUEST_DEVICE)
    }

    /// IP address of the guest.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Adds neighbour entries to the guest: all of `others` are reached by the router with this hardware address.
    pub(crate) fn reach(&mut self, others: &[IpAddr], router: [u8; 6]) -> Result<(), BuildError> {
        let port = &self.port;
        let own = device::read(&mut self.netlink, GUEST_DEVICE)
            .with_context(|| format!("reading `{GUEST_DEVICE}` behind `{port}` back"))?;
        for other in others {
            device::add_neighbour(&mut self.netlink, own.index, *other, router).with_context(
                || format!("telling `{GUEST_DEVICE}` behind `{port}` how {other} is reached"),
            )?;
        }
        Ok(())
    }

    /// Routes a range of addresses by the guest's device; see [`Guest::reach`].
    pub(crate) fn route(&mut self, (network, length): (IpAddr, u8)) -> Result<(), BuildError> {
        let step = || {
            format!(
                "making the route to {network}/{length} behind `{}`",
                self.port
            )
        };
        let device = device::read(&mut self.netlink, GUEST_DEVICE)
            .with_context(step)?
            .index;
        let hop = NextHop {
            device,
            gateway: None,
        };
        route::add(&mut self.netlink, (network, length), &[hop], None).with_context(step)
    }

    /// Waits until the guest's link is up and its address can be used.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), BuildError> {
        ready::link(&mut self.netlink, GUEST_DEVICE)?;
        match self.address {
            IpAddr::V4(_) => Ok(()),
            IpAddr::V6(address) => within(self.namespace.netns(), || ready::address(address)),
        }
    }
}

/// Runs a step inside a guest's namespace.
fn within<T>(netns: &Netns, step: impl FnOnce() -> Result<T, BuildError>) -> Result<T, BuildError> {
    let done = netns.within(step);
    done.with_context(|| "entering a guest's namespace".into())?
}

/// Keeps the sending host's work on the sending host's cores.
///
/// A packet on a veth keeps its socket until the *other* host's stack takes it, where a NIC would let go of it at
/// transmit completion. TCP small queues (net/ipv4/tcp_output.c, `tcp_small_queue_check`) would hold the sender back
/// meanwhile and, on release, run its transmit path on the receiver's core, overtaking what its own core sends: 266
/// retransmits in 0.6 s where there were none. Its limit is 1 ms at the pacing rate; this makes it about 8 ms, more
/// than the path holds. Nothing paces by that rate under cubic or reno.
pub(crate) fn raise_tsq_limit() -> Result<(), BuildError> {
    for key in ["tcp_pacing_ca_ratio", "tcp_pacing_ss_ratio"] {
        let path = format!("/proc/sys/net/ipv4/{key}");
        fs::write(&path, "1000").with_context(|| format!("writing {path}"))?;
    }
    Ok(())
}
