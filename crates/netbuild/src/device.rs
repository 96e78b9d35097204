//! Devices as netlink messages, and as they are read back.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_route::address::{
    AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::link::{
    BridgeStpState, InfoBridge, InfoData, InfoKind, InfoVeth, InfoVxlan, LinkAttribute, LinkFlags,
    LinkInfo, LinkMessage, VxlanDf,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use wirecost_model::plan::{OuterDf, Vxlan};

use crate::netlink::{Intent, Netlink};

/// Where the other end of a veth is made.
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
    pub(crate) up: bool,
    pub(crate) controller: Option<u32>,
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

/// A veth whose other end comes into being inside the other namespace: made there, not moved
/// there, so that it takes that namespace's `rps_default_mask` (net/core/net-sysfs.c).
pub(crate) fn create_veth(
    netlink: &mut Netlink,
    name: &str,
    peer_name: &str,
    peer_namespace: PeerNamespace<'_>,
    mtu: u32,
) -> io::Result<()> {
    let with_queues = |mut message: LinkMessage| {
        // One queue: with more, the kernel spreads flows over them by a hash we do not control.
        message.attributes.extend([
            LinkAttribute::Mtu(mtu),
            LinkAttribute::NumTxQueues(1),
            LinkAttribute::NumRxQueues(1),
        ]);
        message
    };
    let mut peer = with_queues(named(peer_name));
    peer.attributes.push(match peer_namespace {
        PeerNamespace::Process(pid) => LinkAttribute::NetNsPid(pid),
        PeerNamespace::Fd(fd) => LinkAttribute::NetNsFd(fd.as_raw_fd()),
    });
    let data = InfoData::Veth(InfoVeth::Peer(peer));
    create(netlink, with_queues(named(name)), InfoKind::Veth, data)
}

/// A bridge without spanning tree: ports forward at once.
pub(crate) fn create_bridge(netlink: &mut Netlink, name: &str) -> io::Result<()> {
    let data = InfoData::Bridge(vec![
        InfoBridge::StpState(BridgeStpState::Disabled),
        InfoBridge::ForwardDelay(0),
    ]);
    create(netlink, named(name), InfoKind::Bridge, data)
}

/// A unicast VXLAN tunnel (drivers/net/vxlan): one remote, no multicast.
pub(crate) fn create_vxlan(
    netlink: &mut Netlink,
    name: &str,
    vxlan: &Vxlan,
    ends: (IpAddr, IpAddr),
    underlay: u32,
    mtu: u32,
) -> io::Result<()> {
    let data = InfoData::Vxlan(vxlan_attributes(vxlan, ends, underlay));
    let mut message = named(name);
    message.attributes.push(LinkAttribute::Mtu(mtu));
    create(netlink, message, InfoKind::Vxlan, data)
}

/// `IFLA_VXLAN_*` (include/uapi/linux/if_link.h). Over IPv6 a zero checksum has to be allowed on
/// either side, sending and receiving; over IPv4 only sending has a choice.
fn vxlan_attributes(
    vxlan: &Vxlan,
    (local, remote): (IpAddr, IpAddr),
    underlay: u32,
) -> Vec<InfoVxlan> {
    vec![
        InfoVxlan::Id(vxlan.vni),
        InfoVxlan::Link(underlay),
        InfoVxlan::Port(vxlan.port),
        InfoVxlan::Learning(true),
        InfoVxlan::UDPCsum(vxlan.udp_checksum),
        InfoVxlan::UDPZeroCsumTX(!vxlan.udp_checksum),
        InfoVxlan::UDPZeroCsumRX(!vxlan.udp_checksum),
        InfoVxlan::Df(match vxlan.df {
            OuterDf::Unset => VxlanDf::Unset,
            OuterDf::Set => VxlanDf::Set,
            OuterDf::Inherit => VxlanDf::Inherit,
        }),
        match local {
            IpAddr::V4(address) => InfoVxlan::Local(address),
            IpAddr::V6(address) => InfoVxlan::Local6(address),
        },
        match remote {
            IpAddr::V4(address) => InfoVxlan::Group(address),
            IpAddr::V6(address) => InfoVxlan::Group6(address),
        },
    ]
}

/// A VXLAN device's options and its two ends, local and remote, as the kernel has them.
pub(crate) fn read_vxlan(
    netlink: &mut Netlink,
    name: &str,
) -> io::Result<(Vxlan, [Option<IpAddr>; 2])> {
    let message = read_message(netlink, name)?;
    let info = message
        .attributes
        .iter()
        .filter_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(info) => Some(info),
            _ => None,
        });
    let data = info.flatten().filter_map(|info| match info {
        LinkInfo::Data(InfoData::Vxlan(data)) => Some(data),
        _ => None,
    });
    Ok(vxlan_of(data.flatten()))
}

fn vxlan_of<'a>(attributes: impl Iterator<Item = &'a InfoVxlan>) -> (Vxlan, [Option<IpAddr>; 2]) {
    let mut vxlan = Vxlan {
        vni: u32::MAX,
        port: 0,
        ..Vxlan::default()
    };
    let (mut local, mut remote) = (None, None);
    // Every device tells of both checksums; only that of its own IP is in use.
    let (mut checksum4, mut zero6) = (false, [false; 2]);
    for attribute in attributes {
        match *attribute {
            InfoVxlan::Id(vni) => vxlan.vni = vni,
            InfoVxlan::Port(port) => vxlan.port = port,
            InfoVxlan::UDPCsum(on) => checksum4 = on,
            InfoVxlan::UDPZeroCsumTX(on) => zero6[0] = on,
            InfoVxlan::UDPZeroCsumRX(on) => zero6[1] = on,
            InfoVxlan::Df(VxlanDf::Set) => vxlan.df = OuterDf::Set,
            InfoVxlan::Df(VxlanDf::Inherit) => vxlan.df = OuterDf::Inherit,
            InfoVxlan::Local(address) => local = Some(address.into()),
            InfoVxlan::Local6(address) => local = Some(address.into()),
            InfoVxlan::Group(address) => remote = Some(address.into()),
            InfoVxlan::Group6(address) => remote = Some(address.into()),
            _ => {}
        }
    }
    vxlan.udp_checksum = match remote {
        Some(IpAddr::V6(_)) => zero6 != [true; 2],
        _ => checksum4,
    };
    (vxlan, [local, remote])
}

/// Changes MTU, controlling bridge and state of an existing device, whichever are given.
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

/// Gives a device an address. One of IPv6 is usable at once: nobody else is on this link, so that
/// duplicate address detection (RFC 4862, section 5.4) would only take its second.
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

/// Reads a device back.
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
        controller: find(|a| {
            if let LinkAttribute::Controller(i) = a {
                Some(*i)
            } else {
                None
            }
        }),
    })
}

fn read_message(netlink: &mut Netlink, name: &str) -> io::Result<LinkMessage> {
    match netlink.get(RouteNetlinkMessage::GetLink(named(name)))? {
        Some(RouteNetlinkMessage::NewLink(message)) => Ok(message),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use netlink_packet_core::Emitable;

    use super::*;

    fn bytes(attributes: &[InfoVxlan]) -> Vec<u8> {
        let mut bytes = vec![0; attributes.buffer_len()];
        attributes.emit(&mut bytes);
        bytes
    }

    const V6: (Ipv6Addr, Ipv6Addr) = (
        Ipv6Addr::new(0x2001, 2, 0, 0x18, 0, 0, 0, 1),
        Ipv6Addr::new(0x2001, 2, 0, 0x18, 0, 0, 0, 2),
    );

    #[test]
    fn a_tunnel_over_ipv6_has_ifla_vxlan_group6_and_local6_and_may_send_and_take_zero_checksums() {
        let ends = (V6.0.into(), V6.1.into());
        let sent = bytes(&vxlan_attributes(&Vxlan::default(), ends, 7));
        let expected: Vec<u8> = [
            &[8u8, 0, 1, 0, 42, 0, 0, 0][..], // IFLA_VXLAN_ID 42
            &[8, 0, 3, 0, 7, 0, 0, 0],        // IFLA_VXLAN_LINK 7
            &[6, 0, 15, 0, 0x12, 0xb5, 0, 0], // IFLA_VXLAN_PORT 4789, big-endian
            &[5, 0, 7, 0, 1, 0, 0, 0],        // IFLA_VXLAN_LEARNING
            &[5, 0, 18, 0, 0, 0, 0, 0],       // IFLA_VXLAN_UDP_CSUM off: IPv4's
            &[5, 0, 19, 0, 1, 0, 0, 0],       // IFLA_VXLAN_UDP_ZERO_CSUM6_TX on
            &[5, 0, 20, 0, 1, 0, 0, 0],       // IFLA_VXLAN_UDP_ZERO_CSUM6_RX on
            &[5, 0, 29, 0, 0, 0, 0, 0],       // IFLA_VXLAN_DF unset
            &[20, 0, 17, 0],                  // IFLA_VXLAN_LOCAL6
            &V6.0.octets(),
            &[20, 0, 16, 0], // IFLA_VXLAN_GROUP6
            &V6.1.octets(),
        ]
        .concat();
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_checksum_that_is_wanted_is_neither_left_out_nor_taken_as_zero() {
        let wanted = Vxlan {
            udp_checksum: true,
            ..Vxlan::default()
        };
        let ends = (V6.0.into(), V6.1.into());
        let attributes = vxlan_attributes(&wanted, ends, 7);
        assert!(attributes.contains(&InfoVxlan::UDPZeroCsumTX(false)));
        assert!(attributes.contains(&InfoVxlan::UDPZeroCsumRX(false)));
    }

    #[test]
    fn a_tunnels_options_read_back_over_either_ip() {
        let v4 = (Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2));
        let ends: [(IpAddr, IpAddr); 2] = [(v4.0.into(), v4.1.into()), (V6.0.into(), V6.1.into())];
        for ends in ends {
            for udp_checksum in [false, true] {
                let wanted = Vxlan {
                    udp_checksum,
                    ..Vxlan::default()
                };
                let sent = vxlan_attributes(&wanted, ends, 7);
                let read = vxlan_of(sent.iter());
                assert_eq!(read, (wanted, [Some(ends.0), Some(ends.1)]));
            }
        }
        // A kernel that took one side of it only did not do as it was told.
        let half = [
            InfoVxlan::Group6(V6.1),
            InfoVxlan::UDPZeroCsumTX(true),
            InfoVxlan::UDPZeroCsumRX(false),
        ];
        assert!(vxlan_of(half.iter()).0.udp_checksum);
    }

    #[test]
    fn an_ipv6_address_needs_no_detection_of_duplicates() {
        let message = address_message(3, V6.0.into(), 64);
        let mut sent = vec![0; message.buffer_len()];
        message.emit(&mut sent);
        let octets = V6.0.octets();
        let expected: Vec<u8> = [
            // struct ifaddrmsg: AF_INET6, prefix, IFA_F_NODAD, scope, index.
            &[10u8, 64, 0x02, 0, 3, 0, 0, 0][..],
            &[20, 0, 2, 0], // IFA_LOCAL
            &octets,
            &[20, 0, 1, 0], // IFA_ADDRESS
            &octets,
        ]
        .concat();
        assert_eq!(sent, expected);
        let ipv4 = address_message(3, Ipv4Addr::new(198, 18, 0, 1).into(), 24);
        assert!(ipv4.header.flags.is_empty());
    }
}
