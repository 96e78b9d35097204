//! A column of a table, for every form of it: what stands above, what it means, and its fields.

/// A column: of cells, or of their loads.
#[derive(Debug)]
pub(crate) struct Column<T: 'static> {
    /// What it is, a word or two: `p99 us`.
    pub(crate) head: &'static str,
    /// The same in two lines, where it is not broken between words.
    narrow: Option<&'static str>,
    /// Whether it is printed in full alone.
    pub(crate) only_full: bool,
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
            only_full: false,
            meaning,
            field,
        }
    }

    /// Printed in full alone.
    pub(crate) const fn in_full(self) -> Self {
        Self {
            only_full: true,
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
            only_full: self.only_full,
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

/// What columns mean, each once.
pub(crate) fn meanings<T>(columns: &[Column<T>]) -> Vec<&'static str> {
    let mut meanings: Vec<&str> = Vec::new();
    for meaning in columns.iter().map(|column| column.meaning) {
        if !meaning.is_empty() && !meanings.contains(&meaning) {
            meanings.push(meaning);
        }
    }
    meanings
}
