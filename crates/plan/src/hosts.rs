//! Decodes `hosts` and `network`: a lab, existing hosts, or tunnels between them, and which other
//! keys each of these excludes.

use std::collections::BTreeMap;

use wirecost_model::datapath::Datapath;
use wirecost_model::host::HostAddress;
use wirecost_model::offload::Role;
use wirecost_model::plan::{HostPair, Hosts, MaxRate, PairNames};
use wirecost_model::vary::{Scope, Setting, role_key};

use crate::factors::Factors;
use crate::keys::{self, Key, LOAD_NAME_MAX};
use crate::node::{Span, Value};
use crate::read::{Entry, Fields, Level, Levels, Reader, quoted, value};
use crate::values::{as_word, rate, switch, text, word};
use crate::vary::CustomFactor;

/// What a plan says about hosts and their network.
#[derive(Debug)]
pub(crate) struct HostsSection {
    pub(crate) hosts: Hosts,
    /// Further hosts besides a and b, by name.
    pub(crate) more: BTreeMap<String, HostAddress>,
    /// Where the plan names hosts.
    named: Option<Span>,
    pub(crate) allow_host_changes: bool,
    pub(crate) max_rate: MaxRate,
}

/// Keys of what a lab builds; faults on an existing network.
const OF_A_LAB: [&Key; 11] = [
    &keys::CORES,
    &keys::UNDERLAY,
    &keys::ENCAPSULATION,
    &keys::UDP_CHECKSUM,
    &keys::DATAPATH,
    &keys::TOPOLOGY,
    &keys::ACL,
    &keys::GUEST_IP,
    &keys::GUESTS,
    &keys::OFFLOAD,
    &keys::STEERING,
];
/// Keys for existing hosts; faults in a lab.
const OF_EXISTING: [&Key; 3] = [&keys::PAIRS, &keys::ALLOW_HOST_CHANGES, &keys::MAX_RATE];
/// Keys of what tunnels between existing hosts do not change, or not yet; faults there.
const NOT_OF_TUNNELS: [&Key; 4] = [&keys::CORES, &keys::UNDERLAY, &keys::STEERING, &keys::VARY];

/// Reads `hosts`, `network`, `allow_host_changes` and `max_rate`.
pub(crate) fn read(reader: &mut Reader, root: &Fields<'_>) -> HostsSection {
    let entry = root.get(reader, &keys::HOSTS);
    let (pair, more) = entry
        .as_ref()
        .map_or_else(Default::default, |entry| named_hosts(reader, entry));
    let named = entry.filter(|entry| matches!(entry.node.value, Value::Map(_)));
    let network = root.get(reader, &keys::NETWORK);
    let network = network.and_then(|entry| Some((word(reader, &entry)?, entry)));
    let default = if named.is_some() { "existing" } else { "lab" };
    let word = network.as_ref().map_or(default, |(word, _)| *word);
    if let (Some(named), Some(("lab", _))) = (&named, &network) {
        let message = "`hosts` names hosts, and `network: lab` makes its own";
        let help = "write `network: existing` to measure between these hosts, `network: tunnel` to build tunnels between \
                    them, or leave `hosts` out";
        let span = named.node.span.clone();
        reader.fault(span, &named.path, message, "not of a lab", help);
    }
    let (wrong, why) = match word {
        "existing" => (
            &OF_A_LAB[..],
            "is for a network that is built, not for `network: existing`",
        ),
        "tunnel" => (
            &NOT_OF_TUNNELS[..],
            "cannot be used with `network: tunnel`, which changes no settings of the hosts themselves",
        ),
        _ => (
            &OF_EXISTING[..],
            "is for existing hosts, and this plan runs in a lab",
        ),
    };
    for key in wrong.iter().filter(|key| root.names(key)) {
        if let Some(entry) = root.get(reader, key) {
            let message = format!("`{}` {why}", entry.path);
            let span = entry.node.span.clone();
            reader.fault(span, &entry.path, message, "not here", "leave it out");
        }
    }
    let allow = value(reader, root, &keys::ALLOW_HOST_CHANGES, switch);
    let max_rate = value(reader, root, &keys::MAX_RATE, max_rate);
    HostsSection {
        more,
        named: named.map(|entry| entry.node.span.clone()),
        hosts: match word {
            "existing" => Hosts::Existing(pair.map(Box::new)),
            "tunnel" => Hosts::Tunnel(pair.map(Box::new)),
            _ => Hosts::Lab,
        },
        allow_host_changes: allow.unwrap_or_default(),
        max_rate: max_rate.unwrap_or_default(),
    }
}

fn max_rate(reader: &mut Reader, entry: &Entry<'_>) -> Option<MaxRate> {
    match as_word(entry) {
        Some("auto") => Some(MaxRate::Auto),
        Some(_) => Some(MaxRate::None),
        None => rate(reader, entry).map(MaxRate::BitsPerSecond),
    }
}

fn named_hosts(
    reader: &mut Reader,
    entry: &Entry<'_>,
) -> (Option<HostPair>, BTreeMap<String, HostAddress>) {
    let Some(fields) = Fields::open(reader, entry.key.path, &entry.path, &entry.node) else {
        if as_word(entry).is_none() {
            reader.wrong(entry, "neither `lab` nor hosts");
        }
        return Default::default();
    };
    let [a, b] = [&keys::HOST_A, &keys::HOST_B].map(|key| value(reader, &fields, key, address));
    let mut more = BTreeMap::new();
    for (key, entry) in fields.others(&keys::HOST_MORE) {
        let name = key.text().unwrap_or_default();
        if !is_host_name(name) {
            let message = format!("{} cannot name a host", quoted(name));
            let help = format!(
                "write letters, digits, `_` and `-`, at most {LOAD_NAME_MAX}, such as `c` or `db3`"
            );
            reader.fault(key.span.clone(), &entry.path, message, "not a name", help);
        } else if let Some(address) = address(reader, &entry) {
            more.insert(name.to_owned(), address);
        }
    }
    (a.zip(b).map(|(a, b)| HostPair { a, b }), more)
}

fn is_host_name(name: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.len() <= LOAD_NAME_MAX
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(inside)
}

fn address(reader: &mut Reader, entry: &Entry<'_>) -> Option<HostAddress> {
    let written = text(reader, entry)?;
    match written.parse() {
        Ok(address) => Some(address),
        Err(error) => {
            let help = "write it as on the command line, such as `ssh:db1=10.0.0.1`";
            let span = entry.node.span.clone();
            reader.fault(
                span,
                &entry.path,
                format!("`{}`: {error}", entry.path),
                "not a host",
                help,
            );
            None
        }
    }
}

impl HostsSection {
    /// Adjusts the factors to existing hosts: the MTU of their network is unknown until they are
    /// reached, and guests have one MTU.
    pub(crate) fn apply(&self, reader: &mut Reader, factors: &mut Factors) {
        if self.hosts.is_tunnel() {
            tunnels(reader, factors, self.allow_host_changes);
        }
        if !self.hosts.is_existing() {
            return;
        }
        for level in &mut factors.underlay_mtu.levels {
            level.value = u32::from(u16::MAX);
        }
        for level in &mut factors.datapath.levels {
            level.value = Some(Datapath::Kernel);
        }
        if let [_, second, ..] = &factors.guest_mtu.levels[..] {
            let message = "`guest_mtu` has several levels, but sets no MTU of an existing network";
            let help = "write the one size that the path is to carry, or make a factor of a setting that changes the \
                        MTU: `vary: { mtu: [{ label: 1500 }, { label: 9000, before: ..., after: ... }] }`";
            reader.fault(
                second.span.clone(),
                &second.path,
                message,
                "a second one",
                help,
            );
        }
    }

    /// Checks `vary` and `pairs` against existing hosts: places that these do not have, whether
    /// they may be changed at all, and pairs of unknown hosts. Existing hosts have no guests, so a
    /// scope of both is the hosts.
    pub(crate) fn judge(
        &self,
        reader: &mut Reader,
        varied: &mut [CustomFactor],
        pairs: &Levels<PairNames>,
    ) {
        self.judge_pairs(reader, varied, pairs);
        if !self.hosts.is_existing() {
            of_existing_devices(reader, varied);
            return;
        }
        let all = varied
            .iter_mut()
            .flat_map(|factor| &mut factor.levels.levels);
        for level in all.filter(|level| level.value.on == Scope::Both) {
            level.value.on = Scope::Hosts;
        }
        let levels = || varied.iter().flat_map(|factor| &factor.levels.levels);
        for level in levels() {
            no_such_place(reader, level);
        }
        let changes = levels().find(|level| !level.value.is_empty());
        if let Some(level) = changes.filter(|_| !self.allow_host_changes) {
            let message = format!(
                "the level `{}` changes settings of existing hosts",
                level.label
            );
            let help = "write `allow_host_changes: on` into the plan to allow that; `--dry-run` lists every change";
            reader.fault(
                level.span.clone(),
                &level.path,
                message,
                "not allowed",
                help,
            );
        }
    }
}

/// Whether a name is one that the command line gives to hosts, in its order: `a`, `b`, `c` and so on.
fn is_letter(name: &str) -> bool {
    matches!(name.as_bytes(), [b'a'..=b'z'])
}

impl HostsSection {
    fn judge_pairs(&self, reader: &mut Reader, varied: &[CustomFactor], pairs: &Levels<PairNames>) {
        let is_named = |name: &str| match &self.named {
            Some(_) => name == "a" || name == "b" || self.more.contains_key(name),
            None => is_letter(name),
        };
        for level in &pairs.levels {
            let PairNames(names) = &level.value;
            let Some(stranger) = names.iter().find(|name| !is_named(name)) else {
                continue;
            };
            let message = format!("there is no host {} for a pair", quoted(stranger));
            let help = if self.named.is_some() {
                "name it in `hosts`, with its address"
            } else {
                "name it in `hosts`; those of `--hosts` are `a`, `b`, `c` and so on, in its order"
            };
            let span = level.span.clone();
            reader.fault(span, &level.path, message, "unknown host", help);
        }
        let in_a_pair = |name: &str| {
            let mut pairs = pairs.levels.iter().flat_map(|level| &level.value.0);
            pairs.any(|known| known == name)
        };
        let left_out = self.more.keys().find(|name| !in_a_pair(name));
        if let (Some(name), Some(span)) = (left_out, &self.named) {
            let message = format!("host `{name}` is in no pair, and would not be measured");
            let help = format!("write it into `pairs`, such as `pairs: [[a, b], [a, {name}]]`");
            let path = keys::HOSTS.path;
            reader.fault(span.clone(), path, message, "more than two hosts", help);
        }
        let of_one = |level: &&Level<Setting>| level.value.on.host().is_some();
        let mut settings = varied.iter().flat_map(|factor| &factor.levels.levels);
        let Some(one) = settings.find(of_one) else {
            return;
        };
        let crossed = |level: &&Level<PairNames>| {
            let PairNames([first, second]) = &level.value;
            first == "b" || second == "a"
        };
        if let Some(pair) = pairs.levels.iter().find(crossed) {
            let PairNames([first, second]) = &pair.value;
            let name = if first == "b" { first } else { second };
            let message = format!(
                "`on: {}` is a place in a pair (a the first host, b the second), and in [{first}, {second}] host \
                 `{name}` has the other place",
                one.value.on.key()
            );
            let help = "write host `a` first and host `b` second in each pair, or give the hosts other names";
            reader.fault(pair.span.clone(), &pair.path, message, "not clear", help);
        }
    }
}

/// Adjusts the factors to tunnels between hosts: the underlay's MTU is unknown until these are reached, and every
/// cell must have a tunnel, built by the kernel or, where the hosts may be changed, by eBPF.
fn tunnels(reader: &mut Reader, factors: &mut Factors, allow_host_changes: bool) {
    for level in &mut factors.underlay_mtu.levels {
        level.value = u32::from(u16::MAX);
    }
    for level in &factors.encapsulation.levels {
        if !level.value.encapsulation.is_tunnel() {
            let message = format!(
                "`network: tunnel` builds tunnels, and `encapsulation: {}` is none",
                level.label
            );
            let help = "write `vxlan`, `geneve`, `gre`, `gretap`, `ipip` or `wireguard`: guests' own frames on the \
                        hosts' network would need switches that know them; `network: existing` measures without a \
                        tunnel";
            reader.fault(level.span.clone(), &level.path, message, "no tunnel", help);
        }
    }
    for level in &mut factors.datapath.levels {
        let datapath = *level.value.get_or_insert(Datapath::Kernel);
        if !level.written {
            datapath.key().clone_into(&mut level.label);
        }
        let (message, help) = match datapath {
            Datapath::Kernel => continue,
            Datapath::Ebpf if allow_host_changes => continue,
            Datapath::Ebpf => (
                "`datapath: ebpf` attaches a program to the device of each host that has its address, through \
                 which everything passes that the device receives"
                    .to_owned(),
                "write `allow_host_changes: on` into the plan to allow that, or `datapath: kernel`",
            ),
            _ => (
                format!(
                    "`datapath: {}` is for a lab: between hosts the kernel or eBPF carries the tunnels",
                    level.label
                ),
                "write `kernel` or `ebpf`: an Open vSwitch would take the hosts' device as a port, and the host \
                 its network",
            ),
        };
        let label = if datapath == Datapath::Ebpf {
            "not allowed"
        } else {
            "not here"
        };
        reader.fault(level.span.clone(), &level.path, message, label, help);
    }
}

/// A fault where a level sets devices of existing hosts: a lab makes its devices, and has other keys for them.
fn of_existing_devices(reader: &mut Reader, varied: &[CustomFactor]) {
    for level in varied.iter().flat_map(|factor| &factor.levels.levels) {
        let mut set = level.value.device.keys().map(|setting| setting.key());
        let named = level.value.device_name.as_ref().map(|_| "device");
        if let Some(key) = set.next().or(named) {
            let message = format!(
                "the level `{}` sets `{key}` of an existing host's device",
                level.label
            );
            let help = "in a lab write levels of `guest_mtu`, `steering.queues` or `steering.rps`";
            reader.fault(
                level.span.clone(),
                &level.path,
                message,
                "not in a lab",
                help,
            );
        }
    }
}

fn no_such_place(reader: &mut Reader, level: &Level<Setting>) {
    let role = level
        .value
        .ethtool
        .keys()
        .find(|role| **role != Role::Underlay);
    let (what, help) = match (level.value.on, role) {
        (_, Some(role)) => (
            format!("`{}`", role_key(*role)),
            "`underlay` is the device with the address that is measured",
        ),
        (on @ (Scope::Guests | Scope::Machine), None) => (
            format!("`on: {}`", on.key()),
            "write `hosts`, `a` or `b`: settings are those of the host itself",
        ),
        _ => return,
    };
    let message = format!(
        "the level `{}` is for {what}, which existing hosts do not have",
        level.label
    );
    reader.fault(level.span.clone(), &level.path, message, "not here", help);
}
