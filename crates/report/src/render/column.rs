//! A column of a table in any output format: its head, its meaning, and its fields.

use super::table::ShownIn;

/// A column of a table whose rows are cells or loads (`T`).
#[derive(Debug)]
pub(crate) struct Column<T: 'static> {
    /// The head, in a word or two: `p99 us`.
    pub(crate) head: &'static str,
    /// The head in two lines, where these do not break between words.
    narrow: Option<&'static str>,
    /// Which output forms have the column.
    pub(crate) shown: ShownIn,
    /// What the column shows, for the text below the table; may be empty.
    pub(crate) meaning: &'static str,
    /// The field of a row; `None` where there is no figure.
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
            shown: ShownIn::Always,
            meaning,
            field,
        }
    }

    /// Not shown in the terminal's short form.
    pub(crate) const fn in_full(self) -> Self {
        Self {
            shown: ShownIn::InFull,
            ..self
        }
    }

    /// Shown on the HTML page alone.
    pub(crate) const fn on_page(self) -> Self {
        Self {
            shown: ShownIn::OnPage,
            ..self
        }
    }

    pub(crate) const fn narrow(self, head: &'static str) -> Self {
        Self {
            narrow: Some(head),
            ..self
        }
    }

    /// The same column for rows of another type.
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
