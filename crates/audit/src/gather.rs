//! Reading a host. Nothing is changed: netlink dumps and lookups, ethtool's getters, files, and two programs that
//! list rules.

mod firewall;
mod ipv6;
mod links;
mod namespaces;
mod netlink;
mod ovn;
mod ovsdb;
mod queues;
mod routes;
mod rules;
mod tunnels;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::Netns;

use crate::snapshot::{
    EgressRoute, Enter, HostStack, Namespace, Neighbour, Unread, VERSION, VethPeer,
};
use netlink::Netlink;
pub use routes::reads_route;
pub use rules::{Dropping, dropping};
use tunnels::Outer;

/// What decides over large packets, below `net.`.
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
    "ipv6.conf.all.forwarding",
    "ipv6.conf.all.disable_ipv6",
    "ipv6.fib_multipath_hash_policy",
    "bridge.bridge-nf-call-iptables",
];

/// Namespaces that are followed; a host of a thousand containers is not read whole.
const MOST_NAMESPACES: usize = 128;
/// The programs that list rules are started for so many of them.
const MOST_RULE_SETS: usize = 4;

/// One namespace under way.
struct Reading {
    netns: Netns,
    /// Whether the calling thread is in it already.
    own: bool,
    netlink: Netlink,
    namespace: Namespace,
    /// The other ends of its veths: position of the device, index there, number of the namespace there.
    other_ends: Vec<(usize, u32, Option<i32>)>,
    /// Its tunnels whose sockets are elsewhere.
    away: Vec<Away>,
}

/// A tunnel whose socket is in another namespace than its device.
struct Away {
    /// Position of the device.
    device: usize,
    /// Number of the socket's namespace.
    socket: i32,
    remotes: BTreeSet<IpAddr>,
    outer: Outer,
}

/// Does something in a namespace. The own one is not entered: even that takes `CAP_SYS_ADMIN`
/// (net/core/net_namespace.c, `netns_install`), and a plain user may read what is there.
fn inside<T>(netns: &Netns, own: bool, work: impl FnOnce() -> T) -> io::Result<T> {
    if own { Ok(work()) } else { netns.within(work) }
}

/// Reads the namespace that the calling thread is in, and those that its veths lead to, as far as this process may
/// enter them. `host` is what the host is to be called.
///
/// # Errors
/// Where not even the devices can be listed. Everything else that cannot be read is named in
/// [`HostStack::unread`].
pub fn gather(host: &str) -> io::Result<HostStack> {
    let mut unread = Vec::new();
    let own = read(Netns::current()?, ("host", Enter::Here), true, &mut unread)?;
    let mut readings = vec![own];
    let mut at = 0;
    while at < readings.len() {
        follow(at, &mut readings, &mut unread);
        at += 1;
    }
    link_peers(&mut readings);
    route_from_sockets(&mut readings);
    for (at, reading) in readings.iter_mut().enumerate().take(MOST_RULE_SETS) {
        let forwards = reading.namespace.number("ipv4.ip_forward") == Some(1);
        if at > 0 && !forwards {
            continue;
        }
        match inside(&reading.netns, reading.own, firewall::read)
            .map_err(|error| error.to_string())
            .flatten()
        {
            Ok(clamps) => reading.namespace.mss_clamps = Some(clamps),
            Err(why) => unread.push(Unread {
                what: format!("rules that change TCP's MSS ({})", reading.namespace.label),
                why,
            }),
        }
    }
    let ovs = open_vswitch(&mut readings[0], &mut unread);
    Ok(HostStack {
        version: VERSION,
        host: host.to_owned(),
        namespaces: readings
            .into_iter()
            .map(|reading| reading.namespace)
            .collect(),
        ovs,
        cpus: online(),
        unread,
    })
}

/// How packets between two addresses leave the calling thread's namespace. `None` where there is no route.
///
/// # Errors
/// Where the kernel cannot be asked.
pub fn egress_route(from: IpAddr, to: IpAddr) -> io::Result<Option<EgressRoute>> {
    let mut asked = Netlink::open()?;
    let mut name = |index| links::named(&mut asked, index).map(|(name, _)| name);
    let way = routes::egress_route(&mut Netlink::open()?, (from, to), &mut name);
    let Some(way) = way else { return Ok(None) };
    let device = links::named(&mut asked, way.device);
    Ok(device.map(|(device, mtu)| EgressRoute {
        ipv6_mtu: ipv6::mtu(&device).filter(|&six| to.is_ipv6() && six < mtu),
        device_mtu: Some(mtu),
        device,
        router: way.router,
        mtu: way.mtu,
        route: way.route,
    }))
}

/// What the calling thread's namespace knows of the neighbour that packets between two addresses go to first, and its
/// address. `None` where there is no route.
///
/// # Errors
/// Where the kernel cannot be asked.
pub fn neighbour(from: IpAddr, to: IpAddr) -> io::Result<Option<(IpAddr, Neighbour)>> {
    let mut netlink = Netlink::open()?;
    let way = routes::egress_route(&mut netlink, (from, to), &mut |_| None);
    Ok(way.map(|way| {
        let next = way.router.unwrap_or(to);
        (next, routes::neighbour(&mut netlink, way.device, next))
    }))
}

/// The first and the last source port that a tunnel of the calling thread's namespace to this destination port picks
/// from. `None`: there is no such tunnel, or it has no range of its own.
///
/// # Errors
/// Where the devices cannot be listed.
pub fn source_ports(port: u16) -> io::Result<Option<(u16, u16)>> {
    let links = links::read(&mut Netlink::open()?)?;
    let mut tunnels = links.iter().filter_map(|link| link.device.tunnel.as_ref());
    Ok(tunnels.find_map(|tunnel| tunnel.source_ports.filter(|_| tunnel.port == port)))
}

fn read(
    netns: Netns,
    (label, enter): (&str, Enter),
    own: bool,
    unread: &mut Vec<Unread>,
) -> io::Result<Reading> {
    let (netlink, ethtool, sysctls, mut ipv6_mtus) = inside(&netns, own, || {
        (Netlink::open(), Ethtool::open(), sysctls(), ipv6::mtus())
    })?;
    let (mut netlink, ethtool) = (netlink?, ethtool?);
    let links = links::read(&mut netlink)?;
    let mut name = |index| {
        let mut devices = links.iter().map(|link| &link.device);
        let device = devices.find(|device| device.index == index);
        device.map(|device| device.name.clone())
    };
    let table = routes::read(&mut netlink, &mut name).unwrap_or_else(|error| {
        unread.push(Unread {
            what: format!("routes ({label})"),
            why: error.to_string(),
        });
        routes::Routes::default()
    });
    let forwarding = routes::forwarding(&mut netlink);
    let mut devices = Vec::new();
    let mut other_ends = Vec::new();
    let mut away = Vec::new();
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
                away.push(Away {
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
    let inode = netns.inode().ok();
    Ok(Reading {
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
            default_device: table.default_device,
        },
        other_ends,
        away,
    })
}

/// Processors of the machine, however few of them this process may use: `0-7,9`.
fn online() -> u32 {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    text.trim().split(',').filter_map(count).sum()
}

/// /proc/sys/net shows the namespace of whoever reads it.
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

/// Reads the namespaces that veths of the one at `at` lead to, and those of its tunnels' sockets, that were not read yet.
fn follow(at: usize, readings: &mut Vec<Reading>, unread: &mut Vec<Unread>) {
    let mut wanted: BTreeSet<i32> = readings[at]
        .other_ends
        .iter()
        .filter_map(|(_, _, number)| *number)
        .chain(readings[at].away.iter().map(|away| away.socket))
        .collect();
    for position in 0..readings.len() {
        let descriptor = readings[position].netns.as_raw_fd();
        if let Some(number) = namespaces::number_of(&mut readings[at].netlink, descriptor) {
            wanted.remove(&number);
        }
    }
    if wanted.is_empty() {
        return;
    }
    let mut seen = BTreeSet::new();
    for candidate in namespaces::candidates() {
        if wanted.is_empty() || readings.len() >= MOST_NAMESPACES {
            break;
        }
        let identity = fs::metadata(&candidate.path).ok().map(|about| {
            use std::os::unix::fs::MetadataExt;
            (about.dev(), about.ino())
        });
        let Some(identity) = identity else { continue };
        if !seen.insert(identity) {
            continue;
        }
        let Ok(file) = namespaces::open(&candidate) else {
            continue;
        };
        let descriptor = namespaces::number(&file);
        let Some(number) = namespaces::number_of(&mut readings[at].netlink, descriptor) else {
            continue;
        };
        if !wanted.contains(&number) {
            continue;
        }
        let label = (candidate.label.as_str(), candidate.enter);
        match read(Netns::from(file), label.clone(), false, unread) {
            Ok(reading) => {
                wanted.remove(&number);
                readings.push(reading);
            }
            Err(error) => unread.push(Unread {
                what: format!("the namespace of {}", label.0),
                why: format!("{error}; entering it needs CAP_SYS_ADMIN over it"),
            }),
        }
    }
    if !wanted.is_empty() {
        unread.push(Unread {
            what: format!(
                "{} namespace(s) that devices of {} lead to",
                wanted.len(),
                readings[at].namespace.label
            ),
            why: "no process that can be seen is in it; as root of the machine more is visible"
                .into(),
        });
    }
}

/// Gives every veth its other end.
fn link_peers(readings: &mut [Reading]) {
    for at in 0..readings.len() {
        let positions = positions(at, readings);
        let reading = &mut readings[at];
        for (device, index, number) in &reading.other_ends {
            reading.namespace.devices[*device].peer = Some(VethPeer {
                namespace: number.map_or(Some(at), |number| positions.get(&number).copied()),
                index: *index,
            });
        }
    }
}

/// Positions of the namespaces that were read, by the number that the one at `at` has for them.
fn positions(at: usize, readings: &mut [Reading]) -> BTreeMap<i32, usize> {
    let mut positions = BTreeMap::new();
    for position in 0..readings.len() {
        let descriptor = readings[position].netns.as_raw_fd();
        if let Some(number) = namespaces::number_of(&mut readings[at].netlink, descriptor) {
            positions.insert(number, position);
        }
    }
    positions
}

/// Tunnels send from where their sockets are. Where that namespace was not read, nothing is known of their routes.
fn route_from_sockets(readings: &mut [Reading]) {
    for at in 0..readings.len() {
        let away = std::mem::take(&mut readings[at].away);
        if away.is_empty() {
            continue;
        }
        let positions = positions(at, readings);
        for tunnel in away {
            let Some(&position) = positions.get(&tunnel.socket) else {
                continue;
            };
            let device = &readings[at].namespace.devices[tunnel.device];
            let port = device.tunnel.as_ref().map_or(0, |tunnel| tunnel.port);
            let netlink = &mut readings[position].netlink;
            let remotes = tunnel.remotes.into_iter();
            let remotes = remotes
                .map(|to| routes::tunnel_towards(netlink, (to, port), tunnel.outer))
                .collect();
            if let Some(told) = &mut readings[at].namespace.devices[tunnel.device].tunnel {
                told.socket = Some(position);
                told.remotes = remotes;
            }
        }
    }
}

/// Open vSwitch, where its devices are in this namespace.
fn open_vswitch(own: &mut Reading, unread: &mut Vec<Unread>) -> Option<crate::snapshot::Ovs> {
    let socket = ovsdb::socket()?;
    let mut ovs = match ovsdb::read(&socket) {
        Ok(ovs) => ovs,
        Err(error) => {
            unread.push(Unread {
                what: format!("Open vSwitch's database ({})", socket.display()),
                why: format!("{error}; root may read it"),
            });
            return None;
        }
    };
    let is_here = |name: &str| {
        own.namespace
            .devices
            .iter()
            .any(|device| device.name == name)
    };
    if !ovs.bridges.is_empty() && !ovs.bridges.iter().any(|bridge| is_here(&bridge.name)) {
        unread.push(Unread {
            what: "Open vSwitch".into(),
            why: "it runs, but its bridges are in another namespace".into(),
        });
        return None;
    }
    if ovs.is_ovn() {
        ovn::read(&mut ovs, unread);
    }
    for bridge in &mut ovs.bridges {
        for interface in &mut bridge.interfaces {
            let remote = interface.options.get("remote_ip");
            interface.remote = remote
                .and_then(|remote| remote.parse().ok())
                .map(|address| routes::towards(&mut own.netlink, address));
        }
    }
    Some(ovs)
}
