//! A factor without the type of its levels, for the cross product and for selections.

use std::borrow::Cow;

use crate::keys::Key;
use crate::read::{Entry, Levels, Reader};

/// A factor by its name and the labels of its levels.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// The factor's key in records: `underlay.mtu`, `streams`.
    pub(crate) name: Cow<'static, str>,
    pub(crate) key: &'static Key,
    pub(crate) labels: Vec<String>,
    /// Whether every level that the plan wrote could be read.
    pub(crate) all_read: bool,
    /// Reads a level from a value of the plan and returns its label.
    pub(crate) read: fn(&mut Reader, &Entry<'_>) -> Option<String>,
    /// For an option, the number of its load in the plan's list: it does not apply to other loads.
    pub(crate) of_load: Option<usize>,
    /// For an option of a load that the others are measured with and without: the factor that says whether the load
    /// runs.
    pub(crate) runs_by: Option<LoadSwitch>,
}

/// The factor that says whether a load runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoadSwitch {
    /// The factor's number among those of the loads.
    pub(crate) axis: usize,
    /// The number of the level without the load.
    pub(crate) without: usize,
}

impl Axis {
    /// A factor with these levels, named after its key.
    pub(crate) fn of<T>(
        key: &'static Key,
        levels: &Levels<T>,
        read: fn(&mut Reader, &Entry<'_>) -> Option<String>,
    ) -> Self {
        Self {
            labels: levels.levels.iter().map(|l| l.label.clone()).collect(),
            all_read: levels.all_read,
            read,
            ..Self::of_words(Cow::Borrowed(key.factor_name().unwrap_or(key.path)), key)
        }
    }

    /// A factor whose levels are named by their labels, so far without levels.
    pub(crate) fn of_words(name: Cow<'static, str>, key: &'static Key) -> Self {
        Self {
            name,
            key,
            labels: Vec::new(),
            all_read: true,
            read: |_, entry| entry.node.text().map(|label| label.trim().to_owned()),
            of_load: None,
            runs_by: None,
        }
    }
}
