//! Reads `vary`: the plan's own factors, whose levels are settings of the hosts.

mod setting;

use std::borrow::Cow;
use std::collections::BTreeSet;

use wirecost_model::vary::{Setting, Vary, role_key};

use crate::axis::Axis;
use crate::keys::{self, Key, LABEL_MAX, keys};
use crate::node::{Node, Value};
use crate::read::{Entry, Fields, Level, Levels, Reader, join, quoted};

/// A factor of the plan's own.
#[derive(Debug)]
pub(crate) struct CustomFactor {
    pub(crate) name: String,
    pub(crate) levels: Levels<Setting>,
}

impl CustomFactor {
    pub(crate) fn axis(&self) -> Axis {
        Axis {
            labels: self.levels.levels.iter().map(|l| l.label.clone()).collect(),
            all_read: self.levels.all_read,
            ..Axis::of_words(Cow::Owned(self.name.clone()), &keys::VARY_LEVELS)
        }
    }

    pub(crate) fn model(&self) -> Vary {
        Vary {
            name: self.name.clone(),
            levels: self.levels.values(),
        }
    }
}

/// Reads `vary`. `builds` is whether the run builds its network.
pub(crate) fn read(reader: &mut Reader, root: &Fields<'_>, builds: bool) -> Vec<CustomFactor> {
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
        if let Some(name) = factor_name(reader, key, builds) {
            let path = join(&entry.path, &name);
            let levels = levels(reader, &name, &path, key, node);
            varied.push(CustomFactor { name, levels });
        }
    }
    clashes(reader, &varied);
    varied
}

/// Checks a factor's name: fit for tables and sentences, and not that of another factor. Where
/// nothing is built, the names of factors of what is built are free.
fn factor_name(reader: &mut Reader, key: &Node, builds: bool) -> Option<String> {
    let name = key.text()?;
    let path = join(keys::VARY.path, name);
    let there = |key: &&&Key| builds || key.is_option() || key.path == keys::LOAD.path;
    let mut taken = keys()
        .iter()
        .filter(there)
        .filter_map(|key| key.factor_name());
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

/// Why a text cannot be a name or a label; `None` if it can.
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
            all_read: false,
        };
    }
    let items = entry.items(reader);
    let mut all_read = !items.is_empty();
    let mut levels: Vec<Level<Setting>> = Vec::new();
    for item in &items {
        let faults = reader.faults.len();
        let Some(value) = setting::level(reader, factor, item) else {
            all_read = false;
            continue;
        };
        all_read &= reader.faults.len() == faults;
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
    Levels { levels, all_read }
}

/// The fault of a level that occurred before, by its label or by its settings.
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

/// Faults where two factors set the same thing: they would undo each other.
fn clashes(reader: &mut Reader, varied: &[CustomFactor]) {
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
                let help = "make one factor of them: levels of two factors apply at the same time";
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
    if !one.on.meets_on_a_host(other.on) || one.device_name != other.device_name {
        return None;
    }
    let mut devices = one.device.keys();
    if let Some(what) = devices.find(|what| other.device.contains_key(*what)) {
        return Some(format!("`{}`", what.key()));
    }
    one.ethtool.iter().find_map(|(role, features)| {
        let others = other.ethtool.get(role)?;
        let name = features.keys().find(|name| others.contains_key(*name))?;
        Some(format!("`{name}` of `{}`", role_key(*role)))
    })
}
