//! Reads one namespace of the host: its devices, routes, tunnels and sysctls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::IpAddr;

use wirecost_netlink::raw::Raw;
use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::Netns;

use super::tunnels::OuterFlow;
use super::{ipv6, links, queues, routes};
use crate::snapshot::{Namespace, NetnsEntry, ReadFailure};

/// Sysctls below `net.` that matter to large packets.
const SYSCTLS: &[&str] = &[
    "ipv4.ip_forward",
    "ipv4.ip_no_pmtu_disc",
    "ipv4.tcp_mtu_probing",
    "ipv4.tcp_base_mss",
    "ipv4.tcp_min_snd_mss",
    "ipv4.route.min_pmtu",
    "ipv4.route.mtu_expires",
    "ipv4.icmp_ratelimit",
    "ipv4.fib_multipath_hash_policy",
    "ipv6.route.mtu_expires",
    "ipv6.conf.all.forwarding",
    "ipv6.conf.all.disable_ipv6",
    "ipv6.fib_multipath_hash_policy",
    "bridge.bridge-nf-call-iptables",
];

/// A namespace that is being read.
pub(super) struct NamespaceReader {
    pub(super) netns: Netns,
    /// Whether it is the calling thread's namespace.
    pub(super) own: bool,
    pub(super) netlink: Raw,
    pub(super) namespace: Namespace,
    /// Peers of its veths: position of the device, index of the peer, nsid of the peer's namespace.
    pub(super) other_ends: Vec<(usize, u32, Option<i32>)>,
    /// Its tunnels whose sockets are in other namespaces.
    pub(super) cross_netns_tunnels: Vec<CrossNetnsTunnel>,
}

/// A tunnel whose socket is in another namespace than its device.
pub(super) struct CrossNetnsTunnel {
    /// Position of the device in the namespace's list.
    pub(super) device: usize,
    /// Nsid of the socket's namespace.
    pub(super) socket: i32,
    pub(super) remotes: BTreeSet<IpAddr>,
    pub(super) outer: OuterFlow,
}

/// Runs `work` in a namespace. The calling thread's own (`own`) is not entered: even that takes `CAP_SYS_ADMIN`
/// (net/core/net_namespace.c, `netns_install`), and reading needs no privilege.
pub(super) fn inside<T>(netns: &Netns, own: bool, work: impl FnOnce() -> T) -> io::Result<T> {
    if own { Ok(work()) } else { netns.within(work) }
}

pub(super) fn read(
    netns: Netns,
    (label, enter): (&str, NetnsEntry),
    own: bool,
    unread: &mut Vec<ReadFailure>,
) -> io::Result<NamespaceReader> {
    let (netlink, ethtool, sysctls, mut ipv6_mtus) = inside(&netns, own, || {
        (Raw::route(), Ethtool::open(), sysctls(), ipv6::mtus())
    })?;
    let (mut netlink, ethtool) = (netlink?, ethtool?);
    let links = links::read(&mut netlink)?;
    let mut name = |index| {
        let mut devices = links.iter().map(|link| &link.device);
        let device = devices.find(|device| device.index == index);
        device.map(|device| device.name.clone())
    };
    let table = routes::read(&mut netlink, &mut name).unwrap_or_else(|error| {
        unread.push(ReadFailure {
            what: format!("routes ({label})"),
            why: error.to_string(),
        });
        routes::Routes::default()
    });
    let forwarding = routes::forwarding(&mut netlink);
    let mut devices = Vec::new();
    let mut other_ends = Vec::new();
    let mut cross_netns_tunnels = Vec::new();
    for mut link in links {
        queues::read(&ethtool, own, &mut link.device);
        let six = ipv6_mtus.remove(&link.device.name);
        link.device.ipv6_mtu = six.filter(|&six| six < link.device.mtu);
        if let Some(tunnel) = &mut link.device.tunnel {
            let index = link.device.index;
            let named = link.remotes.iter().copied();
            let learned = forwarding
                .iter()
                .filter(|(device, _)| *device == index)
                .map(|(_, address)| *address);
            let remotes: BTreeSet<_> = named.chain(learned).collect();
            if let Some(socket) = link.socket {
                cross_netns_tunnels.push(CrossNetnsTunnel {
                    device: devices.len(),
                    socket,
                    remotes,
                    outer: link.outer,
                });
            } else {
                tunnel.remotes = remotes
                    .into_iter()
                    .map(|to| routes::tunnel_towards(&mut netlink, (to, tunnel.port), link.outer))
                    .collect();
            }
        }
        if let Some((index, number)) = link.other_end {
            other_ends.push((devices.len(), index, number));
        }
        devices.push(link.device);
    }
    let (inode, default_device) = (netns.inode().ok(), table.default_device());
    Ok(NamespaceReader {
        netns,
        own,
        netlink,
        namespace: Namespace {
            label: label.to_owned(),
            enter,
            inode,
            devices,
            route_mtus: table.mtus,
            exceptions: table.exceptions,
            sysctls,
            mss_clamps: None,
            default_device,
        },
        other_ends,
        cross_netns_tunnels,
    })
}

/// The sysctls of the calling thread's namespace: /proc/sys/net shows that of its reader.
fn sysctls() -> BTreeMap<String, String> {
    let path = |name: &str| format!("/proc/sys/net/{}", name.replace('.', "/"));
    SYSCTLS
        .iter()
        .filter_map(|name| {
            let value = fs::read_to_string(path(name)).ok()?;
            Some(((*name).to_owned(), value.trim().to_owned()))
        })
        .collect()
}
