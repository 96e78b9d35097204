//! Factors of the plan's own: each level is a setting of the hosts.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use wirecost_model::offload::Role;
use wirecost_model::vary::{Deed, Place, Setting, Vary, role_key};

use crate::factors::Axis;
use crate::keys::{self, Key, LABEL_MAX, keys};
use crate::read::{Entry, Fields, Level, Levels, Reader, describe, join, quoted};
use crate::values::{text, word};
use crate::yaml::{Node, Value};

/// A factor that the plan makes.
#[derive(Debug)]
pub(crate) struct Varied {
    pub(crate) name: String,
    pub(crate) levels: Levels<Setting>,
}

impl Varied {
    pub(crate) fn axis(&self) -> Axis {
        Axis {
            name: Cow::Owned(self.name.clone()),
            key: &keys::VARY_LEVELS,
            labels: self.levels.levels.iter().map(|l| l.label.clone()).collect(),
            sound: self.levels.sound,
            read: |_, entry| entry.node.text().map(|label| label.trim().to_owned()),
            of_load: None,
        }
    }

    pub(crate) fn model(&self) -> Vary {
        Vary {
            name: self.name.clone(),
            levels: self.levels.values(),
        }
    }
}

/// Devices that a level may set features of.
const DEVICES: [(&Key, Role); 4] = [
    (&keys::VARY_UNDERLAY, Role::Underlay),
    (&keys::VARY_TUNNEL, Role::Tunnel),
    (&keys::VARY_GUEST, Role::Guest),
    (&keys::VARY_GUEST_PORT, Role::GuestPort),
];

/// Sysctls that would change nothing, and what to write instead.
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

/// What `ethtool -K` calls some features, and the kernel's name (ethtool(8); net/ethtool/common.c,
/// `netdev_features_strings`).
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

/// Reads `vary`.
pub(crate) fn read(reader: &mut Reader, root: &Fields<'_>) -> Vec<Varied> {
    let Some(entry) = root.get(reader, &keys::VARY) else {
        return Vec::new();
    };
    let Value::Map(pairs) = &entry.node.value else {
        reader.wrong(&entry, "not a mapping");
        return Vec::new();
    };
    if pairs.is_empty() {
        reader.wrong(&entry, "names no factor");
    }
    let mut varied = Vec::new();
    for (key, node) in pairs {
        if let Some(name) = factor_name(reader, key) {
            let path = join(&entry.path, &name);
            let levels = levels(reader, &name, &path, key, node);
            varied.push(Varied { name, levels });
        }
    }
    clashes(reader, &varied);
    varied
}

/// A name that can stand in tables and sentences, and is no other factor's.
fn factor_name(reader: &mut Reader, key: &Node) -> Option<String> {
    let name = key.text()?;
    let path = join(keys::VARY.path, name);
    let mut taken = keys().iter().filter_map(|key| key.factor_name());
    let taken = taken.find(|known| *known == name || known.rsplit('.').next() == Some(name));
    let (message, label, help) = if let Some(known) = taken {
        (
            format!("`{name}` cannot name a factor: `{known}` is one already"),
            "taken",
            "name it after what it changes, such as `tcp metrics`".to_owned(),
        )
    } else if let Some(label) = unfit(name) {
        (
            format!("{} cannot name a factor", quoted(name)),
            label,
            format!("write 1 to {LABEL_MAX} characters in one line, such as `tcp metrics`"),
        )
    } else {
        return Some(name.to_owned());
    };
    reader.fault(key.span.clone(), &path, message, label, help);
    None
}

/// What keeps text from being a name or a label.
fn unfit(text: &str) -> Option<&'static str> {
    let length = text.chars().count();
    if length == 0 || length > LABEL_MAX {
        Some("not 1 to 60 characters")
    } else if text.chars().any(char::is_control) {
        Some("more than one line")
    } else if text.trim() != text {
        Some("begins or ends with a space")
    } else {
        None
    }
}

fn levels(
    reader: &mut Reader,
    factor: &str,
    path: &str,
    key: &Node,
    node: &Node,
) -> Levels<Setting> {
    let mut entry = Entry::at(&keys::VARY_LEVELS, path, node);
    if node.value == Value::Null {
        entry.node.to_mut().span = key.span.clone();
    }
    if !matches!(entry.node.value, Value::List(_)) {
        reader.wrong(&entry, "not a list");
        return Levels {
            levels: Vec::new(),
            sound: false,
        };
    }
    let items = entry.items(reader);
    let mut sound = !items.is_empty();
    let mut levels: Vec<Level<Setting>> = Vec::new();
    for item in &items {
        let faults = reader.faults.len();
        let Some(value) = level(reader, factor, item) else {
            sound = false;
            continue;
        };
        sound &= reader.faults.len() == faults;
        if let Some((message, label)) = again(&levels, &value) {
            let help = "remove one of them: a level is one side of a comparison";
            reader.fault(item.node.span.clone(), &item.path, message, label, help);
            continue;
        }
        levels.push(Level {
            label: value.label.clone(),
            value,
            span: item.node.span.clone(),
            path: item.path.clone(),
            written: true,
        });
    }
    Levels { levels, sound }
}

/// A level that is there already, by its name or by what it does.
fn again(levels: &[Level<Setting>], new: &Setting) -> Option<(String, &'static str)> {
    let factor = &new.factor;
    for known in levels {
        if known.label == new.label {
            let message = format!("the level `{}` of `{factor}` stands twice", new.label);
            return Some((message, "second time"));
        }
        if known.value.does_the_same(new) {
            let message = format!(
                "the level `{}` of `{factor}` changes the same things as `{}`",
                new.label, known.label
            );
            return Some((message, "second time"));
        }
    }
    None
}

fn level(reader: &mut Reader, factor: &str, item: &Entry<'_>) -> Option<Setting> {
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
    // Everything is read before the first `?`, so that each gets to say what is wrong with it.
    let on_entry = fields.get(reader, &keys::VARY_ON);
    let on = on_entry.as_ref().and_then(|entry| word(reader, entry));
    let label = fields
        .get(reader, &keys::VARY_LABEL)
        .map(|entry| label(reader, &entry));
    let sysctl = fields
        .get(reader, &keys::VARY_SYSCTL)
        .map(|entry| sysctls(reader, &entry));
    let ethtool = ethtool(reader, &fields);
    let command = command(reader, &fields);
    let on = match on? {
        "guests" => Place::Guests,
        "hosts" => Place::Hosts,
        "machine" => Place::Machine,
        _ => Place::Both,
    };
    let mut setting = Setting {
        factor: factor.to_owned(),
        label: String::new(),
        sysctl: sysctl.unwrap_or(Some(BTreeMap::new()))?,
        ethtool: ethtool?,
        command: command?,
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
    if setting.sysctl.is_empty() && setting.command.is_none() {
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

/// `net.ipv4.tcp_sack`, `net/ipv4/conf/eth0.7/mtu`: at least two parts below /proc/sys, none empty and
/// none that leads elsewhere.
fn is_sysctl(name: &str) -> bool {
    let fits =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '@' | ':');
    let parts: Vec<&str> = name.split(['.', '/']).collect();
    name.chars().all(fits) && parts.len() > 1 && parts.iter().all(|part| !part.is_empty())
}

/// What is not a network namespace's own belongs to the machine, and so to everybody on it.
fn of_a_namespace(reader: &mut Reader, entry: &Entry<'_>, setting: &Setting) {
    let Value::Map(pairs) = &entry.node.value else {
        return;
    };
    if setting.on == Place::Machine {
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
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.len() >= 32 || name.is_empty() || !name.chars().all(fits) {
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

fn command(reader: &mut Reader, fields: &Fields<'_>) -> Option<Option<Deed>> {
    let entries = [&keys::VARY_BEFORE, &keys::VARY_AFTER].map(|key| fields.get(reader, key));
    let read = entries
        .each_ref()
        .map(|entry| entry.as_ref().map(|entry| shell(reader, entry)));
    match (entries, read) {
        (_, [None, None]) => Some(None),
        (_, [Some(before), Some(after)]) => Some(Some(Deed {
            before: before?,
            after: after?,
        })),
        ([Some(before), _], _) => {
            let message = format!("`{}` is never undone: `after` is missing", before.path);
            let help = "write `after: ...`: the command that undoes it, or `after: \"true\"` where there is \
                        nothing to undo";
            let span = before.node.span.clone();
            reader.fault(span, &before.path, message, "no `after` here", help);
            None
        }
        ([_, Some(after)], _) => {
            let message = format!("`{}` undoes nothing: `before` is missing", after.path);
            let help = "write `before: ...`: the command that `after` undoes";
            let span = after.node.span.clone();
            reader.fault(span, &after.path, message, "no `before` here", help);
            None
        }
        _ => None,
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

/// Two factors that set one thing would undo each other.
fn clashes(reader: &mut Reader, varied: &[Varied]) {
    let mut told = BTreeSet::new();
    for (index, later) in varied.iter().enumerate() {
        for earlier in &varied[..index] {
            let pairs = later
                .levels
                .levels
                .iter()
                .flat_map(|one| earlier.levels.levels.iter().map(move |other| (one, other)));
            for (one, other) in pairs {
                let Some(what) = both_set(&one.value, &other.value) else {
                    continue;
                };
                if !told.insert((later.name.clone(), earlier.name.clone(), what.clone())) {
                    continue;
                }
                let message = format!("`{}` and `{}` both set {what}", earlier.name, later.name);
                let help =
                    "make one factor of them: levels of two factors are in force at the same time";
                reader.fault(one.span.clone(), &one.path, message, "set twice", help);
            }
        }
    }
}

fn both_set(one: &Setting, other: &Setting) -> Option<String> {
    let plain = |name: &String| name.replace('/', ".");
    if one.on.meets(other.on) {
        let names: BTreeSet<String> = other.sysctl.keys().map(plain).collect();
        if let Some(name) = one.sysctl.keys().find(|name| names.contains(&plain(name))) {
            return Some(format!("`{name}`"));
        }
    }
    one.ethtool.iter().find_map(|(role, features)| {
        let others = other.ethtool.get(role)?;
        let name = features.keys().find(|name| others.contains_key(*name))?;
        Some(format!("`{name}` of `{}`", role_key(*role)))
    })
}
