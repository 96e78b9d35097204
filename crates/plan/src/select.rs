//! Selections of cells by level: `exclude` and the `where` of published figures.

use std::collections::BTreeMap;

use wirecost_model::plan::Levels;

use crate::axis::Axis;
use crate::node::{Node, Value};
use crate::read::{Entry, Reader, describe, join, quoted};
use crate::suggest::{listed, nearest};

/// One entry of `exclude`: a cell matches if each factor named has one of the levels named.
#[derive(Debug, Default)]
pub(crate) struct Exclusion {
    /// Level numbers by the number of the factor.
    sets: BTreeMap<usize, Vec<usize>>,
}

impl Exclusion {
    /// Whether a cell, given by its level numbers, is excluded.
    pub(crate) fn matches(&self, cell: &[usize]) -> bool {
        !self.sets.is_empty()
            && self
                .sets
                .iter()
                .all(|(axis, levels)| levels.contains(&cell[*axis]))
    }

    /// The entry as single combinations of levels.
    pub(crate) fn levels(&self, axes: &[Axis]) -> Vec<Levels> {
        let mut combinations = vec![Levels::new()];
        for (number, levels) in &self.sets {
            let Axis { name, labels, .. } = &axes[*number];
            combinations = combinations
                .iter()
                .flat_map(|known| {
                    levels.iter().map(|level| {
                        let mut longer = known.clone();
                        longer.insert(name.clone().into_owned(), labels[*level].clone());
                        longer
                    })
                })
                .collect();
        }
        combinations
    }
}

/// Reads `exclude`. An entry with a fault keeps what could be read, so that it still covers the
/// cells that it was meant to cover, and their faults are not reported in addition.
pub(crate) fn exclusions(reader: &mut Reader, entry: &Entry<'_>, axes: &[Axis]) -> Vec<Exclusion> {
    if !matches!(entry.node.value, Value::List(_)) {
        reader.wrong(entry, "not a list");
        return Vec::new();
    }
    let items = entry.items(reader);
    let read = items.iter().map(|item| {
        let mut exclusion = Exclusion::default();
        for (index, path, node) in pairs(reader, item, axes, "would drop every cell") {
            let at = Entry::at(axes[index].key, path, node);
            let mut levels = Vec::new();
            for value in at.items(reader) {
                if let Some(level) = level(reader, &axes[index], &value)
                    && !levels.contains(&level)
                {
                    levels.push(level);
                }
            }
            if !levels.is_empty() {
                exclusion.sets.insert(index, levels);
            }
        }
        exclusion
    });
    read.collect()
}

/// Reads a mapping of factors to one level each; `None` where none could be read.
pub(crate) fn levels(reader: &mut Reader, entry: &Entry<'_>, axes: &[Axis]) -> Option<Levels> {
    let mut levels = Levels::new();
    for (index, path, node) in pairs(reader, entry, axes, "would match every cell") {
        let factor = &axes[index];
        let at = Entry::at(factor.key, path, node);
        if let Some(level) = level(reader, factor, &at) {
            levels.insert(
                factor.name.clone().into_owned(),
                factor.labels[level].clone(),
            );
        }
    }
    (!levels.is_empty()).then_some(levels)
}

/// The factors that a mapping names: index, path and value of each.
fn pairs<'n>(
    reader: &mut Reader,
    entry: &'n Entry<'_>,
    axes: &[Axis],
    if_empty: &str,
) -> Vec<(usize, String, &'n Node)> {
    let Value::Map(pairs) = &entry.node.value else {
        if entry.node.value != Value::Refused {
            let message = format!("`{}` cannot be {}", entry.path, describe(&entry.node.value));
            let help = "write factors and their levels, such as \
                        `{ encapsulation: none, offload: plain }`";
            let span = entry.node.span.clone();
            reader.fault(span, &entry.path, message, "not a mapping", help);
        }
        return Vec::new();
    };
    if pairs.is_empty() {
        let message = format!("`{}` names no factor", entry.path);
        let help = "name at least one factor and its level, such as `{ encapsulation: none }`";
        let span = entry.node.span.clone();
        reader.fault(span, &entry.path, message, if_empty, help);
    }
    let mut found = Vec::new();
    for (key, value) in pairs {
        let Some(name) = key.text() else { continue };
        let path = join(&entry.path, name);
        match axes.iter().position(|axis| axis.name == name) {
            Some(index) => found.push((index, path, value)),
            None => unknown_factor(reader, key, name, &path, axes),
        }
    }
    found
}

/// Reports a name that no factor of the plan has.
pub(crate) fn unknown_factor(
    reader: &mut Reader,
    key: &Node,
    name: &str,
    path: &str,
    axes: &[Axis],
) {
    // A factor without levels belongs to a key that the plan does not have.
    let there = |axis: &&Axis| !(axis.all_read && axis.labels.is_empty());
    let names = || axes.iter().filter(there).map(|axis| &*axis.name);
    // `mtu` and `tcp-stream.streams` are the keys as they are written in the plan.
    let same_end = names().find(|known| known.rsplit('.').next() == name.rsplit('.').next());
    let hint = same_end
        .or_else(|| nearest(name, names()))
        .map(|word| format!("did you mean `{word}`? "))
        .unwrap_or_default();
    let help = format!("{hint}the factors are {}", listed(names(), "and"));
    let message = format!("{} is not a factor", quoted(name));
    reader.fault(key.span.clone(), path, message, "unknown factor", help);
}

/// The number of the level that a value names: by its label, or written as in the factor's list.
fn level(reader: &mut Reader, axis: &Axis, entry: &Entry<'_>) -> Option<usize> {
    let number = |label: &str| axis.labels.iter().position(|known| known == label);
    if let Some(level) = entry.node.text().and_then(number) {
        return Some(level);
    }
    let read = (axis.read)(&mut Reader::default(), entry);
    if let Some(level) = read.as_deref().and_then(number) {
        return Some(level);
    }
    // A level that could not be read may be the one meant: its own fault is enough.
    if axis.all_read && entry.node.value != Value::Refused {
        let value = read.map_or_else(|| describe(&entry.node.value), |label| quoted(&label));
        let message = format!("`{}` has no level {value}", axis.name);
        let labels = axis.labels.iter().map(String::as_str);
        let help = match axis.labels.len() {
            1 => format!("its only level is {}", listed(labels, "and")),
            _ => format!("its levels are {}", listed(labels, "and")),
        };
        let span = entry.node.span.clone();
        reader.fault(span, &entry.path, message, "not a level", help);
    }
    None
}
