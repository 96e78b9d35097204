//! Reads what lies between the hosts: `underlay.hops` and `underlay.paths`.

use wirecost_model::transit::{Hop, HopKind, Icmp, MAX_HOPS, Member, Mtus, Transit};

use crate::keys::{self, Key};
use crate::node::{Span, Value};
use crate::read::{Entry, Fields, Reader, describe};
use crate::values::{integer32, number, word};

/// The hops and paths that could be read, and their places in the plan.
#[derive(Debug, Default)]
pub(crate) struct TransitSection {
    pub(crate) transit: Transit,
    /// MTU of the narrowest hop or path, bytes, and its place.
    narrowest: Option<(u32, Span, String)>,
    /// Place of the first router or of the paths.
    routed: Option<(Span, String)>,
    /// Whether a guest MTU may exceed what the hops and paths carry.
    pub(crate) takes_oversize: bool,
}

impl TransitSection {
    /// MTU of the narrowest hop or path, bytes, with its place in the plan.
    pub(crate) fn narrowest(&self) -> Option<(u32, &Span, &str)> {
        let (mtu, span, path) = self.narrowest.as_ref()?;
        Some((*mtu, span, path))
    }

    /// The place of the first router or of the paths; `None` without either.
    pub(crate) fn routed(&self) -> Option<(&Span, &str)> {
        self.routed
            .as_ref()
            .map(|(span, path)| (span, path.as_str()))
    }

    fn note(&mut self, mtu: u32, entry: &Entry<'_>) {
        if self
            .narrowest
            .as_ref()
            .is_none_or(|(known, ..)| mtu < *known)
        {
            self.narrowest = Some((mtu, entry.node.span.clone(), entry.path.clone()));
        }
    }
}

/// Reads `underlay.hops`, `underlay.paths` and `underlay.oversize`.
pub(crate) fn read(reader: &mut Reader, underlay: &Fields<'_>) -> TransitSection {
    let mut written = TransitSection::default();
    if let Some(entry) = underlay.get(reader, &keys::UNDERLAY_HOPS) {
        hops(reader, &entry, &mut written);
    }
    if let Some(entry) = underlay.get(reader, &keys::UNDERLAY_PATHS) {
        paths(reader, &entry, &mut written);
    }
    let oversize = underlay.get(reader, &keys::UNDERLAY_OVERSIZE);
    let oversize = oversize.and_then(|entry| word(reader, &entry));
    written.takes_oversize = oversize == Some("send");
    written
}

fn hops(reader: &mut Reader, entry: &Entry<'_>, written: &mut TransitSection) {
    if !matches!(entry.node.value, Value::List(_)) {
        reader.wrong(entry, "not a list");
        return;
    }
    let items = entry.items(reader);
    if items.len() > MAX_HOPS {
        let message = format!("`{}` has {} hops", entry.path, items.len());
        let help = format!("write at most {MAX_HOPS}");
        let span = entry.node.span.clone();
        reader.fault(span, &entry.path, message, "too many", help);
    }
    for item in &items {
        let Some(hop) = hop(reader, item) else {
            continue;
        };
        written.note(hop.mtu.least(), item);
        if hop.kind == HopKind::Router && written.routed.is_none() {
            written.routed = Some((item.node.span.clone(), item.path.clone()));
        }
        written.transit.hops.push(hop);
    }
}

/// The keys of one kind of hop.
struct HopKeys {
    kind: HopKind,
    this: &'static Key,
    mtu: &'static Key,
    mtu_from_a: &'static Key,
    mtu_from_b: &'static Key,
    icmp: &'static Key,
    drop_udp_port: &'static Key,
    loss: &'static Key,
    delay: &'static Key,
}

fn hop_keys() -> [HopKeys; 2] {
    [
        HopKeys {
            kind: HopKind::Switch,
            this: &keys::SWITCH,
            mtu: &keys::SWITCH_MTU,
            mtu_from_a: &keys::SWITCH_MTU_FROM_A,
            mtu_from_b: &keys::SWITCH_MTU_FROM_B,
            icmp: &keys::SWITCH_ICMP,
            drop_udp_port: &keys::SWITCH_DROP,
            loss: &keys::SWITCH_LOSS,
            delay: &keys::SWITCH_DELAY,
        },
        HopKeys {
            kind: HopKind::Router,
            this: &keys::ROUTER,
            mtu: &keys::ROUTER_MTU,
            mtu_from_a: &keys::ROUTER_MTU_FROM_A,
            mtu_from_b: &keys::ROUTER_MTU_FROM_B,
            icmp: &keys::ROUTER_ICMP,
            drop_udp_port: &keys::ROUTER_DROP,
            loss: &keys::ROUTER_LOSS,
            delay: &keys::ROUTER_DELAY,
        },
    ]
}

fn hop(reader: &mut Reader, item: &Entry<'_>) -> Option<Hop> {
    let Some(fields) = Fields::open(reader, item.key.path, &item.path, &item.node) else {
        not_one(reader, item, "{ switch: { mtu: 9000 } }");
        return None;
    };
    let keys = hop_keys();
    let named: Vec<&HopKeys> = keys.iter().filter(|keys| fields.names(keys.this)).collect();
    let [keys] = named[..] else {
        if let (Value::Map(pairs), true) = (&item.node.value, named.is_empty())
            && !pairs.is_empty()
        {
            // The unknown key that is there instead is reported already.
            return None;
        }
        let label = match named.len() {
            0 => "names no hop",
            _ => "names two hops",
        };
        let message = format!("`{}` is to be one hop", item.path);
        let help =
            "write one of `switch` and `router` for each hop, such as `- switch: { mtu: 9000 }`";
        reader.fault(item.node.span.clone(), &item.path, message, label, help);
        return None;
    };
    let section = fields.section(reader, keys.this)?;
    let fields = Fields::open(reader, keys.this.path, &section.path, &section.node)?;
    let faults = reader.faults.len();
    let mut bytes = |key| {
        let entry = fields.get(reader, key)?;
        integer32(reader, &entry)
    };
    let (mtu, from_a, from_b) = (
        bytes(keys.mtu),
        bytes(keys.mtu_from_a),
        bytes(keys.mtu_from_b),
    );
    let drop_udp_port = bytes(keys.drop_udp_port);
    let icmp = icmp(reader, &fields, keys.icmp);
    let loss = fields.get(reader, keys.loss);
    let loss = loss.and_then(|entry| number(reader, &entry));
    let delay = fields.get(reader, keys.delay);
    let delay = delay.and_then(|entry| number(reader, &entry));
    let mtu = mtu?;
    let hop = Hop {
        kind: keys.kind,
        mtu: Mtus {
            from_a: from_a.unwrap_or(mtu),
            from_b: from_b.unwrap_or(mtu),
        },
        icmp: icmp?,
        drop_udp_port: drop_udp_port.and_then(|port| port.try_into().ok()),
        loss_ppm: (loss? * 1e6).round() as u32,
        delay_us: (delay? * 1e6).round() as u32,
    };
    (reader.faults.len() == faults).then_some(hop)
}

fn icmp(reader: &mut Reader, fields: &Fields<'_>, key: &'static Key) -> Option<Icmp> {
    let entry = fields.get(reader, key)?;
    word(reader, &entry).map(|word| match word {
        "filtered" => Icmp::Filtered,
        _ => Icmp::Sent,
    })
}

fn paths(reader: &mut Reader, entry: &Entry<'_>, written: &mut TransitSection) {
    written
        .routed
        .get_or_insert((entry.node.span.clone(), entry.path.clone()));
    if !matches!(entry.node.value, Value::List(_)) {
        let members = integer32(reader, entry).unwrap_or(0);
        let any = Member {
            mtu: None,
            icmp: Icmp::Sent,
        };
        written.transit.paths = vec![any; members as usize];
        return;
    }
    let items = entry.items(reader);
    if !entry.key.takes(items.len() as f64) {
        let message = format!("`{}` has {} paths", entry.path, items.len());
        let help = format!("write {}", entry.key.expects());
        let span = entry.node.span.clone();
        reader.fault(span, &entry.path, message, "not several", help);
    }
    for item in &items {
        let Some(fields) = Fields::open(reader, item.key.path, &item.path, &item.node) else {
            not_one(reader, item, "{ mtu: 9000 }");
            continue;
        };
        let mtu = fields.get(reader, &keys::PATH_MTU);
        let mtu = mtu.and_then(|entry| integer32(reader, &entry));
        let icmp = icmp(reader, &fields, &keys::PATH_ICMP);
        written
            .transit
            .paths
            .extend(icmp.map(|icmp| Member { mtu, icmp }));
        if let Some(mtu) = mtu {
            written.note(mtu, item);
        }
    }
}

fn not_one(reader: &mut Reader, item: &Entry<'_>, example: &str) {
    if item.node.value != Value::Refused {
        let message = format!("`{}` cannot be {}", item.path, describe(&item.node.value));
        let help = format!("write a mapping, such as `{example}`");
        let span = item.node.span.clone();
        reader.fault(span, &item.path, message, "not a mapping", help);
    }
}
