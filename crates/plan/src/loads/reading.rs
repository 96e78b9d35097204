//! Reads `load`: a workload's name, a workload with options, or a mix.

use std::collections::BTreeSet;

use wirecost_model::load::Workload;

use super::{Choice, Loads, NONE, Part, setting};
use crate::keys::{self, LOAD_NAME_MAX, options};
use crate::node::{Node, Value};
use crate::read::{Entry, Fields, Levels, Reader, join, quoted};
use crate::values::word;

/// Reads `load`.
pub(crate) fn read(reader: &mut Reader, root: &Fields<'_>) -> Loads {
    let Some(entry) = root.get(reader, &keys::LOAD) else {
        return Loads::default();
    };
    let faults = reader.faults.len();
    let items = entry.items(reader);
    let choices: Vec<Choice> = items
        .iter()
        .filter_map(|item| choice(reader, item))
        .collect();
    clashes(reader, &choices);
    Loads {
        choices,
        all_read: reader.faults.len() == faults,
    }
}

/// Reads one level: a workload's name, a mapping of a workload to its options, or a mix.
fn choice(reader: &mut Reader, entry: &Entry<'_>) -> Option<Choice> {
    let is_mix = |pairs: &[(Node, Node)]| pairs.iter().any(|(key, _)| key.text() == Some("mix"));
    let parts = match &entry.node.value {
        Value::Map(pairs) if is_mix(pairs) => mix(reader, entry)?,
        _ => vec![part(reader, entry, None)?],
    };
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    Some(Choice {
        label: names.join("+"),
        parts,
    })
}

/// Reads one load. Without a name of its own it is named after its workload.
fn part(reader: &mut Reader, entry: &Entry<'_>, name: Option<&str>) -> Option<Part> {
    let (workload, node) = match &entry.node.value {
        Value::Map(pairs) => {
            if pairs.is_empty() {
                reader.wrong(entry, "names no load");
            }
            // Unknown workloads are faults of the mapping.
            Fields::open(reader, keys::LOAD.path, &entry.path, &entry.node)?;
            let known = |(key, node): &'_ (Node, Node)| {
                let text = key.text()?;
                Some((Workload::by_name(text)?, key.span.clone(), node.clone()))
            };
            let mut named = pairs.iter().filter_map(known);
            let (workload, _, node) = named.next()?;
            if let Some((other, span, _)) = named.next() {
                let message = format!("`{}` names two loads", entry.path);
                let help = format!(
                    "a list measures each by itself: `[{{ {workload}: ... }}, {{ {other}: ... }}]`; both at once are \
                     `{{ mix: {{ one: ..., other: ... }} }}`"
                );
                reader.fault(span, &entry.path, message, "the second", help);
                return None;
            }
            (workload, Some(node))
        }
        _ => (Workload::by_name(word(reader, entry)?)?, None),
    };
    let path = join(&entry.path, workload.name());
    let fields = match &node {
        None => Fields::absent(),
        Some(node) => {
            let opened = Fields::open(reader, &section(workload), &path, node);
            if opened.is_none() && node.value != Value::Refused {
                let key = keys::keys()
                    .iter()
                    .find(|key| key.path == section(workload))?;
                reader.wrong(&Entry::at(key, path.clone(), node), "not a mapping");
            }
            opened?
        }
    };
    let options = options(workload)
        .iter()
        .map(|key| {
            let entry = fields.get(reader, key);
            let levels = entry.map(|entry| entry.levels(reader, setting::read, setting::label));
            let unread = Levels {
                levels: Vec::new(),
                all_read: false,
            };
            (key, levels.unwrap_or(unread))
        })
        .collect();
    Some(Part {
        name: name.unwrap_or(workload.name()).to_owned(),
        workload,
        without: None,
        options,
        span: entry.node.span.clone(),
        path: entry.path.clone(),
    })
}

fn section(workload: Workload) -> String {
    format!("{}.{}", keys::LOAD.path, workload.name())
}

/// Reads `{ mix: { NAME: LOAD, ... } }`.
fn mix(reader: &mut Reader, entry: &Entry<'_>) -> Option<Vec<Part>> {
    let fields = Fields::open(reader, keys::LOAD.path, &entry.path, &entry.node)?;
    let mix = fields.get(reader, &keys::MIX)?;
    if let Value::Map(pairs) = &entry.node.value
        && let Some((other, _)) = pairs.iter().find(|(key, _)| {
            key.text()
                .is_some_and(|key| Workload::by_name(key).is_some())
        })
    {
        let message = format!("`{}` names a load beside its mix", entry.path);
        let help = "what runs at once with the others is one of the mix: `{ mix: { bulk: tcp-stream, ping: tcp-rr } }`";
        reader.fault(
            other.span.clone(),
            &entry.path,
            message,
            "outside of the mix",
            help,
        );
    }
    let Value::Map(pairs) = &mix.node.value else {
        reader.wrong(&mix, "not a mapping");
        return None;
    };
    // Of a key that occurs twice only the first is kept, and reported already.
    if pairs.len() < 2 && !reader.has_fault_in(&mix.node.span) {
        let message = format!("`{}` has fewer than two loads", mix.path);
        let help = "a mix is several loads at once: `{ bulk: tcp-stream, ping: tcp-rr }`";
        reader.fault(
            mix.node.span.clone(),
            &mix.path,
            message,
            "one is no mix",
            help,
        );
    }
    let mut parts = Vec::new();
    let mut all_read = true;
    for (key, node) in pairs {
        let Some(name) = name(reader, &mix.path, key) else {
            all_read = false;
            continue;
        };
        let entry = Entry::at(&keys::LOAD, join(&mix.path, &name), node);
        let nested = matches!(&node.value, Value::Map(pairs) if pairs.iter().any(|(key, _)| key.text() == Some("mix")));
        if nested {
            let message = format!("`{}` is a mix within a mix", entry.path);
            let help = "name all loads in the outer one: they run at once";
            reader.fault(node.span.clone(), &entry.path, message, "a mix again", help);
            all_read = false;
            continue;
        }
        let part = match node.value {
            Value::List(_) => with_and_without(reader, &entry, &name),
            _ => part(reader, &entry, Some(&name)),
        };
        match part {
            Some(part) => parts.push(part),
            None => all_read = false,
        }
    }
    (all_read && parts.len() > 1).then_some(parts)
}

/// Reads `[none, LOAD]`: a load without which and with which the other loads of its mix are measured.
fn with_and_without(reader: &mut Reader, entry: &Entry<'_>, name: &str) -> Option<Part> {
    let items = entry.items(reader);
    let is_none = |item: &Entry<'_>| item.node.text() == Some(NONE);
    let (load, without) = match &items[..] {
        [first, second] if is_none(first) && !is_none(second) => (second, 0),
        [first, second] if is_none(second) && !is_none(first) => (first, 1),
        [] => return None,
        _ => {
            let message = format!(
                "`{}` is a list of something else than `{NONE}` and a load",
                entry.path
            );
            let help = format!(
                "`[{NONE}, tcp-stream]` measures the other loads of the mix without it and with it; what else is varied \
                 of it are its options, and different loads are mixes of their own"
            );
            reader.fault(
                entry.node.span.clone(),
                &entry.path,
                message,
                format!("not `{NONE}` and a load"),
                help,
            );
            return None;
        }
    };
    let part = part(reader, load, Some(name))?;
    Some(Part {
        without: Some(without),
        span: entry.node.span.clone(),
        path: entry.path.clone(),
        ..part
    })
}

/// Checks the name of a load in a mix.
fn name(reader: &mut Reader, path: &str, key: &Node) -> Option<String> {
    let name = key.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let valid = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(fits)
        && name.len() <= LOAD_NAME_MAX;
    if !valid {
        let message = format!("{} cannot name a load", quoted(name));
        let help = format!(
            "a name has letters, digits, `_` and `-`, begins with a letter or digit, and has at most {LOAD_NAME_MAX} characters"
        );
        reader.fault(
            key.span.clone(),
            &join(path, name),
            message,
            "not such a name",
            help,
        );
    }
    valid.then(|| name.to_owned())
}

/// Checks that no two loads have the same name.
fn clashes(reader: &mut Reader, choices: &[Choice]) {
    let mut known = BTreeSet::new();
    for part in choices.iter().flat_map(|choice| &choice.parts) {
        if !known.insert(&part.name) {
            let message = format!("two loads are called `{}`", part.name);
            let help = "options that differ are lists of one load (`{ tcp-rr: { streams: [1, 64] } }`); loads of two mixes \
                        have names of their own";
            reader.fault(part.span.clone(), &part.path, message, "the second", help);
        }
    }
}
