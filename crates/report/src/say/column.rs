//! A column of a table, for every form of it: what stands above, what it means, and its fields.

use super::table::Shown;

/// A column: of cells, or of their loads.
#[derive(Debug)]
pub(crate) struct Column<T: 'static> {
    /// What it is, a word or two: `p99 us`.
    pub(crate) head: &'static str,
    /// The same in two lines, where it is not broken between words.
    narrow: Option<&'static str>,
    /// Which forms have it.
    pub(crate) shown: Shown,
    /// What it shows, for the text below the table.
    pub(crate) meaning: &'static str,
    /// Its field, where there is a figure.
    pub(crate) field: fn(&T) -> Option<String>,
}

impl<T> Clone for Column<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Column<T> {}

impl<T> Column<T> {
    pub(crate) const fn new(
        head: &'static str,
        meaning: &'static str,
        field: fn(&T) -> Option<String>,
    ) -> Self {
        Self {
            head,
            narrow: None,
            shown: Shown::Always,
            meaning,
            field,
        }
    }

    /// Printed in full alone.
    pub(crate) const fn in_full(self) -> Self {
        Self {
            shown: Shown::InFull,
            ..self
        }
    }

    /// On the page alone.
    pub(crate) const fn on_page(self) -> Self {
        Self {
            shown: Shown::OnPage,
            ..self
        }
    }

    pub(crate) const fn narrow(self, head: &'static str) -> Self {
        Self {
            narrow: Some(head),
            ..self
        }
    }

    /// The same of other rows.
    pub(crate) const fn with_field<R>(&self, field: fn(&R) -> Option<String>) -> Column<R> {
        Column {
            head: self.head,
            narrow: self.narrow,
            shown: self.shown,
            meaning: self.meaning,
            field,
        }
    }

    /// The head in one or two lines.
    pub(crate) fn lines(&self) -> String {
        self.narrow
            .map_or_else(|| self.head.replace(' ', "\n"), str::to_owned)
    }
}
