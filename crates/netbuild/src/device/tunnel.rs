//! The kernel's VXLAN, Geneve and VLAN devices as rtnetlink messages and as they are read back.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::link::{
    GeneveDf, InfoData, InfoGeneve, InfoKind, InfoVlan, InfoVxlan, LinkAttribute, LinkInfo, VxlanDf,
};
use wirecost_model::plan::{Geneve, OuterDf, SourcePorts, Vxlan};

use super::{NewDevice, create, named, read_message};
use crate::netlink::Netlink;

/// Creates a unicast VXLAN device (drivers/net/vxlan): one remote, no multicast. `underlay` is an interface index.
pub(crate) fn create_vxlan(
    netlink: &mut Netlink,
    new: NewDevice<'_>,
    vxlan: &Vxlan,
    ends: (IpAddr, IpAddr),
    underlay: u32,
    mtu: u32,
) -> io::Result<()> {
    let data = InfoData::Vxlan(vxlan_attributes(vxlan, ends, underlay));
    let mut message = new.message();
    message.attributes.push(LinkAttribute::Mtu(mtu));
    create(netlink, message, InfoKind::Vxlan, data)
}

/// `IFLA_VXLAN_*` attributes (include/uapi/linux/if_link.h). Over IPv6 a zero UDP checksum has to be allowed for
/// sending and for receiving; over IPv4 only sending has a choice.
pub(super) fn vxlan_attributes(
    vxlan: &Vxlan,
    (local, remote): (IpAddr, IpAddr),
    underlay: u32,
) -> Vec<InfoVxlan> {
    let mut attributes = vec![
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
    ];
    let ports = vxlan.source_ports;
    attributes.extend(ports.map(|ports| InfoVxlan::PortRange((ports.first, ports.last))));
    attributes
}

/// A VXLAN device's options and its two ends, local and remote, as the kernel has them.
pub(crate) fn read_vxlan(
    netlink: &mut Netlink,
    name: &str,
) -> io::Result<(Vxlan, [Option<IpAddr>; 2])> {
    let data = read_data(netlink, name)?;
    let of_kind = data.iter().filter_map(|data| match data {
        InfoData::Vxlan(data) => Some(data),
        _ => None,
    });
    Ok(vxlan_of(of_kind.flatten()))
}

pub(super) fn vxlan_of<'a>(
    attributes: impl Iterator<Item = &'a InfoVxlan>,
) -> (Vxlan, [Option<IpAddr>; 2]) {
    let mut vxlan = Vxlan {
        vni: u32::MAX,
        port: 0,
        ..Vxlan::default()
    };
    let (mut local, mut remote) = (None, None);
    // Every device reports the checksum flags of both IP versions; only those of its own are in use.
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
            // 0 to 0 stands for net.ipv4.ip_local_port_range (include/net/udp.h, `udp_flow_src_port`).
            InfoVxlan::PortRange((first, last)) => {
                vxlan.source_ports = (first > 0).then_some(SourcePorts { first, last });
            }
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

/// Creates a Geneve device with one remote (drivers/net/geneve.c). It sends no Geneve options.
pub(crate) fn create_geneve(
    netlink: &mut Netlink,
    new: NewDevice<'_>,
    geneve: &Geneve,
    remote: IpAddr,
    mtu: u32,
) -> io::Result<()> {
    let data = InfoData::Geneve(geneve_attributes(geneve, remote));
    let mut message = new.message();
    message.attributes.push(LinkAttribute::Mtu(mtu));
    create(netlink, message, InfoKind::Geneve, data)
}

/// `IFLA_GENEVE_*` attributes (include/uapi/linux/if_link.h); UDP checksums as for VXLAN.
pub(super) fn geneve_attributes(geneve: &Geneve, remote: IpAddr) -> Vec<InfoGeneve> {
    vec![
        InfoGeneve::Id(geneve.vni),
        match remote {
            IpAddr::V4(address) => InfoGeneve::Remote(address),
            IpAddr::V6(address) => InfoGeneve::Remote6(address),
        },
        InfoGeneve::Port(geneve.port),
        InfoGeneve::UdpCsum(geneve.udp_checksum),
        InfoGeneve::UdpZeroCsum6Tx(!geneve.udp_checksum),
        InfoGeneve::UdpZeroCsum6Rx(!geneve.udp_checksum),
        InfoGeneve::Df(match geneve.df {
            OuterDf::Unset => GeneveDf::Unset,
            OuterDf::Set => GeneveDf::Set,
            OuterDf::Inherit => GeneveDf::Inherit,
        }),
    ]
}

/// A Geneve device's options and its remote, as the kernel has them.
pub(crate) fn read_geneve(
    netlink: &mut Netlink,
    name: &str,
) -> io::Result<(Geneve, Option<IpAddr>)> {
    let data = read_data(netlink, name)?;
    let of_kind = data.iter().filter_map(|data| match data {
        InfoData::Geneve(data) => Some(data),
        _ => None,
    });
    Ok(geneve_of(of_kind.flatten()))
}

pub(super) fn geneve_of<'a>(
    attributes: impl Iterator<Item = &'a InfoGeneve>,
) -> (Geneve, Option<IpAddr>) {
    let mut geneve = Geneve {
        vni: u32::MAX,
        port: 0,
        ..Geneve::default()
    };
    let mut remote = None;
    let (mut checksum4, mut zero6) = (false, [false; 2]);
    for attribute in attributes {
        match *attribute {
            InfoGeneve::Id(vni) => geneve.vni = vni,
            InfoGeneve::Port(port) => geneve.port = port,
            InfoGeneve::UdpCsum(on) => checksum4 = on,
            InfoGeneve::UdpZeroCsum6Tx(on) => zero6[0] = on,
            InfoGeneve::UdpZeroCsum6Rx(on) => zero6[1] = on,
            InfoGeneve::Df(GeneveDf::Set) => geneve.df = OuterDf::Set,
            InfoGeneve::Df(GeneveDf::Inherit) => geneve.df = OuterDf::Inherit,
            InfoGeneve::Remote(address) => remote = Some(address.into()),
            InfoGeneve::Remote6(address) => remote = Some(address.into()),
            _ => {}
        }
    }
    geneve.udp_checksum = match remote {
        Some(IpAddr::V6(_)) => zero6 != [true; 2],
        _ => checksum4,
    };
    (geneve, remote)
}

/// Creates a VLAN device over the device of index `below` (net/8021q): it adds the tag `id` to what it sends, and
/// receives the frames with that tag.
pub(crate) fn create_vlan(
    netlink: &mut Netlink,
    name: &str,
    id: u16,
    below: u32,
    mtu: u32,
) -> io::Result<()> {
    let mut message = named(name);
    message
        .attributes
        .extend([LinkAttribute::Link(below), LinkAttribute::Mtu(mtu)]);
    create(netlink, message, InfoKind::Vlan, vlan_data(id))
}

pub(super) fn vlan_data(id: u16) -> InfoData {
    InfoData::Vlan(vec![InfoVlan::Id(id)])
}

/// VLAN id of a VLAN device.
pub(crate) fn read_vlan(netlink: &mut Netlink, name: &str) -> io::Result<Option<u16>> {
    let data = read_data(netlink, name)?;
    Ok(data.iter().find_map(|data| match data {
        InfoData::Vlan(data) => data.iter().find_map(|info| match info {
            InfoVlan::Id(id) => Some(*id),
            _ => None,
        }),
        _ => None,
    }))
}

/// Options of a device that depend on its kind (`IFLA_INFO_DATA`).
fn read_data(netlink: &mut Netlink, name: &str) -> io::Result<Vec<InfoData>> {
    let attributes = read_message(netlink, name)?.attributes;
    let info = attributes
        .into_iter()
        .filter_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(info) => Some(info),
            _ => None,
        });
    Ok(info
        .flatten()
        .filter_map(|info| match info {
            LinkInfo::Data(data) => Some(data),
            _ => None,
        })
        .collect())
}
