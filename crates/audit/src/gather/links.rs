//! Devices: `RTM_GETLINK`, `RTM_GETADDR` and `RTM_GETQDISC` (include/uapi/linux/if_link.h, if_addr.h, rtnetlink.h).

use std::io;

use wirecost_netlink::raw::Raw;

use super::attributes::Attributes;
use super::tunnels::{self, OuterFlow};
use crate::snapshot::{Device, Drops};

const GETLINK: u16 = 18;
const GETADDR: u16 = 22;
const GETQDISC: u16 = 38;
/// Sizes of struct ifinfomsg, struct ifaddrmsg and struct tcmsg, bytes.
const IFINFOMSG: usize = 16;
const IFADDRMSG: usize = 8;
const TCMSG: usize = 20;
const IFF_UP: u32 = 1;
const IFF_LOOPBACK: u32 = 8;

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_QDISC: u16 = 6;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_MAX_MTU: u16 = 51;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;

/// A device, and what it refers to in other namespaces.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) device: Device,
    /// Peer of a veth: its index, and the nsid of its namespace where that is another one.
    pub(super) other_end: Option<(u32, Option<i32>)>,
    /// Nsid of the namespace of a tunnel's socket, where that is another one.
    pub(super) socket: Option<i32>,
    /// Source, device and mark that the route of a tunnel's packets depends on.
    pub(super) outer: OuterFlow,
    /// Remote addresses that a tunnel device is configured with.
    pub(super) remotes: Vec<std::net::IpAddr>,
}

/// Name and MTU of the device with this index.
pub(super) fn named(netlink: &mut Raw, index: u32) -> Option<(String, u32)> {
    let mut body = [0; IFINFOMSG];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    let answer = netlink.get(GETLINK, &body).ok().flatten()?;
    let attributes = Attributes(answer.get(IFINFOMSG..)?);
    Some((attributes.text(IFLA_IFNAME)?, attributes.u32(IFLA_MTU)?))
}

pub(super) fn read(netlink: &mut Raw) -> io::Result<Vec<Link>> {
    let messages = netlink.dump(GETLINK, &[0; IFINFOMSG])?;
    let mut links: Vec<Link> = messages
        .iter()
        .filter_map(|message| link(message))
        .collect();
    for message in netlink.dump(GETADDR, &[0; IFADDRMSG])? {
        let Some((header, attributes)) = message.split_at_checked(IFADDRMSG) else {
            continue;
        };
        let index = u32::from_ne_bytes([header[4], header[5], header[6], header[7]]);
        let attributes = Attributes(attributes);
        let address = attributes
            .address(IFA_LOCAL)
            .or_else(|| attributes.address(IFA_ADDRESS));
        if let Some(link) = links.iter_mut().find(|link| link.device.index == index) {
            link.device.addresses.extend(address);
        }
    }
    // A kernel without traffic control has no limits to read.
    for message in netlink.dump(GETQDISC, &[0; TCMSG]).unwrap_or_default() {
        let Some((index, limit)) = fifo_limit(&message) else {
            continue;
        };
        if let Some(link) = links.iter_mut().find(|link| link.device.index == index) {
            link.device.qdisc_limit = Some(limit);
        }
    }
    Ok(links)
}

/// Index of the device, and the limit of its root qdisc, where that is a `pfifo` or `bfifo` (struct `tc_fifo_qopt`).
fn fifo_limit(message: &[u8]) -> Option<(u32, u32)> {
    let (header, attributes) = message.split_at_checked(TCMSG)?;
    let index = u32::from_ne_bytes(header[4..8].try_into().ok()?);
    let parent = u32::from_ne_bytes(header[12..16].try_into().ok()?);
    let attributes = Attributes(attributes);
    let kind = attributes.text(TCA_KIND)?;
    let is_fifo = matches!(kind.as_str(), "pfifo" | "bfifo");
    let limit = attributes.u32(TCA_OPTIONS)?;
    (parent == TC_H_ROOT && is_fifo).then_some((index, limit))
}

fn link(message: &[u8]) -> Option<Link> {
    let (header, attributes) = message.split_at_checked(IFINFOMSG)?;
    let number = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(header.get(at..at + 4)?.try_into().ok()?))
    };
    let (index, flags) = (number(4)?, number(8)?);
    let attributes = Attributes(attributes);
    let info = attributes.nested(IFLA_LINKINFO);
    let kind = info.text(IFLA_INFO_KIND).unwrap_or_default();
    let data = info.nested(IFLA_INFO_DATA);
    let below = attributes.u32(IFLA_LINK).filter(|&below| below != 0);
    let elsewhere = attributes.u32(IFLA_LINK_NETNSID).map(|id| id as i32);
    let (tunnel, remotes) = match tunnels::read(&kind, data) {
        Some((tunnel, remotes)) => (Some(tunnel), remotes),
        None => (None, Vec::new()),
    };
    let outer = tunnels::outer(&kind, data);
    let loopback = flags & IFF_LOOPBACK != 0;
    let device = Device {
        name: attributes.text(IFLA_IFNAME)?,
        index,
        mtu: attributes.u32(IFLA_MTU)?,
        max_mtu: attributes.u32(IFLA_MAX_MTU).unwrap_or(0),
        up: flags & IFF_UP != 0,
        loopback,
        physical: kind.is_empty() && !loopback,
        controller: attributes.u32(IFLA_MASTER),
        lower: below.filter(|_| kind != "veth" && elsewhere.is_none()),
        vlan: (kind == "vlan").then(|| data.u16(IFLA_VLAN_ID)).flatten(),
        tunnel,
        qdisc: attributes.text(IFLA_QDISC).unwrap_or_default(),
        tx_queue_len: attributes.u32(IFLA_TXQLEN),
        drops: attributes.find(IFLA_STATS64).map(drops).unwrap_or_default(),
        kind,
        ..Device::default()
    };
    let other_end = (device.kind == "veth")
        .then(|| below.map(|index| (index, elsewhere)))
        .flatten();
    Some(Link {
        socket: elsewhere.filter(|_| device.tunnel.is_some()),
        device,
        other_end,
        outer,
        remotes,
    })
}

/// Drop counters of struct rtnl_link_stats64, which consists of 64-bit counters.
fn drops(bytes: &[u8]) -> Drops {
    let counter = |at: usize| {
        let bytes = bytes.get(8 * at..8 * at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    Drops {
        rx: counter(6).unwrap_or(0),
        tx: counter(7).unwrap_or(0),
        rx_missed: counter(15).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::attributes::attribute;
    use super::*;

    fn qdisc(parent: u32, kind: &[u8], options: &[u8]) -> Vec<u8> {
        let mut message = vec![0; TCMSG];
        message[4..8].copy_from_slice(&7u32.to_ne_bytes());
        message[12..16].copy_from_slice(&parent.to_ne_bytes());
        message.extend(attribute(TCA_KIND, kind));
        message.extend(attribute(TCA_OPTIONS, options));
        message
    }

    #[test]
    fn the_limit_of_a_root_fifo_is_read_and_no_other() {
        let limit = 100u32.to_ne_bytes();
        let read = |parent, kind: &[u8]| fifo_limit(&qdisc(parent, kind, &limit));
        assert_eq!(read(TC_H_ROOT, b"pfifo\0"), Some((7, 100)));
        assert_eq!(read(TC_H_ROOT, b"bfifo\0"), Some((7, 100)));
        assert_eq!(read(TC_H_ROOT, b"pfifo_fast\0"), None);
        assert_eq!(read(0x0001_0001, b"pfifo\0"), None);
        assert_eq!(fifo_limit(&qdisc(TC_H_ROOT, b"pfifo\0", &[])), None);
        assert_eq!(fifo_limit(&[0; TCMSG - 1]), None);
    }
}
