//! Devices as rtnetlink messages, and as they are read back.

mod ip_tunnel;
mod state;
#[cfg(test)]
mod tests;
mod tunnel;

pub(crate) use ip_tunnel::{TunnelDevice, create_ip_tunnel, read_ip_tunnel};
pub(crate) use state::{enslave, has_queues, up};
pub(crate) use tunnel::{
    create_geneve, create_vlan, create_vxlan, read_geneve, read_vlan, read_vxlan,
};

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, BridgeStpState, In6AddrGenMode, InfoBridge, InfoBridgePort,
    InfoData, InfoGeneve, InfoKind, InfoPortData, InfoPortKind, InfoVeth, InfoVxlan, LinkAttribute,
    LinkFlags, LinkInfo, LinkMessage, State,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::nsid::{NsidAttribute, NsidMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::{Intent, Netlink};

/// Namespace where the other end of a veth is created.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PeerNamespace<'a> {
    Process(u32),
    Fd(BorrowedFd<'a>),
}

/// A device as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    pub(crate) index: u32,
    pub(crate) mtu: u32,
    /// Whether the device is administratively up (`IFF_UP`).
    pub(crate) up: bool,
    /// Whether the device is operationally up (RFC 2863): administratively up at both ends, its queue in place. A
    /// device whose state is unknown counts as up.
    pub(crate) carries: bool,
    pub(crate) controller: Option<u32>,
    pub(crate) tx_queues: Option<u32>,
    pub(crate) rx_queues: Option<u32>,
}

/// Name of a device to create, and the namespace through which its encapsulated packets leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewDevice<'a> {
    pub(crate) name: &'a str,
    /// Network namespace, by its id in that of the netlink connection, whose addresses and routes a tunnel uses; `None`
    /// is the device's own. Before Linux 6.15 the device is for a moment in that namespace (net/core/rtnetlink.c,
    /// `rtnl_newlink_create`): its name must be free in both.
    pub(crate) link_netns: Option<i32>,
}

impl<'a> From<&'a str> for NewDevice<'a> {
    fn from(name: &'a str) -> Self {
        let link_netns = None;
        Self { name, link_netns }
    }
}

impl NewDevice<'_> {
    fn message(self) -> LinkMessage {
        let mut message = named(self.name);
        let link_netns = self.link_netns.map(LinkAttribute::LinkNetNsId);
        message.attributes.extend(link_netns);
        message
    }
}

/// Gives another network namespace an id in that of the netlink connection (rtnetlink(7), `RTM_NEWNSID`), where it has
/// none yet.
pub(crate) fn number_netns(netlink: &mut Netlink, netns: BorrowedFd<'_>) -> io::Result<i32> {
    // The first id: the netlink connection's namespace is new.
    const NUMBER: i32 = 0;
    let mut message = NsidMessage::default();
    message.attributes = vec![
        NsidAttribute::Id(NUMBER),
        NsidAttribute::Fd(netns.as_raw_fd() as u32),
    ];
    netlink.apply(RouteNetlinkMessage::NewNsId(message), Intent::Create)?;
    Ok(NUMBER)
}

/// Renames a device that is down.
pub(crate) fn rename(netlink: &mut Netlink, from: &str, to: &str) -> io::Result<()> {
    let mut message = named(to);
    message.header.index = read(netlink, from)?.index;
    netlink.apply(RouteNetlinkMessage::SetLink(message), Intent::Change)
}

fn named(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message
        .attributes
        .push(LinkAttribute::IfName(name.to_owned()));
    message
}

fn create(
    netlink: &mut Netlink,
    mut message: LinkMessage,
    kind: InfoKind,
    data: InfoData,
) -> io::Result<()> {
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::Kind(kind),
        LinkInfo::Data(data),
    ]));
    netlink.apply(RouteNetlinkMessage::NewLink(message), Intent::Create)
}

/// Creates a device of a kind without options of its own; `mtu` in bytes.
pub(crate) fn create_plain(
    netlink: &mut Netlink,
    new: NewDevice<'_>,
    kind: InfoKind,
    mtu: u32,
) -> io::Result<()> {
    let mut message = new.message();
    message.attributes.extend([
        LinkAttribute::Mtu(mtu),
        LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind)]),
    ]);
    netlink.apply(RouteNetlinkMessage::NewLink(message), Intent::Create)
}

/// Parameters of one end of a veth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VethEnd<'a> {
    pub(crate) name: &'a str,
    /// MTU, bytes.
    pub(crate) mtu: u32,
    /// Hardware address; `None`: the kernel draws one.
    pub(crate) mac: Option<[u8; 6]>,
    /// Number of transmit queues, and of receive queues, all in use (drivers/net/veth.c, `veth_init_queues`).
    pub(crate) queues: u32,
}

impl VethEnd<'_> {
    fn message(self, namespace: Option<PeerNamespace<'_>>) -> LinkMessage {
        let mut message = named(self.name);
        message.attributes.extend([
            LinkAttribute::Mtu(self.mtu),
            LinkAttribute::NumTxQueues(self.queues),
            LinkAttribute::NumRxQueues(self.queues),
        ]);
        let mac = self.mac.map(|mac| LinkAttribute::Address(mac.to_vec()));
        message.attributes.extend(mac);
        message
            .attributes
            .extend(namespace.map(|namespace| match namespace {
                PeerNamespace::Process(pid) => LinkAttribute::NetNsPid(pid),
                PeerNamespace::Fd(fd) => LinkAttribute::NetNsFd(fd.as_raw_fd()),
            }));
        message
    }
}

/// Creates a veth whose ends are created inside their namespaces, not moved there, so that they take these namespaces'
/// `rps_default_mask` (net/core/net-sysfs.c). `None` is the namespace of `netlink`.
pub(crate) fn create_veth_between(
    netlink: &mut Netlink,
    (from, own): (Option<PeerNamespace<'_>>, VethEnd<'_>),
    (to, other): (PeerNamespace<'_>, VethEnd<'_>),
) -> io::Result<()> {
    let data = InfoData::Veth(InfoVeth::Peer(other.message(Some(to))));
    create(netlink, own.message(from), InfoKind::Veth, data)
}

/// Creates a veth with both ends in the namespace of `netlink`.
pub(crate) fn create_veth_here(
    netlink: &mut Netlink,
    own: VethEnd<'_>,
    other: VethEnd<'_>,
) -> io::Result<()> {
    let data = InfoData::Veth(InfoVeth::Peer(other.message(None)));
    create(netlink, own.message(None), InfoKind::Veth, data)
}

/// Creates a veth towards another namespace, with the same MTU in bytes and number of queues at both ends.
pub(crate) fn create_veth(
    netlink: &mut Netlink,
    (name, peer_name): (&str, &str),
    peer_namespace: PeerNamespace<'_>,
    mtu: u32,
    queues: u32,
) -> io::Result<()> {
    let end = |name| VethEnd {
        name,
        mtu,
        mac: None,
        queues,
    };
    create_veth_between(netlink, (None, end(name)), (peer_namespace, end(peer_name)))
}

/// How a bridge treats a port (ip-link(8), `bridge_slave`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortFlags {
    /// Whether the bridge floods frames of unknown destination, broadcasts and multicasts to the port.
    pub(crate) flood: bool,
    /// Whether the bridge learns the source addresses of frames from the port.
    pub(crate) learning: bool,
    /// Whether the bridge does not forward between the port and other isolated ports.
    pub(crate) isolated: bool,
}

/// Sets how a bridge treats a port.
pub(crate) fn set_port(netlink: &mut Netlink, name: &str, flags: PortFlags) -> io::Result<()> {
    let mut message = named(name);
    let data = InfoPortData::BridgePort(vec![
        InfoBridgePort::UnicastFlood(flags.flood),
        InfoBridgePort::MulticastFlood(flags.flood),
        InfoBridgePort::BroadcastFlood(flags.flood),
        InfoBridgePort::Learning(flags.learning),
        InfoBridgePort::Isolated(flags.isolated),
    ]);
    message.attributes.push(LinkAttribute::LinkInfo(vec![
        LinkInfo::PortKind(InfoPortKind::Bridge),
        LinkInfo::PortData(data),
    ]));
    netlink.apply(RouteNetlinkMessage::NewLink(message), Intent::Change)
}

/// Creates a bridge without spanning tree, whose ports forward at once, and without multicast snooping, for which it
/// would send reports of its own (net/bridge/br_multicast.c, `br_multicast_join_snoopers`).
pub(crate) fn create_bridge(netlink: &mut Netlink, name: &str) -> io::Result<()> {
    let data = InfoData::Bridge(vec![
        InfoBridge::StpState(BridgeStpState::Disabled),
        InfoBridge::ForwardDelay(0),
        InfoBridge::MulticastSnooping(false),
    ]);
    create(netlink, named(name), InfoKind::Bridge, data)
}

/// A device's kind; `None` for a device without one, such as loopback or a network card.
pub(crate) fn read_kind(netlink: &mut Netlink, name: &str) -> io::Result<Option<InfoKind>> {
    let attributes = read_message(netlink, name)?.attributes;
    let info = attributes
        .into_iter()
        .filter_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(info) => Some(info),
            _ => None,
        });
    Ok(info.flatten().find_map(|info| match info {
        LinkInfo::Kind(kind) => Some(kind),
        _ => None,
    }))
}

/// Changes to an existing device: MTU in bytes, index of the controlling bridge, and setting it up, whichever are
/// given.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) mtu: Option<u32>,
    pub(crate) controller: Option<u32>,
    pub(crate) up: bool,
}

impl Change {
    pub(crate) fn apply(self, netlink: &mut Netlink, name: &str) -> io::Result<()> {
        let mut message = named(name);
        if self.up {
            message.header.flags = LinkFlags::Up;
            message.header.change_mask = LinkFlags::Up;
        }
        message.attributes.extend(self.mtu.map(LinkAttribute::Mtu));
        message
            .attributes
            .extend(self.controller.map(LinkAttribute::Controller));
        netlink.apply(RouteNetlinkMessage::SetLink(message), Intent::Change)
    }
}

/// Keeps the kernel from giving a device a link-local address, from which it would solicit routers and report multicast
/// groups (`IFLA_INET6_ADDR_GEN_MODE`). A kernel or a device without IPv6 has none.
pub(crate) fn set_no_link_local(netlink: &mut Netlink, name: &str) -> io::Result<()> {
    const EAFNOSUPPORT: i32 = 97;
    let mut message = named(name);
    let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
    let family = AfSpecUnspec::Inet6(vec![mode]);
    message
        .attributes
        .push(LinkAttribute::AfSpecUnspec(vec![family]));
    match netlink.apply(RouteNetlinkMessage::SetLink(message), Intent::Change) {
        Err(error) if crate::netlink::code(&error) == Some(EAFNOSUPPORT) => Ok(()),
        set => set,
    }
}

/// Sets a device's hardware address.
pub(crate) fn set_mac(netlink: &mut Netlink, name: &str, mac: [u8; 6]) -> io::Result<()> {
    let mut message = named(name);
    message
        .attributes
        .push(LinkAttribute::Address(mac.to_vec()));
    netlink.apply(RouteNetlinkMessage::SetLink(message), Intent::Change)
}

/// A device's hardware address.
pub(crate) fn read_mac(netlink: &mut Netlink, name: &str) -> io::Result<Vec<u8>> {
    let attributes = read_message(netlink, name)?.attributes;
    let mut addresses = attributes
        .into_iter()
        .filter_map(|attribute| match attribute {
            LinkAttribute::Address(mac) => Some(mac),
            _ => None,
        });
    Ok(addresses.next().unwrap_or_default())
}

/// Gives a device an address. An IPv6 address is usable at once: no other node is on this link, so duplicate address
/// detection (RFC 4862, section 5.4), which takes a second, is not needed.
pub(crate) fn add_address(
    netlink: &mut Netlink,
    index: u32,
    address: IpAddr,
    prefix: u8,
) -> io::Result<()> {
    let message = address_message(index, address, prefix);
    netlink.apply(RouteNetlinkMessage::NewAddress(message), Intent::Create)
}

fn address_message(index: u32, address: IpAddr, prefix: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    message.header.prefix_len = prefix;
    message.header.scope = AddressScope::Universe;
    message.header.index = index;
    if address.is_ipv6() {
        message.header.flags = AddressHeaderFlags::Nodad;
    }
    message.attributes = vec![
        AddressAttribute::Local(address),
        AddressAttribute::Address(address),
    ];
    message
}

/// Adds a permanent neighbour entry: the hardware address of an address on the device's link.
pub(crate) fn add_neighbour(
    netlink: &mut Netlink,
    index: u32,
    address: IpAddr,
    mac: [u8; 6],
) -> io::Result<()> {
    let message = neighbour_message(index, address, mac);
    // Packets from the other host may already have made the kernel look for the address.
    netlink.apply(RouteNetlinkMessage::NewNeighbour(message), Intent::Replace)
}

fn neighbour_message(index: u32, address: IpAddr, mac: [u8; 6]) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    let (family, destination) = match address {
        IpAddr::V4(v4) => (AddressFamily::Inet, NeighbourAddress::Inet(v4)),
        IpAddr::V6(v6) => (AddressFamily::Inet6, NeighbourAddress::Inet6(v6)),
    };
    message.header.family = family;
    message.attributes = vec![
        NeighbourAttribute::Destination(destination),
        NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
    ];
    message
}

/// Removes a device.
pub(crate) fn delete(netlink: &mut Netlink, name: &str) -> io::Result<()> {
    netlink.apply(RouteNetlinkMessage::DelLink(named(name)), Intent::Change)
}

/// Names of a namespace's devices that are not operationally up yet; see [`Device::carries`].
pub(crate) fn not_carrying(netlink: &mut Netlink) -> io::Result<Vec<String>> {
    let all = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let links = all.into_iter().filter_map(|message| match message {
        RouteNetlinkMessage::NewLink(link) => Some(link),
        _ => None,
    });
    let waiting = links.filter(|link| !carries(link));
    Ok(waiting
        .flat_map(|link| link.attributes)
        .filter_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name),
            _ => None,
        })
        .collect())
}

fn carries(message: &LinkMessage) -> bool {
    message.attributes.iter().any(|attribute| {
        matches!(
            attribute,
            LinkAttribute::OperState(State::Up | State::Unknown)
        )
    })
}

/// Reads a device's state back.
pub(crate) fn read(netlink: &mut Netlink, name: &str) -> io::Result<Device> {
    let message = read_message(netlink, name)?;
    let find = |pick: fn(&LinkAttribute) -> Option<u32>| message.attributes.iter().find_map(pick);
    Ok(Device {
        index: message.header.index,
        mtu: find(|a| {
            if let LinkAttribute::Mtu(mtu) = a {
                Some(*mtu)
            } else {
                None
            }
        })
        .unwrap_or(0),
        up: message.header.flags.contains(LinkFlags::Up),
        carries: carries(&message),
        controller: find(|a| {
            if let LinkAttribute::Controller(i) = a {
                Some(*i)
            } else {
                None
            }
        }),
        tx_queues: find(|a| {
            if let LinkAttribute::NumTxQueues(n) = a {
                Some(*n)
            } else {
                None
            }
        }),
        rx_queues: find(|a| {
            if let LinkAttribute::NumRxQueues(n) = a {
                Some(*n)
            } else {
                None
            }
        }),
    })
}

/// UDP ports of all VXLAN and Geneve devices of a namespace, whether the devices are up or not.
pub(crate) fn tunnel_ports(netlink: &mut Netlink) -> io::Result<Vec<u16>> {
    let all = netlink.dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let attributes = all.into_iter().flat_map(|message| match message {
        RouteNetlinkMessage::NewLink(link) => link.attributes,
        _ => Vec::new(),
    });
    let info = attributes.flat_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(info) => info,
        _ => Vec::new(),
    });
    let of_device = |info: LinkInfo| match info {
        LinkInfo::Data(InfoData::Vxlan(data)) => data.iter().find_map(|data| match data {
            InfoVxlan::Port(port) => Some(*port),
            _ => None,
        }),
        LinkInfo::Data(InfoData::Geneve(data)) => data.iter().find_map(|data| match data {
            InfoGeneve::Port(port) => Some(*port),
            _ => None,
        }),
        _ => None,
    };
    Ok(info.filter_map(of_device).collect())
}

fn read_message(netlink: &mut Netlink, name: &str) -> io::Result<LinkMessage> {
    match netlink.get(RouteNetlinkMessage::GetLink(named(name)))? {
        Some(RouteNetlinkMessage::NewLink(message)) => Ok(message),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}
