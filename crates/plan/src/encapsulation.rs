//! Decodes a level of `encapsulation`: its kind and options.

use std::fmt;

use wirecost_model::plan::{
    Encapsulation, Geneve, GeneveOptions, Gre, Ipip, OuterDf, SourcePorts, UdpTunnel, Vlan, Vxlan,
    Wireguard,
};

use crate::keys::{self, Key};
use crate::node::Value;
use crate::read::{Entry, Fields, Reader};
use crate::values::{as_word, integer, integer32, switch, word};

/// An encapsulation, and its own setting of the outer UDP checksum if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encapsulated {
    pub(crate) encapsulation: Encapsulation,
    pub(crate) udp_checksum: Option<bool>,
}

/// The label of the level.
impl fmt::Display for Encapsulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.encapsulation.fmt(f)
    }
}

impl Encapsulated {
    /// Whether the plan's `udp_checksum` applies to the encapsulation.
    pub(crate) const fn takes_checksum(&self) -> bool {
        self.encapsulation.udp().is_some() && self.udp_checksum.is_none()
    }
}

const NONE: Encapsulated = Encapsulated {
    encapsulation: Encapsulation::None,
    udp_checksum: None,
};

type Options = fn(&mut Reader, &Fields<'_>) -> Option<Encapsulated>;

/// Encapsulations with options; the word is also the key of the mapping.
const WITH_OPTIONS: [(&Key, Options); 7] = [
    (&keys::VLAN, vlan),
    (&keys::VXLAN, vxlan),
    (&keys::GENEVE, geneve),
    (&keys::GRE, gre),
    (&keys::GRETAP, gretap),
    (&keys::IPIP, ipip),
    (&keys::WIREGUARD, wireguard),
];

pub(crate) fn encapsulation(reader: &mut Reader, entry: &Entry<'_>) -> Option<Encapsulated> {
    let Value::Map(pairs) = &entry.node.value else {
        let word = word(reader, entry)?;
        let known = WITH_OPTIONS.iter().find(|(key, _)| key.name() == word);
        return match known {
            Some((_, read)) => read(reader, &Fields::absent()),
            None => Some(NONE),
        };
    };
    let faults = reader.faults.len();
    let fields = Fields::open(reader, entry.key.path, &entry.path, &entry.node)?;
    if pairs.is_empty() {
        reader.wrong(entry, "names no encapsulation");
    }
    let mut named = WITH_OPTIONS.iter().filter(|(key, _)| fields.names(key));
    let (key, read) = named.next()?;
    if named.next().is_some() {
        reader.wrong(entry, "names several");
        return None;
    }
    let options = fields.section(reader, key)?;
    let fields = Fields::open(reader, options.key.path, &options.path, &options.node)?;
    let level = read(reader, &fields)?;
    (reader.faults.len() == faults).then_some(level)
}

fn vlan(reader: &mut Reader, fields: &Fields<'_>) -> Option<Encapsulated> {
    let id = fields
        .get(reader, &keys::VLAN_ID)
        .and_then(|entry| integer(reader, &entry));
    Some(Encapsulated {
        encapsulation: Encapsulation::Vlan(Vlan {
            id: id?.try_into().ok()?,
        }),
        udp_checksum: None,
    })
}

/// The keys that VXLAN and Geneve share.
struct TunnelKeys {
    vni: &'static Key,
    port: &'static Key,
    df: &'static Key,
    checksum: &'static Key,
    ports: &'static Key,
    tag: &'static Key,
}

fn vxlan(reader: &mut Reader, fields: &Fields<'_>) -> Option<Encapsulated> {
    let (tunnel, udp_checksum) = tunnel(
        reader,
        fields,
        &TunnelKeys {
            vni: &keys::VXLAN_VNI,
            port: &keys::VXLAN_PORT,
            df: &keys::VXLAN_DF,
            checksum: &keys::VXLAN_CHECKSUM,
            ports: &keys::VXLAN_PORTS,
            tag: &keys::VXLAN_TAG,
        },
    )?;
    Some(Encapsulated {
        encapsulation: Encapsulation::Vxlan(Vxlan {
            vni: tunnel.vni,
            port: tunnel.port,
            df: tunnel.df,
            udp_checksum: tunnel.udp_checksum,
            source_ports: tunnel.source_ports,
            inner_vlan: tunnel.inner_vlan,
        }),
        udp_checksum,
    })
}

fn geneve(reader: &mut Reader, fields: &Fields<'_>) -> Option<Encapsulated> {
    let options = fields
        .get(reader, &keys::GENEVE_OPTIONS)
        .and_then(|entry| geneve_options(reader, &entry));
    let (tunnel, udp_checksum) = tunnel(
        reader,
        fields,
        &TunnelKeys {
            vni: &keys::GENEVE_VNI,
            port: &keys::GENEVE_PORT,
            df: &keys::GENEVE_DF,
            checksum: &keys::GENEVE_CHECKSUM,
            ports: &keys::GENEVE_PORTS,
            tag: &keys::GENEVE_TAG,
        },
    )?;
    Some(Encapsulated {
        encapsulation: Encapsulation::Geneve(Geneve {
            vni: tunnel.vni,
            port: tunnel.port,
            df: tunnel.df,
            udp_checksum: tunnel.udp_checksum,
            source_ports: tunnel.source_ports,
            inner_vlan: tunnel.inner_vlan,
            options: options?,
        }),
        udp_checksum,
    })
}

/// The options that VXLAN and Geneve share, and the checksum if it was written.
fn tunnel(
    reader: &mut Reader,
    fields: &Fields<'_>,
    keys: &TunnelKeys,
) -> Option<(UdpTunnel, Option<bool>)> {
    // Every option is read before the first `?`, so that all faults are reported.
    let vni = fields
        .get(reader, keys.vni)
        .and_then(|entry| integer32(reader, &entry));
    let port = fields
        .get(reader, keys.port)
        .and_then(|entry| integer(reader, &entry));
    let df = fields
        .get(reader, keys.df)
        .and_then(|entry| word(reader, &entry));
    let checksum = fields.get(reader, keys.checksum);
    let checksum = checksum.map(|entry| switch(reader, &entry));
    let ports = fields
        .get(reader, keys.ports)
        .and_then(|entry| source_ports(reader, &entry));
    let tag = fields
        .get(reader, keys.tag)
        .and_then(|entry| inner_vlan(reader, &entry));
    let written = match checksum {
        None => None,
        Some(read) => Some(read?),
    };
    let tunnel = UdpTunnel {
        vni: vni?,
        port: port?.try_into().ok()?,
        df: outer_df(df?),
        udp_checksum: written.unwrap_or(false),
        source_ports: ports?,
        inner_vlan: tag?,
    };
    Some((tunnel, written))
}

fn outer_df(word: &str) -> OuterDf {
    match word {
        "set" => OuterDf::Set,
        "inherit" => OuterDf::Inherit,
        _ => OuterDf::Unset,
    }
}

fn gre(reader: &mut Reader, fields: &Fields<'_>) -> Option<Encapsulated> {
    let keys = (&keys::GRE_TTL, &keys::GRE_DF);
    let read = ip_tunnel(reader, fields, Some(&keys::GRE_KEY), keys)?;
    Some(without_udp(Encapsulation::Gre(read)))
}

fn gretap(reader: &mut Reader, fields: &Fields<'_>) -> Option<Encapsulated> {
    let keys = (&keys::GRETAP_TTL, &keys::GRETAP_DF);
    let read = ip_tunnel(reader, fields, Some(&keys::GRETAP_KEY), keys)?;
    Some(without_udp(Encapsulation::Gretap(read)))
}

fn ipip(reader: &mut Reader, fields: &Fields<'_>) -> Option<Encapsulated> {
    let keys = (&keys::IPIP_TTL, &keys::IPIP_DF);
    let Gre { ttl, df, .. } = ip_tunnel(reader, fields, None, keys)?;
    Some(without_udp(Encapsulation::Ipip(Ipip { ttl, df })))
}

fn wireguard(reader: &mut Reader, fields: &Fields<'_>) -> Option<Encapsulated> {
    let port = fields
        .get(reader, &keys::WIREGUARD_PORT)
        .and_then(|entry| integer(reader, &entry));
    let port = port?.try_into().ok()?;
    // The kernel always computes WireGuard's outer UDP checksum.
    Some(without_udp(Encapsulation::Wireguard(Wireguard { port })))
}

const fn without_udp(encapsulation: Encapsulation) -> Encapsulated {
    Encapsulated {
        encapsulation,
        udp_checksum: None,
    }
}

/// The options of the tunnels without UDP.
fn ip_tunnel(
    reader: &mut Reader,
    fields: &Fields<'_>,
    key: Option<&'static Key>,
    (ttl, df): (&'static Key, &'static Key),
) -> Option<Gre> {
    // Every option is read before the first `?`, so that all faults are reported.
    let key = match key {
        Some(key) => fields
            .get(reader, key)
            .and_then(|entry| or_word(reader, &entry)),
        None => Some(None),
    };
    let ttl_entry = fields.get(reader, ttl);
    let ttl = ttl_entry.as_ref().and_then(|entry| or_word(reader, entry));
    let df = fields.get(reader, df).map(|entry| word(reader, &entry));
    let df = match df {
        None => None,
        Some(word) => Some(outer_df(word?)),
    };
    let (key, ttl) = (key?, ttl?);
    let ttl = match ttl {
        None => None,
        Some(ttl) => Some(u8::try_from(ttl).ok()?),
    };
    if let (Some(entry), Some(ttl), Some(df)) = (ttl_entry, ttl, df)
        && df != OuterDf::Set
    {
        // net/ipv4/ip_gre.c, `ipgre_netlink_parms`; net/ipv4/ip_tunnel.c, `ip_tunnel_netlink_parms`.
        let message = format!("a `ttl` of {ttl} cannot be used with `df: {}`", df.key());
        let help = "the kernel sets the don't-fragment bit of a tunnel that has a TTL of its own: leave one of the two \
                    out, or write `df: set`";
        let span = entry.node.span.clone();
        reader.fault(span, &entry.path, message, "sets `df`", help);
        return None;
    }
    Some(Gre { key, ttl, df })
}

/// A number; `None` is the key's word.
type NumberOrWord = Option<u32>;

fn or_word(reader: &mut Reader, entry: &Entry<'_>) -> Option<NumberOrWord> {
    if as_word(entry).is_some() {
        return Some(None);
    }
    integer32(reader, entry).map(Some)
}

fn geneve_options(reader: &mut Reader, entry: &Entry<'_>) -> Option<GeneveOptions> {
    if as_word(entry).is_some() {
        return Some(GeneveOptions::Ovn);
    }
    let bytes = integer(reader, entry)?;
    if bytes % 4 != 0 {
        let label = "not a multiple of 4";
        let message = format!("`{}` cannot be `{bytes}`, which is {label}", entry.path);
        let span = entry.node.span.clone();
        reader.fault(span, &entry.path, message, label, entry.advice());
        return None;
    }
    Some(GeneveOptions::Bytes(bytes.try_into().ok()?))
}

/// Source ports; `None` is `auto`.
type PortRange = Option<SourcePorts>;

fn source_ports(reader: &mut Reader, entry: &Entry<'_>) -> Option<PortRange> {
    if as_word(entry).is_some() {
        return Some(None);
    }
    let ports = entry.node.text().and_then(SourcePorts::parse);
    if ports.is_none() {
        reader.wrong(entry, "not a range of ports");
    }
    ports.map(Some)
}

/// VLAN identifier; `None` is `none`.
type VlanId = Option<u16>;

fn inner_vlan(reader: &mut Reader, entry: &Entry<'_>) -> Option<VlanId> {
    if as_word(entry).is_some() {
        return Some(None);
    }
    let id = integer(reader, entry)?;
    id.try_into().ok().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_default_to_the_models() {
        let mut reader = Reader::default();
        let absent = Fields::absent();
        let of = |level: Option<Encapsulated>| level.map(|level| level.encapsulation);
        assert_eq!(
            of(vlan(&mut reader, &absent)),
            Some(Encapsulation::Vlan(Vlan::default()))
        );
        assert_eq!(
            of(vxlan(&mut reader, &absent)),
            Some(Encapsulation::Vxlan(Vxlan::default()))
        );
        assert_eq!(
            of(geneve(&mut reader, &absent)),
            Some(Encapsulation::Geneve(Geneve::default()))
        );
        assert_eq!(
            of(gre(&mut reader, &absent)),
            Some(Encapsulation::Gre(Gre::default()))
        );
        assert_eq!(
            of(gretap(&mut reader, &absent)),
            Some(Encapsulation::Gretap(Gre::default()))
        );
        assert_eq!(
            of(ipip(&mut reader, &absent)),
            Some(Encapsulation::Ipip(Ipip::default()))
        );
        assert_eq!(
            of(wireguard(&mut reader, &absent)),
            Some(Encapsulation::Wireguard(Wireguard::default()))
        );
        assert_eq!(reader.faults, []);
    }

    #[test]
    fn every_word_of_the_key_is_an_encapsulation() {
        for word in keys::ENCAPSULATION.words {
            let known = WITH_OPTIONS.iter().any(|(key, _)| key.name() == *word);
            assert!(known || *word == "none", "{word}");
        }
    }
}
