//! A part of a result in the one form that terminal, Markdown and page draw: a heading, sentences, tables, a list.

use serde::Serialize;

use super::table::{Shown, Table};

/// A part of a result. What is empty is not drawn.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Section {
    pub(crate) heading: String,
    /// Before the tables.
    pub(crate) sentences: Vec<String>,
    pub(crate) tables: Vec<Table>,
    /// After them.
    pub(crate) items: Vec<Item>,
    /// What the tables and the list show.
    pub(crate) meanings: Vec<String>,
}

/// A line of a list.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Item {
    /// What stands out at its beginning.
    pub(crate) lead: String,
    pub(crate) text: String,
    /// Lines of its own.
    pub(crate) lines: Vec<String>,
}

impl Item {
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

impl Section {
    /// With the columns of its tables that a form shows.
    pub(crate) fn keep(mut self, most: Shown) -> Self {
        let tables = self.tables.into_iter();
        self.tables = tables.filter_map(|table| table.keep(most)).collect();
        self
    }

    /// Leaves the first rows of each table and the first lines of the list.
    pub(crate) fn limit(&mut self, rows: usize) {
        for table in &mut self.tables {
            table.limit(rows);
        }
        let more = self.items.len().saturating_sub(rows);
        if more > 0 {
            self.items.truncate(rows);
            let all = format!("And {more} more: `wirecost report RUN_DIR --json`.");
            self.items.push(Item::of(all));
        }
    }
}
