//! A section of a result, which terminal, Markdown and HTML page draw: a heading, sentences, tables, a list.

use serde::Serialize;

use super::table::{ShownIn, Table};

/// A section of a result. Empty parts are not drawn.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Section {
    pub(crate) heading: String,
    /// Paragraphs before the tables.
    pub(crate) sentences: Vec<String>,
    pub(crate) tables: Vec<Table>,
    /// The list after the tables.
    pub(crate) items: Vec<Item>,
    /// Explanations of the tables and the list, each a paragraph at the end.
    pub(crate) meanings: Vec<String>,
}

/// An item of a list.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Item {
    /// The highlighted beginning of the item; may be empty.
    pub(crate) lead: String,
    pub(crate) text: String,
    /// Lines of a list below the item.
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
    /// Drops the columns of its tables that the form `most` does not show.
    pub(crate) fn for_form(mut self, most: ShownIn) -> Self {
        let tables = self.tables.into_iter();
        self.tables = tables.filter_map(|table| table.for_form(most)).collect();
        self
    }

    /// Keeps the first `rows` rows of each table and as many items of the list.
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
