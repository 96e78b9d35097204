//! Factors, levels and ratios in words.

use std::borrow::Cow;

use wirecost_model::cell::Factor;
use wirecost_model::effect::RemarkKind;
use wirecost_model::metric::Metric;
use wirecost_model::plan::Levels;

use crate::document::{CellResult, Document};

/// A factor's name in a sentence.
pub(crate) fn factor(key: &str) -> Cow<'_, str> {
    let plain = match key {
        "guest_mtu" => "guest MTU",
        "guest_ip" => "guest IP",
        "underlay.ip" => "underlay IP",
        "underlay.mtu" => "underlay MTU",
        "underlay.rate" => "underlay rate",
        "udp_checksum" => "outer UDP checksum",
        "steering.queues" => "queues",
        "steering.rps" => "receive steering",
        "message" => "message size",
        "congestion" => "congestion control",
        "socket_buffer" => "socket buffer",
        "total_rate" => "total rate",
        "think_time" => "think time",
        "reply_timeout" => "reply time-out",
        "zero_copy" => "zero copy",
        "discard_on_receive" => "discard on receive",
        "segmentation_offload" => "UDP segmentation",
        // An option of one of several loads.
        other if !other.starts_with("repeat.") => match other.rsplit_once('.') {
            Some((load, option)) => return Cow::Owned(format!("{load} {}", factor(option))),
            None => other,
        },
        other => other,
    };
    Cow::Borrowed(plain)
}

/// A factor's name above a column, in two lines where it is long.
pub(crate) fn column(key: &str) -> String {
    match key {
        "encapsulation" => "encap-\nsulation".into(),
        other => factor(other).replace(' ', "\n"),
    }
}

/// `vxlan`, `no encapsulation`, `guest MTU 1500`, `offload none`.
pub(crate) fn level(key: &str, level: &str) -> String {
    match (key, level) {
        ("guest_ip", "ipv4") => "IPv4 guests".into(),
        ("guest_ip", "ipv6") => "IPv6 guests".into(),
        ("underlay.ip", "ipv4") => "IPv4 underlay".into(),
        ("underlay.ip", "ipv6") => "IPv6 underlay".into(),
        ("steering.queues", "1") => "1 queue".into(),
        ("steering.queues", level) => format!("{level} queues"),
        ("guests", "1") => "1 guest a host".into(),
        ("guests", guests) => format!("{guests} guests a host"),
        ("datapath", "kernel") => "by the kernel".into(),
        ("datapath", "ebpf") => "by eBPF".into(),
        ("datapath", "ovs") => "by Open vSwitch".into(),
        ("encapsulation", "none") => "no encapsulation".into(),
        ("encapsulation", level) => level.into(),
        (key, level) => format!("{} {level}", factor(key)),
    }
}

/// `guest MTU 8900 instead of 1500`.
pub(crate) fn contrast(key: &str, from: &str, to: &str) -> String {
    format!("{} {to} instead of {from}", factor(key))
}

/// The levels in the order of the plan's factors, those that were not varied last: `vxlan, offload none`.
pub(crate) fn levels(factors: &[Factor], levels: &Levels) -> String {
    let varied = factors.iter().map(|factor| factor.key.as_str());
    let constant = levels
        .keys()
        .map(String::as_str)
        .filter(|key| factors.iter().all(|factor| factor.key != *key));
    varied
        .chain(constant)
        .filter_map(|key| Some(level(key, levels.get(key)?)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A cell by its varied levels; where nothing was varied, those that a network is known by.
pub(crate) fn cell(doc: &Document, cell: &CellResult) -> String {
    if !cell.levels.is_empty() {
        return self::levels(&doc.factors, &cell.levels);
    }
    let known = |key: &str| matches!(key, "guest_mtu" | "encapsulation" | "offload");
    let levels = cell.all_levels.iter().filter(|(key, _)| known(key));
    let levels = levels.map(|(key, level)| (key.clone(), level.clone()));
    self::levels(&[], &levels.collect())
}

/// The varied levels of the cell with that number; the twin's are followed by what it is.
pub(crate) fn cell_numbered(doc: &Document, number: u32) -> String {
    let Some(cell) = doc.measured().find(|result| result.cell == number) else {
        return String::new();
    };
    let levels = self::levels(&doc.factors, &cell.levels);
    let twin = doc.self_test.as_ref().map(|test| test.twin.cell);
    match levels.as_str() {
        _ if twin != Some(number) => levels,
        "" => "self-test".into(),
        levels => format!("{levels} (self-test)"),
    }
}

/// What is measured, in words; where there are several loads, whose it is: `ping p99 latency`.
pub(crate) fn measured(doc: &Document, load: &str, metric: Metric) -> String {
    let workload = crate::loads::named(doc)
        .into_iter()
        .find_map(|(name, workload)| (name == load).then_some(workload));
    match workload {
        Some(workload) if !doc.several_loads() => metric.words_of(workload).to_owned(),
        Some(workload) => format!("{load} {}", metric.words_of(workload)),
        None => figure_of(doc.several_loads(), load, metric),
    }
}

/// The same, where it is known whether there are several loads.
pub(crate) fn figure_of(several: bool, load: &str, metric: Metric) -> String {
    if several {
        format!("{load} {}", metric.words())
    } else {
        metric.words().to_owned()
    }
}

/// What differs, in a word or two.
pub(crate) const fn kind(kind: RemarkKind) -> &'static str {
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
pub(crate) fn list(all: &[&str]) -> String {
    match all {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => all.concat(),
    }
}

/// `1 round`, `8 rounds`.
pub(crate) fn count(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}

/// `core 0`, `cores 0-3, 6`.
pub(crate) fn cores(cpus: &[u32]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    let runs: Vec<String> = cpus
        .chunk_by(|a, b| a + 1 == *b)
        .filter_map(|run| match run {
            [] => None,
            [one] => Some(one.to_string()),
            [first, .., last] => Some(format!("{first}-{last}")),
        })
        .collect();
    let noun = if cpus.len() == 1 { "core" } else { "cores" };
    format!("{noun} {}", runs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_listed_in_runs() {
        assert_eq!(cores(&[1]), "core 1");
        assert_eq!(cores(&[0, 1, 2, 5, 7, 8]), "cores 0-2, 5, 7-8");
    }

    #[test]
    fn queues_are_counted_and_a_plans_own_factor_is_called_as_the_plan_calls_it() {
        assert_eq!(level("steering.queues", "2"), "2 queues");
        assert_eq!(level("tcp metrics", "not kept"), "tcp metrics not kept");
        assert_eq!(
            contrast("steering.rps", "own", "off"),
            "receive steering off instead of own"
        );
    }

    #[test]
    fn both_ips_of_a_cell_are_told_apart() {
        let cell = Levels::from([
            ("underlay.ip".into(), "ipv4".into()),
            ("guest_ip".into(), "ipv6".into()),
            ("encapsulation".into(), "vxlan".into()),
        ]);
        assert_eq!(levels(&[], &cell), "vxlan, IPv6 guests, IPv4 underlay");
        assert_eq!(
            contrast("underlay.ip", "ipv4", "ipv6"),
            "underlay IP ipv6 instead of ipv4"
        );
    }
}
