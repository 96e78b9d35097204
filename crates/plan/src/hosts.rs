//! Whose network it is: a lab that is built, existing hosts, or tunnels between them; and then what must not be asked of them.

use wirecost_model::datapath::Datapath;
use wirecost_model::host::HostAddress;
use wirecost_model::offload::Role;
use wirecost_model::plan::{HostPair, Hosts, MaxRate};
use wirecost_model::vary::{Scope, Setting, role_key};

use crate::factors::Factors;
use crate::keys::{self, Key};
use crate::node::Value;
use crate::read::{Entry, Fields, Level, Reader, value};
use crate::values::{as_word, rate, switch, text, word};
use crate::vary::Varied;

/// What a plan says of hosts and their network.
#[derive(Debug)]
pub(crate) struct WrittenHosts {
    pub(crate) hosts: Hosts,
    pub(crate) allow_host_changes: bool,
    pub(crate) max_rate: MaxRate,
}

/// Keys of what is built.
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
/// Keys of what is not.
const OF_EXISTING: [&Key; 2] = [&keys::ALLOW_HOST_CHANGES, &keys::MAX_RATE];
/// Keys of what tunnels between existing hosts do not change, or not yet.
const NOT_OF_TUNNELS: [&Key; 5] = [
    &keys::CORES,
    &keys::UNDERLAY,
    &keys::STEERING,
    &keys::ALLOW_HOST_CHANGES,
    &keys::VARY,
];

/// Reads `hosts`, `network` and what goes with them.
pub(crate) fn read(reader: &mut Reader, root: &Fields<'_>) -> WrittenHosts {
    let entry = root.get(reader, &keys::HOSTS);
    let pair = entry.as_ref().and_then(|entry| pair(reader, entry));
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
            "describes what a lab builds, and of an existing network nothing is built",
        ),
        "tunnel" => (
            &NOT_OF_TUNNELS[..],
            "is for a lab or an existing network, and tunnels between hosts change nothing of the hosts themselves",
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
    WrittenHosts {
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

fn pair(reader: &mut Reader, entry: &Entry<'_>) -> Option<HostPair> {
    let Some(fields) = Fields::open(reader, entry.key.path, &entry.path, &entry.node) else {
        if as_word(entry).is_none() {
            reader.wrong(entry, "neither `lab` nor two hosts");
        }
        return None;
    };
    let [a, b] = [&keys::HOST_A, &keys::HOST_B].map(|key| value(reader, &fields, key, address));
    Some(HostPair { a: a?, b: b? })
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

impl WrittenHosts {
    /// Of an existing network the sizes are unknown until it is there, and guests have one MTU.
    pub(crate) fn apply(&self, reader: &mut Reader, factors: &mut Factors) {
        if self.hosts.is_tunnel() {
            tunnels(reader, factors);
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
            let message =
                "`guest_mtu` has several levels, and no MTU of an existing network is set";
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

    /// What of `vary` existing hosts do not have, and whether they may be changed at all. They have no guests.
    pub(crate) fn judge(&self, reader: &mut Reader, varied: &mut [Varied]) {
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

/// Of tunnels between hosts the underlay's MTU is unknown until they are reached, and every cell has one, by the kernel.
fn tunnels(reader: &mut Reader, factors: &mut Factors) {
    for level in &mut factors.underlay_mtu.levels {
        level.value = u32::from(u16::MAX);
    }
    for level in &factors.encapsulation.levels {
        if !level.value.encapsulation.is_tunnel() {
            let message = format!(
                "`network: tunnel` builds tunnels, and `encapsulation: {}` is none",
                level.label
            );
            let help = "write `vxlan`, `geneve`, `gre`, `gretap`, `ipip` or `wireguard`: guests' own frames on the hosts' \
                        network would need switches that know them; `network: existing` measures without a tunnel";
            reader.fault(level.span.clone(), &level.path, message, "no tunnel", help);
        }
    }
    for level in &mut factors.datapath.levels {
        let datapath = *level.value.get_or_insert(Datapath::Kernel);
        if !level.written {
            datapath.key().clone_into(&mut level.label);
        }
        if datapath != Datapath::Kernel {
            let message = format!(
                "`datapath: {}` is for a lab: tunnels between hosts are the kernel's",
                level.label
            );
            let help = "write `kernel`, or leave the key out";
            reader.fault(level.span.clone(), &level.path, message, "not here", help);
        }
    }
}

/// A lab makes its devices, and has keys for what they are.
fn of_existing_devices(reader: &mut Reader, varied: &[Varied]) {
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
