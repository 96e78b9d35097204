//! Reads one level of a factor of the plan's own: what it changes, and where.

use std::collections::BTreeMap;

use wirecost_model::offload::Role;
use wirecost_model::steering::Rps;
use wirecost_model::vary::{
    CommandPair, DeviceSetting, Scope, Setting, is_device, is_feature, is_sysctl,
};

use super::unfit;
use crate::keys::{self, Key};
use crate::node::{Node, Value};
use crate::read::{Entry, Fields, Reader, describe, join, quoted};
use crate::values::{as_word, integer32, text, word};

/// The keys of the devices whose features a level may set.
const DEVICES: [(&Key, Role); 4] = [
    (&keys::VARY_UNDERLAY, Role::Underlay),
    (&keys::VARY_TUNNEL, Role::Tunnel),
    (&keys::VARY_GUEST, Role::Guest),
    (&keys::VARY_GUEST_PORT, Role::GuestPort),
];

/// Sysctls without effect in a run, and what to write instead.
const WITHOUT_EFFECT: [(&str, &str); 2] = [
    (
        "net.core.rps_default_mask",
        "devices take it when they are made: write a level of `steering.rps`",
    ),
    (
        "net.ipv4.tcp_congestion_control",
        "each socket of the load is given its own: write a level of the load's `congestion`",
    ),
];

/// Short names of features in `ethtool -K`, and the kernel's names (ethtool(8);
/// net/ethtool/common.c, `netdev_features_strings`).
const SHORT_NAMES: [(&str, &str); 8] = [
    ("rx", "rx-checksum"),
    ("sg", "tx-scatter-gather"),
    ("tso", "tx-tcp-segmentation"),
    ("gso", "tx-generic-segmentation"),
    ("gro", "rx-gro"),
    ("lro", "rx-lro"),
    ("ntuple", "rx-ntuple-filter"),
    ("rxhash", "rx-hashing"),
];

pub(super) fn level(reader: &mut Reader, factor: &str, item: &Entry<'_>) -> Option<Setting> {
    let Some(fields) = Fields::open(reader, keys::VARY_LEVELS.path, &item.path, &item.node) else {
        if item.node.value != Value::Refused {
            let message = format!("`{}` cannot be {}", item.path, describe(&item.node.value));
            let help = "write a mapping, such as `{ label: default }` or \
                        `{ sysctl: { net.ipv4.tcp_no_metrics_save: 1 } }`";
            let span = item.node.span.clone();
            reader.fault(span, &item.path, message, "not a mapping", help);
        }
        return None;
    };
    // Every key is read before the first `?`, so that all faults are reported.
    let on_entry = fields.get(reader, &keys::VARY_ON);
    let on = on_entry.as_ref().and_then(|entry| word(reader, entry));
    let label = fields
        .get(reader, &keys::VARY_LABEL)
        .map(|entry| label(reader, &entry));
    let sysctl = fields
        .get(reader, &keys::VARY_SYSCTL)
        .map(|entry| sysctls(reader, &entry));
    let ethtool = ethtool(reader, &fields);
    let device = device(reader, &fields);
    let device_name = fields
        .get(reader, &keys::VARY_DEVICE)
        .map(|entry| device_name(reader, &entry));
    let command = command(reader, &fields);
    let on = match on? {
        "guests" => Scope::Guests,
        "hosts" => Scope::Hosts,
        "a" => Scope::A,
        "b" => Scope::B,
        "machine" => Scope::Machine,
        _ => Scope::Both,
    };
    let mut setting = Setting {
        factor: factor.to_owned(),
        label: String::new(),
        sysctl: sysctl.unwrap_or(Some(BTreeMap::new()))?,
        ethtool: ethtool?,
        device: device?,
        device_name: match device_name {
            Some(name) => Some(name?),
            None => None,
        },
        command: command.ok()?,
        on,
    };
    setting.label = label.unwrap_or_else(|| Some(setting.described()))?;
    if let Some(entry) = on_entry.filter(|entry| entry.written) {
        needs_a_place(reader, &entry, &setting);
    }
    if let Some(entry) = fields.get(reader, &keys::VARY_SYSCTL) {
        of_a_namespace(reader, &entry, &setting);
    }
    Some(setting)
}

fn label(reader: &mut Reader, entry: &Entry<'_>) -> Option<String> {
    let label = text(reader, entry)?;
    if let Some(unfit) = unfit(&label) {
        reader.wrong(entry, unfit);
        return None;
    }
    Some(label)
}

fn needs_a_place(reader: &mut Reader, entry: &Entry<'_>, setting: &Setting) {
    let of_one_host =
        setting.on.host().is_some() && !(setting.ethtool.is_empty() && setting.device.is_empty());
    if setting.sysctl.is_empty() && setting.command.is_none() && !of_one_host {
        let message = format!(
            "`{}` changes nothing: the level has neither `sysctl` nor `before`",
            entry.path
        );
        let help = "leave it out: devices are where they are";
        reader.fault(
            entry.node.span.clone(),
            &entry.path,
            message,
            "nothing to place",
            help,
        );
    }
}

/// The pairs of a mapping of names, at least one; anything else is a fault.
fn named<'e>(reader: &mut Reader, entry: &'e Entry<'_>) -> Option<&'e [(Node, Node)]> {
    match &entry.node.value {
        Value::Map(pairs) if !pairs.is_empty() => return Some(pairs),
        Value::Map(_) => reader.wrong(entry, "empty"),
        _ => reader.wrong(entry, "not a mapping"),
    }
    None
}

fn sysctls(reader: &mut Reader, entry: &Entry<'_>) -> Option<BTreeMap<String, String>> {
    let mut sysctls = BTreeMap::new();
    let faults = reader.faults.len();
    for (key, value) in named(reader, entry)? {
        let Some(name) = key.text() else { continue };
        let path = join(&entry.path, name);
        if !is_sysctl(name) {
            let message = format!("{} is not the name of a sysctl", quoted(name));
            let help = "write it as sysctl(8) does, such as `net.ipv4.tcp_no_metrics_save`";
            reader.fault(key.span.clone(), &path, message, "not such a name", help);
            continue;
        }
        let same = |(known, _): &&(&str, &str)| *known == name.replace('/', ".");
        if let Some((_, instead)) = WITHOUT_EFFECT.iter().find(same) {
            let message = format!("`{name}` would change nothing");
            reader.fault(key.span.clone(), &path, message, "without effect", *instead);
            continue;
        }
        match value.text().map(str::trim) {
            Some(text) if !text.is_empty() && !text.contains('\n') => {
                sysctls.insert(name.to_owned(), text.to_owned());
            }
            _ if value.value == Value::Refused => {}
            _ => {
                let message = format!("`{path}` cannot be {}", describe(&value.value));
                let help = "write the value in one line, as /proc/sys takes it, such as `1`";
                let span = if value.value == Value::Null {
                    &key.span
                } else {
                    &value.span
                };
                reader.fault(span.clone(), &path, message, "not a value", help);
            }
        }
    }
    (reader.faults.len() == faults).then_some(sysctls)
}

/// A fault where a sysctl is not per network namespace: it belongs to the machine, and affects everything on it.
fn of_a_namespace(reader: &mut Reader, entry: &Entry<'_>, setting: &Setting) {
    let Value::Map(pairs) = &entry.node.value else {
        return;
    };
    if setting.on == Scope::Machine {
        return;
    }
    for (key, _) in pairs {
        let Some(name) = key.text() else { continue };
        if !name.starts_with("net.") && !name.starts_with("net/") {
            let message = format!("`{name}` is the machine's, not a network namespace's");
            let help = "write `on: machine` in this level: it is then changed for everybody on this machine \
                        while a sample of the level is taken, and needs root";
            let path = join(&entry.path, name);
            reader.fault(key.span.clone(), &path, message, "outside of the lab", help);
        }
    }
}

type Features = BTreeMap<String, bool>;

fn ethtool(reader: &mut Reader, fields: &Fields<'_>) -> Option<BTreeMap<Role, Features>> {
    let Some(entry) = fields.get(reader, &keys::VARY_ETHTOOL) else {
        return Some(BTreeMap::new());
    };
    if !matches!(entry.node.value, Value::Map(_)) {
        reader.wrong(&entry, "not a mapping");
        return None;
    }
    let faults = reader.faults.len();
    let devices = Fields::open(reader, keys::VARY_ETHTOOL.path, &entry.path, &entry.node)?;
    let mut roles = BTreeMap::new();
    for (key, role) in DEVICES {
        if let Some(entry) = devices.get(reader, key) {
            roles.extend(features(reader, &entry).map(|features| (role, features)));
        }
    }
    (reader.faults.len() == faults).then_some(roles)
}

fn features(reader: &mut Reader, entry: &Entry<'_>) -> Option<Features> {
    let mut features = Features::new();
    for (key, value) in named(reader, entry)? {
        let Some(name) = key.text() else { continue };
        let path = join(&entry.path, name);
        if !is_feature(name) {
            let message = format!("{} is not the name of a feature", quoted(name));
            let help = "write it as `ethtool -k` prints it, such as `rx-gro`";
            reader.fault(key.span.clone(), &path, message, "not such a name", help);
            continue;
        }
        if let Some((_, full)) = SHORT_NAMES.iter().find(|(short, _)| *short == name) {
            let message = format!("`{name}` is ethtool's short name for one or several features");
            let help = format!("write the kernel's name, such as `{full}`");
            reader.fault(
                key.span.clone(),
                &path,
                message,
                "not the kernel's name",
                help,
            );
            continue;
        }
        let on = match value.text() {
            Some("on" | "true" | "True" | "TRUE") => true,
            Some("off" | "false" | "False" | "FALSE") => false,
            _ => {
                if value.value != Value::Refused {
                    let message = format!("`{path}` cannot be {}", describe(&value.value));
                    let span = if value.value == Value::Null {
                        &key.span
                    } else {
                        &value.span
                    };
                    reader.fault(
                        span.clone(),
                        &path,
                        message,
                        "unknown word",
                        "write `on` or `off`",
                    );
                }
                continue;
            }
        };
        features.insert(name.to_owned(), on);
    }
    Some(features)
}

/// Settings of the measured device; `None` where one could not be read.
fn device(reader: &mut Reader, fields: &Fields<'_>) -> Option<BTreeMap<DeviceSetting, String>> {
    const NUMBERS: [(&Key, DeviceSetting); 4] = [
        (&keys::VARY_MTU, DeviceSetting::Mtu),
        (&keys::VARY_RX_RING, DeviceSetting::RxRing),
        (&keys::VARY_TX_RING, DeviceSetting::TxRing),
        (&keys::VARY_QUEUES, DeviceSetting::Queues),
    ];
    let faults = reader.faults.len();
    let mut device = BTreeMap::new();
    for (key, setting) in NUMBERS {
        if let Some(entry) = fields.get(reader, key) {
            let value = integer32(reader, &entry);
            device.extend(value.map(|value| (setting, value.to_string())));
        }
    }
    if let Some(entry) = fields.get(reader, &keys::VARY_QDISC) {
        let kind = word(reader, &entry);
        device.extend(kind.map(|kind| (DeviceSetting::Qdisc, kind.to_owned())));
    }
    if let Some(entry) = fields.get(reader, &keys::VARY_RPS) {
        let mask = match as_word(&entry) {
            Some(_) => Some("0".to_owned()),
            None => entry
                .node
                .text()
                .filter(|text| Rps::parse_mask(text).is_some())
                .map(|text| {
                    let digits = text.trim_start_matches("0x");
                    digits.to_owned()
                }),
        };
        if mask.is_none() {
            reader.wrong(&entry, "not a mask");
        }
        device.extend(mask.map(|mask| (DeviceSetting::Rps, mask)));
    }
    (reader.faults.len() == faults).then_some(device)
}

/// Reads the name of a device, optionally behind the file of its network namespace.
fn device_name(reader: &mut Reader, entry: &Entry<'_>) -> Option<String> {
    let text = text(reader, entry)?;
    if !is_device(&text) {
        let message = format!("{} is no device", quoted(&text));
        let help = "write its name, such as `vxlan0`, or one in another network namespace as `/run/netns/NAME/vxlan0` or \
                    `/proc/PID/ns/net/vxlan0`";
        let span = entry.node.span.clone();
        reader.fault(span, &entry.path, message, "not a device", help);
        return None;
    }
    Some(text)
}

/// The command and the one that undoes it. `Err` if a fault was reported.
fn command(reader: &mut Reader, fields: &Fields<'_>) -> Result<Option<CommandPair>, ()> {
    let entries = [&keys::VARY_BEFORE, &keys::VARY_AFTER].map(|key| fields.get(reader, key));
    let read = entries
        .each_ref()
        .map(|entry| entry.as_ref().map(|entry| shell(reader, entry)));
    match (entries, read) {
        (_, [None, None]) => Ok(None),
        (_, [Some(before), Some(after)]) => Ok(Some(CommandPair {
            before: before.ok_or(())?,
            after: after.ok_or(())?,
        })),
        ([Some(before), _], _) => {
            let message = format!("`{}` is never undone: `after` is missing", before.path);
            let help = "write `after: ...`: the command that undoes it, or `after: \"true\"` where there is \
                        nothing to undo";
            let span = before.node.span.clone();
            reader.fault(span, &before.path, message, "no `after` here", help);
            Err(())
        }
        ([_, Some(after)], _) => {
            let message = format!("`{}` undoes nothing: `before` is missing", after.path);
            let help = "write `before: ...`: the command that `after` undoes";
            let span = after.node.span.clone();
            reader.fault(span, &after.path, message, "no `before` here", help);
            Err(())
        }
        _ => Err(()),
    }
}

fn shell(reader: &mut Reader, entry: &Entry<'_>) -> Option<String> {
    let command = text(reader, entry)?;
    if command.contains('\0') {
        reader.wrong(entry, "has a zero byte");
        return None;
    }
    Some(command)
}
