//! Reads `pairs`: which pairs of more than two existing hosts are measured.

use wirecost_model::plan::PairNames;

use crate::keys;
use crate::node::{Node, Value};
use crate::read::{Entry, Fields, Levels, Reader};

/// The levels of `pairs`; empty without the key. A list of two names is a single pair.
pub(crate) fn read(reader: &mut Reader, root: &Fields<'_>) -> Levels<PairNames> {
    let mut levels = Levels {
        levels: Vec::new(),
        all_read: true,
    };
    let Some(mut entry) = root.get(reader, &keys::PAIRS) else {
        return levels;
    };
    if let Value::List(items) = &entry.node.value
        && !items.is_empty()
        && items.iter().all(|item| item.text().is_some())
    {
        let one = entry.node.clone().into_owned();
        entry.node.to_mut().value = Value::List(vec![one]);
    }
    levels = entry.levels(reader, names, PairNames::to_string);
    levels
}

/// Reads one pair.
pub(crate) fn names(reader: &mut Reader, entry: &Entry<'_>) -> Option<PairNames> {
    let names: Option<Vec<&str>> = match &entry.node.value {
        Value::List(items) => items.iter().map(Node::text).collect(),
        _ => None,
    };
    let Some([first, second]) = names.as_deref() else {
        reader.wrong(entry, "not two hosts");
        return None;
    };
    if first == second {
        reader.wrong(entry, "twice the same host");
        return None;
    }
    Some(PairNames([*first, *second].map(str::to_owned)))
}
