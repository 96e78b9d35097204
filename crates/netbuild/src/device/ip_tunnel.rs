//! The kernel's tunnels without UDP (GRE, Ethernet in GRE, IP in IP) as rtnetlink messages and as they are read back.
//!
//! Attributes are written and read by number: the netlink library does not know those by which GRE ignores DF and sends
//! no encapsulation limit. Their order is iproute2's (ip/link_gre.c, link_gre6.c, link_iptnl.c, link_ip6tnl.c).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{DefaultNla, Emitable, Nla, NlasIterator};
use netlink_packet_route::link::{InfoData, InfoKind, LinkAttribute, LinkInfo};
use wirecost_model::ip::IpVersion;
use wirecost_model::plan::{Encapsulation, IpTunnel, OuterDf};

use super::{NewDevice, create, read_message};
use crate::netlink::Netlink;

/// Attribute numbers: `IFLA_GRE_*` or `IFLA_IPTUN_*` (include/uapi/linux/if_tunnel.h).
struct AttributeNumbers {
    link: u16,
    local: u16,
    remote: u16,
    ttl: u16,
    path_mtu_discovery: u16,
    /// Over IPv6 only.
    flags: u16,
}

const GRE: AttributeNumbers = AttributeNumbers {
    link: 1,
    local: 6,
    remote: 7,
    ttl: 8,
    path_mtu_discovery: 10,
    flags: 13,
};
const GRE_INPUT_FLAGS: u16 = 2;
const GRE_OUTPUT_FLAGS: u16 = 3;
const GRE_INPUT_KEY: u16 = 4;
const GRE_OUTPUT_KEY: u16 = 5;
const GRE_IGNORE_DF: u16 = 19;
/// `GRE_KEY`, sent in network byte order: packets carry a key.
const HAS_KEY: u16 = 0x2000;

const IPTUN: AttributeNumbers = AttributeNumbers {
    link: 1,
    local: 2,
    remote: 3,
    ttl: 4,
    path_mtu_discovery: 10,
    flags: 8,
};
const IPTUN_PROTOCOL: u16 = 9;

/// `IP6_TNL_F_IGN_ENCAP_LIMIT` (include/uapi/linux/ip6_tunnel.h): packets do not carry the option of 8 bytes (RFC 2473,
/// section 4.1.1).
const NO_ENCAPSULATION_LIMIT: u32 = 1;

/// Configuration of a tunnel device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TunnelDevice {
    pub(crate) kind: InfoKind,
    pub(crate) local: IpAddr,
    pub(crate) remote: IpAddr,
    pub(crate) options: IpTunnel,
    /// IANA's number of the protocol that IP in IP carries (RFC 2003, RFC 4213); `None` for GRE, which states it in
    /// each packet.
    pub(crate) protocol: Option<u8>,
    /// Whether packets carry the IPv6 option that limits the nesting of tunnels.
    pub(crate) limits: bool,
}

impl TunnelDevice {
    /// Device of an encapsulation between two addresses, local and remote, for guests of IP version `guest`; `None` for
    /// an encapsulation without such a device.
    pub(crate) fn of(
        encapsulation: &Encapsulation,
        (local, remote): (IpAddr, IpAddr),
        guest: IpVersion,
    ) -> Option<Self> {
        let options = encapsulation.ip_tunnel()?;
        let (kind, protocol) = match (encapsulation, local, guest) {
            (Encapsulation::Gre(_), IpAddr::V4(_), _) => (InfoKind::GreTun, None),
            (Encapsulation::Gre(_), IpAddr::V6(_), _) => (InfoKind::GreTun6, None),
            (Encapsulation::Gretap(_), IpAddr::V4(_), _) => (InfoKind::GreTap, None),
            (Encapsulation::Gretap(_), IpAddr::V6(_), _) => (InfoKind::GreTap6, None),
            (_, IpAddr::V4(_), IpVersion::Ipv4) => (InfoKind::IpIp, Some(4)),
            // IPv6 over IPv4 has a driver of its own (net/ipv6/sit.c).
            (_, IpAddr::V4(_), IpVersion::Ipv6) => (InfoKind::SitTun, Some(41)),
            (_, IpAddr::V6(_), IpVersion::Ipv4) => (InfoKind::Ip6Tnl, Some(4)),
            (_, IpAddr::V6(_), IpVersion::Ipv6) => (InfoKind::Ip6Tnl, Some(41)),
        };
        // The kernel's default (net/ipv4/ip_gre.c, `ipgre_netlink_parms`), set explicitly so that it reads back.
        let df = options.df.unwrap_or(OuterDf::Set);
        Some(Self {
            kind,
            local,
            remote,
            options: IpTunnel {
                df: local.is_ipv4().then_some(df),
                ..options
            },
            protocol,
            limits: false,
        })
    }

    const fn is_gre(&self) -> bool {
        self.protocol.is_none()
    }

    /// Netlink attributes of the device, which sends by the underlay device of index `underlay`.
    pub(super) fn attributes(&self, underlay: u32) -> Vec<DefaultNla> {
        let numbers = if self.is_gre() { &GRE } else { &IPTUN };
        let over_ipv6 = self.local.is_ipv6();
        let mut all: Vec<(u16, Vec<u8>)> = Vec::new();
        if let Some(protocol) = self.protocol {
            all.push((IPTUN_PROTOCOL, vec![protocol]));
        } else {
            let key = self.options.key.unwrap_or(0).to_be_bytes();
            let flags = self.options.key.map_or(0, |_| HAS_KEY).to_be_bytes();
            all.extend([GRE_INPUT_KEY, GRE_OUTPUT_KEY].map(|number| (number, key.to_vec())));
            all.extend([GRE_INPUT_FLAGS, GRE_OUTPUT_FLAGS].map(|number| (number, flags.to_vec())));
        }
        all.push((numbers.local, octets(self.local)));
        all.push((numbers.remote, octets(self.remote)));
        let ttl = (numbers.ttl, vec![self.options.ttl.unwrap_or(0)]);
        let link = (numbers.link, underlay.to_ne_bytes().to_vec());
        let flags = (numbers.flags, NO_ENCAPSULATION_LIMIT.to_ne_bytes().to_vec());
        let df = self.options.df.unwrap_or(OuterDf::Set);
        let discovery = vec![u8::from(df == OuterDf::Set)];
        match (self.is_gre(), over_ipv6) {
            (true, false) => {
                all.push((numbers.path_mtu_discovery, discovery));
                if df == OuterDf::Unset {
                    all.push((GRE_IGNORE_DF, vec![1]));
                }
                all.extend([link, ttl]);
            }
            (true, true) => all.extend([link, ttl, flags]),
            (false, false) => {
                all.push((numbers.path_mtu_discovery, discovery));
                all.extend([ttl, link]);
            }
            (false, true) => all.extend([ttl, flags, link]),
        }
        let attribute = |(number, value)| DefaultNla::new(number, value);
        all.into_iter().map(attribute).collect()
    }

    /// Configuration from the netlink attributes of a device of that kind; `None` for other kinds.
    pub(super) fn read(kind: InfoKind, data: &BTreeMap<u16, Vec<u8>>) -> Option<Self> {
        let gre = match kind {
            InfoKind::GreTun | InfoKind::GreTun6 | InfoKind::GreTap | InfoKind::GreTap6 => true,
            InfoKind::IpIp | InfoKind::SitTun | InfoKind::Ip6Tnl => false,
            _ => return None,
        };
        let numbers = if gre { &GRE } else { &IPTUN };
        let local = address(data.get(&numbers.local)?)?;
        let flag = |number| {
            data.get(&number)
                .is_some_and(|value| value.first() > Some(&0))
        };
        let has_key = |number| {
            let flags = data
                .get(&number)
                .and_then(|value| value[..].try_into().ok());
            flags.is_some_and(|flags| u16::from_be_bytes(flags) & HAS_KEY != 0)
        };
        let key = |number| {
            let value = data.get(&number)?;
            Some(u32::from_be_bytes(value[..].try_into().ok()?))
        };
        let keyed = gre && has_key(GRE_INPUT_FLAGS) && has_key(GRE_OUTPUT_FLAGS);
        // Two different keys match no configuration that was asked for.
        let key = keyed
            .then(|| (key(GRE_INPUT_KEY), key(GRE_OUTPUT_KEY)))
            .and_then(|(input, output)| input.filter(|_| input == output));
        let limits = local.is_ipv6() && {
            let flags = data.get(&numbers.flags);
            let flags = flags.and_then(|value| value[..].try_into().ok());
            flags.is_none_or(|flags| u32::from_ne_bytes(flags) & NO_ENCAPSULATION_LIMIT == 0)
        };
        let df = if flag(numbers.path_mtu_discovery) {
            OuterDf::Set
        } else if gre && flag(GRE_IGNORE_DF) {
            OuterDf::Unset
        } else {
            OuterDf::Inherit
        };
        let ttl = data.get(&numbers.ttl).and_then(|value| value.first());
        let protocol = data.get(&IPTUN_PROTOCOL).and_then(|value| value.first());
        Some(Self {
            local,
            remote: address(data.get(&numbers.remote)?)?,
            options: IpTunnel {
                key,
                ttl: ttl.copied().filter(|ttl| *ttl > 0),
                df: local.is_ipv4().then_some(df),
            },
            protocol: protocol.copied().filter(|_| !gre),
            limits,
            kind,
        })
    }
}

/// Creates a tunnel device; `underlay` is an interface index, `mtu` in bytes.
pub(crate) fn create_ip_tunnel(
    netlink: &mut Netlink,
    new: NewDevice<'_>,
    device: &TunnelDevice,
    underlay: u32,
    mtu: u32,
) -> io::Result<()> {
    let attributes = device.attributes(underlay);
    let mut data = vec![0; attributes.as_slice().buffer_len()];
    attributes.as_slice().emit(&mut data);
    let mut message = new.message();
    message.attributes.push(LinkAttribute::Mtu(mtu));
    create(netlink, message, device.kind.clone(), InfoData::Other(data))
}

/// Configuration of a tunnel device as the kernel has it; `None` where the device is not such a tunnel.
pub(crate) fn read_ip_tunnel(
    netlink: &mut Netlink,
    name: &str,
) -> io::Result<Option<TunnelDevice>> {
    let (mut kind, mut data) = (None, BTreeMap::new());
    for attribute in read_message(netlink, name)?.attributes {
        let LinkAttribute::LinkInfo(info) = attribute else {
            continue;
        };
        for info in info {
            match info {
                LinkInfo::Kind(found) => kind = Some(found),
                LinkInfo::Data(found) => data = numbered(&found),
                _ => {}
            }
        }
    }
    Ok(kind.and_then(|kind| TunnelDevice::read(kind, &data)))
}

/// Payloads by attribute number, however the library decodes them.
pub(super) fn numbered(data: &InfoData) -> BTreeMap<u16, Vec<u8>> {
    let mut bytes = vec![0; data.value_len()];
    data.emit_value(&mut bytes);
    NlasIterator::new(&bytes[..])
        .filter_map(Result::ok)
        .map(|attribute| (attribute.kind(), attribute.value().to_vec()))
        .collect()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(octets) {
        return Some(Ipv4Addr::from(four).into());
    }
    let six = <[u8; 16]>::try_from(octets).ok()?;
    Some(Ipv6Addr::from(six).into())
}

#[cfg(test)]
mod tests;
