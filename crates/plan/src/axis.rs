//! A factor without the type of its levels: what the cross product and selections go by.

use std::borrow::Cow;

use crate::keys::Key;
use crate::read::{Entry, Levels, Reader};

/// A factor.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    /// The factor's key in records: `underlay.mtu`, `streams`.
    pub(crate) name: Cow<'static, str>,
    pub(crate) key: &'static Key,
    pub(crate) labels: Vec<String>,
    /// Whether `labels` are all that the plan wrote.
    pub(crate) sound: bool,
    /// Reads a level and labels it as the factor does.
    pub(crate) read: fn(&mut Reader, &Entry<'_>) -> Option<String>,
    /// Of an option the number of its load in the plan's list: to other loads it means nothing.
    pub(crate) of_load: Option<usize>,
    /// Of an option of a load that the others are measured with and without: what tells whether it runs.
    pub(crate) runs_by: Option<RunsBy>,
}

/// The factor that says whether a load runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunsBy {
    /// Its number among those of the loads.
    pub(crate) axis: usize,
    /// The number of its level without the load.
    pub(crate) without: usize,
}

impl Axis {
    /// A factor whose levels are read by its key.
    pub(crate) fn of<T>(
        key: &'static Key,
        levels: &Levels<T>,
        read: fn(&mut Reader, &Entry<'_>) -> Option<String>,
    ) -> Self {
        Self {
            labels: levels.levels.iter().map(|l| l.label.clone()).collect(),
            sound: levels.sound,
            read,
            ..Self::of_words(Cow::Borrowed(key.factor_name().unwrap_or(key.path)), key)
        }
    }

    /// A factor whose levels are called by their labels; it has none yet.
    pub(crate) fn of_words(name: Cow<'static, str>, key: &'static Key) -> Self {
        Self {
            name,
            key,
            labels: Vec::new(),
            sound: true,
            read: |_, entry| entry.node.text().map(|label| label.trim().to_owned()),
            of_load: None,
            runs_by: None,
        }
    }
}
