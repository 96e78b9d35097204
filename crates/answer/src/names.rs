//! Factors and levels in plain words: `VXLAN`, `jumbo frames (8900)`, `without offloads`.

use std::borrow::Cow;

use wirecost_model::effect::RemarkKind;

/// Largest MTU, bytes, that is no jumbo frame.
const STANDARD_MTU: u32 = 1500;

/// A factor's name in a sentence.
pub fn factor(key: &str) -> Cow<'_, str> {
    let plain = match key {
        "pairs" => "pair of hosts",
        "guest_mtu" => "guest MTU",
        "guest_ip" => "guest IP",
        "offload" => "offloads",
        "underlay.ip" => "underlay IP",
        "underlay.mtu" => "underlay MTU",
        "underlay.rate" => "underlay rate",
        "underlay.links" => "links",
        "udp_checksum" => "outer UDP checksum",
        "acl" => "ACL",
        "steering.queues" => "queues",
        "steering.rps" => "receive steering",
        "message" => "message size",
        "io_size" => "I/O size",
        "connections_per_guest" => "connections per guest",
        "congestion" => "congestion control",
        "socket_buffer" => "socket buffer",
        "streams_per_guest" => "streams per guest",
        "total_rate" => "total rate",
        "think_time" => "think time",
        "reply_timeout" => "reply time-out",
        "zero_copy" => "zero copy",
        "dirty_rate" => "dirty rate",
        "zero_pages" => "zero pages (%)",
        "post_copy" => "post-copy",
        "discard_on_receive" => "discard on receive",
        "segmentation_offload" => "UDP segmentation",
        // An option of one of several loads: `ping.request`.
        other if !other.starts_with("repeat.") => match other.rsplit_once('.') {
            Some((load, option)) => return Cow::Owned(format!("{load} {}", factor(option))),
            None => other,
        },
        other => other,
    };
    Cow::Borrowed(plain)
}

/// An encapsulation's name: `VXLAN`, `Geneve with OVN's option`, `no encapsulation`.
fn encapsulation(level: &str) -> String {
    let (word, options) = level.split_once(' ').unwrap_or((level, ""));
    let name = match word {
        "none" => "no encapsulation",
        "vlan" => "VLAN",
        "vxlan" => "VXLAN",
        "geneve" => "Geneve",
        "gre" => "GRE",
        "ipip" => "IP in IP",
        "wireguard" => "WireGuard",
        other => other,
    };
    with_options(name, options)
}

fn with_options(name: &str, options: &str) -> String {
    match options {
        "" => name.to_owned(),
        "options=ovn" => format!("{name} with OVN's option"),
        options => format!("{name} ({options})"),
    }
}

/// The offloads of a level: `offloads`, `plain offloads`, `offloads (tso=off)`; `None` where all are off.
fn offloads(level: &str) -> Option<String> {
    let (profile, options) = level.split_once(' ').unwrap_or((level, ""));
    let name = match (profile, options) {
        ("none", "") => return None,
        ("none", options) => return Some(format!("no offloads but {options}")),
        ("tunnel", _) => "offloads",
        ("plain", _) => "plain offloads",
        (other, _) => other,
    };
    Some(with_options(name, options))
}

/// A level on its own: `VXLAN`, `guest MTU 1500`, `without offloads`.
pub fn level(key: &str, level: &str) -> String {
    match (key, level) {
        ("pairs", pair) => format!("between {pair}"),
        ("guest_mtu", "max") => "largest guest MTU".into(),
        ("guest_ip", "ipv4") => "IPv4 guests".into(),
        ("guest_ip", "ipv6") => "IPv6 guests".into(),
        ("underlay.ip", "ipv4") => "IPv4 underlay".into(),
        ("underlay.ip", "ipv6") => "IPv6 underlay".into(),
        ("udp_checksum", "on") => "with outer UDP checksum".into(),
        ("udp_checksum", "off") => "without outer UDP checksum".into(),
        ("steering.queues" | "queues", "1") => "1 queue".into(),
        ("steering.queues" | "queues", level) => format!("{level} queues"),
        ("streams", "1") => "1 stream".into(),
        ("streams", level) => format!("{level} streams"),
        ("machines", "1") => "1 machine".into(),
        ("machines", level) => format!("{level} machines"),
        ("guests", "1") => "1 guest a host".into(),
        ("guests", guests) => format!("{guests} guests a host"),
        ("datapath", "kernel") => "by the kernel".into(),
        ("datapath", "ebpf") => "by eBPF".into(),
        ("datapath", "ovs") => "by Open vSwitch".into(),
        ("datapath", "ovs-kernel") => "by Open vSwitch's kernel datapath".into(),
        ("datapath", "ovn") => "by OVN".into(),
        ("datapath", "ovn-kernel") => "by OVN over Open vSwitch's kernel datapath".into(),
        ("topology", "switched") => "through one logical switch".into(),
        ("topology", "routed") => "through a logical router".into(),
        ("acl", "none") => "without an ACL".into(),
        ("acl", "allow-related") => "with an ACL (allow-related)".into(),
        ("encapsulation", level) => encapsulation(level),
        ("offload", level) => offloads(level).map_or_else(
            || "without offloads".into(),
            |name| {
                if name.starts_with("no ") {
                    name
                } else {
                    format!("with {name}")
                }
            },
        ),
        // A level whose label begins with the factor's key.
        (key, level) if level.starts_with(key) => level.to_owned(),
        (key, level) => format!("{} {level}", factor(key)),
    }
}

/// Levels of one factor as the condition of a statement: `through VXLAN`, `at 1500`, `without offloads`.
pub fn condition(key: &str, levels: &[&str]) -> String {
    let named = |word: &str, name: &dyn Fn(&str) -> String| {
        let names: Vec<String> = levels.iter().map(|level| name(level)).collect();
        format!("{word} {}", list(&names))
    };
    let plain = |level: &str| level.to_owned();
    match (key, levels) {
        ("pairs", pairs) => {
            let between: Vec<String> = pairs.iter().map(|pair| level(key, pair)).collect();
            between.join(", or ")
        }
        ("guest_mtu", ["max"]) => "at the largest MTU".into(),
        ("guest_mtu", _) => named("at", &plain),
        ("encapsulation", ["none"]) => "without encapsulation".into(),
        ("encapsulation", ["none", others @ ..]) => {
            format!("without encapsulation and {}", condition(key, others))
        }
        ("encapsulation", _) => named("through", &encapsulation),
        ("guest_ip", [one]) => format!("with {}", level(key, one)),
        ("underlay.ip", [one]) => format!("over an {}", level(key, one)),
        ("underlay.mtu", _) => named("over an underlay of MTU", &plain),
        ("underlay.rate", ["none"]) => "without a line rate".into(),
        ("underlay.rate", _) => named("at a line rate of", &plain),
        ("offload" | "udp_checksum" | "datapath" | "topology" | "acl", [one]) => level(key, one),
        ("io_size", _) => named("with I/O of", &plain),
        ("message", _) => named("with messages of", &plain),
        (HOST, _) => named("at the", &plain),
        (_, [one]) => format!("with {}", level(key, one)),
        (key, _) => named(&format!("with {}", factor(key)), &plain),
    }
}

/// Key of a dimension that is no factor: the host that a figure is about.
pub(crate) const HOST: &str = "the host";

/// A level of a factor that is a load next to others: `without ping`, `beside ping`.
pub(crate) fn with_or_without(key: &str, level: &str) -> String {
    if level == "none" {
        format!("without {key}")
    } else {
        format!("beside {key}")
    }
}

/// A change of level as the subject of a sentence: `jumbo frames (8900)`, `VXLAN`, `offloads`.
pub fn change(key: &str, from: &str, to: &str) -> String {
    let bytes = |level: &str| level.parse::<u32>().ok();
    match (key, from, to) {
        ("guest_mtu", from, to) => {
            let standard = bytes(from).is_some_and(|from| from <= STANDARD_MTU);
            let larger = to == "max" || bytes(to).is_some_and(|to| to > STANDARD_MTU);
            match (standard && larger, to) {
                (true, "max") => "jumbo frames (the largest MTU)".into(),
                (true, to) => format!("jumbo frames ({to})"),
                (false, _) => contrast(key, from, to),
            }
        }
        ("encapsulation", "none", to) => encapsulation(to),
        ("offload", "none", to) => offloads(to).unwrap_or_default(),
        ("offload", _, "none") => "no offloads".into(),
        ("udp_checksum", "off", "on") => "the outer UDP checksum".into(),
        ("guest_ip", "ipv4", "ipv6") => "IPv6 in the guests".into(),
        ("topology", "switched", "routed") => "a logical router".into(),
        ("acl", "none", "allow-related") => "an ACL with connection tracking".into(),
        ("underlay.ip", "ipv4", "ipv6") => "an IPv6 underlay".into(),
        _ => contrast(key, from, to),
    }
}

/// A change with both levels: `guest MTU 8900 instead of 1500`, `VXLAN instead of no encapsulation`.
pub fn contrast(key: &str, from: &str, to: &str) -> String {
    match key {
        "pairs" => format!("the path between {to} instead of that between {from}"),
        "encapsulation" => format!("{} instead of {}", encapsulation(to), encapsulation(from)),
        "offload" => {
            let name = |level| offloads(level).unwrap_or_else(|| "no offloads".into());
            format!(
                "{} instead of {}",
                name(to),
                if from == "none" {
                    "none".into()
                } else {
                    name(from)
                }
            )
        }
        "guest_ip" | "underlay.ip" => {
            let version = |level: &str| level.replacen("ip", "IP", 1);
            format!(
                "{} {} instead of {}",
                factor(key),
                version(to),
                version(from)
            )
        }
        "datapath" => {
            let name = |word: &str| level(key, word).trim_start_matches("by ").to_owned();
            format!("{} instead of {}", name(to), name(from))
        }
        "topology" | "acl" => {
            let name = |word: &str| level(key, word);
            format!("{} instead of {}", name(to), name(from))
        }
        "streams" | "machines" | "guests" | "queues" | "steering.queues" => {
            format!("{} instead of {from}", level(key, to))
        }
        // A level whose label begins with the factor's key.
        key if to.starts_with(key) => format!("{to} instead of {from}"),
        key => format!("{} {to} instead of {from}", factor(key)),
    }
}

/// What makes two cells not comparable, in a word or two.
pub const fn kind(kind: RemarkKind) -> &'static str {
    match kind {
        RemarkKind::Aggregation => "aggregation",
        RemarkKind::Schedule => "schedule not kept",
        RemarkKind::Generator => "generator-bound",
        RemarkKind::BacklogDrops => "backlog drops",
        RemarkKind::CoreDistance => "distance of the cores",
        RemarkKind::LineCost => "wake-ups caused by the line",
        RemarkKind::Wakeups => "wake-ups",
        RemarkKind::FactorIsFigure => "the factor sets the figure",
        RemarkKind::Resolution => "too little CPU time",
        RemarkKind::NotInEffect => "not in effect",
        RemarkKind::Pacing => "pacing without a network",
        RemarkKind::Disturbed => "disturbed",
        RemarkKind::TransitCpu => "CPU of switches and routers",
        RemarkKind::JoinedInside => "frames joined after decapsulation",
        RemarkKind::AllCores => "work on the other host's cores",
    }
}

/// `a`, `a and b`, `a, b and c`.
pub fn list(all: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = all.iter().map(AsRef::as_ref).collect();
    match &names[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// `1 cell`, `8 cells`.
pub fn count(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// The text with a capital first letter, except for names such as eBPF.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    if letters.clone().nth(1).is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_read_aloud() {
        for (key, of, name) in [
            ("encapsulation", "vxlan", "VXLAN"),
            ("encapsulation", "none", "no encapsulation"),
            (
                "encapsulation",
                "geneve options=ovn",
                "Geneve with OVN's option",
            ),
            ("encapsulation", "vlan id=7", "VLAN (id=7)"),
            ("offload", "none", "without offloads"),
            ("offload", "tunnel", "with offloads"),
            ("offload", "plain", "with plain offloads"),
            ("offload", "tunnel tso=off", "with offloads (tso=off)"),
            ("guest_mtu", "1500", "guest MTU 1500"),
            ("steering.queues", "2", "2 queues"),
            ("gro", "gro off", "gro off"),
            ("tcp metrics", "not kept", "tcp metrics not kept"),
        ] {
            assert_eq!(level(key, of), name);
        }
    }

    #[test]
    fn changes_read_aloud() {
        for (key, from, to, short, long) in [
            (
                "guest_mtu",
                "1500",
                "8900",
                "jumbo frames (8900)",
                "guest MTU 8900 instead of 1500",
            ),
            (
                "guest_mtu",
                "8900",
                "1500",
                "guest MTU 1500 instead of 8900",
                "guest MTU 1500 instead of 8900",
            ),
            (
                "encapsulation",
                "none",
                "vxlan",
                "VXLAN",
                "VXLAN instead of no encapsulation",
            ),
            (
                "encapsulation",
                "vxlan",
                "geneve",
                "Geneve instead of VXLAN",
                "Geneve instead of VXLAN",
            ),
            (
                "offload",
                "none",
                "tunnel",
                "offloads",
                "offloads instead of none",
            ),
            (
                "offload",
                "tunnel",
                "plain",
                "plain offloads instead of offloads",
                "plain offloads instead of offloads",
            ),
            (
                "underlay.ip",
                "ipv4",
                "ipv6",
                "an IPv6 underlay",
                "underlay IP IPv6 instead of IPv4",
            ),
            (
                "datapath",
                "kernel",
                "ebpf",
                "eBPF instead of the kernel",
                "eBPF instead of the kernel",
            ),
            (
                "gro",
                "gro on",
                "gro off",
                "gro off instead of gro on",
                "gro off instead of gro on",
            ),
            (
                "steering.rps",
                "own",
                "off",
                "receive steering off instead of own",
                "receive steering off instead of own",
            ),
        ] {
            assert_eq!(change(key, from, to), short);
            assert_eq!(contrast(key, from, to), long);
        }
    }

    #[test]
    fn conditions_read_aloud() {
        for (key, levels, name) in [
            ("guest_mtu", &["1500"][..], "at 1500"),
            (
                "encapsulation",
                &["vxlan", "vlan"],
                "through VXLAN and VLAN",
            ),
            ("encapsulation", &["none"], "without encapsulation"),
            ("offload", &["tunnel"], "with offloads"),
            ("guest_ip", &["ipv6"], "with IPv6 guests"),
            ("underlay.ip", &["ipv6"], "over an IPv6 underlay"),
            ("streams", &["4"], "with 4 streams"),
            ("message", &["128B"], "with messages of 128B"),
        ] {
            assert_eq!(condition(key, levels), name);
        }
    }
}
