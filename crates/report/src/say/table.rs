//! A table in the one form that terminal, Markdown and page draw.

use serde::Serialize;

/// Rows of a table before the rest is only counted.
pub(crate) const ROWS: usize = 1000;

/// What stands where there is no figure.
pub(crate) const NONE: &str = "–";

/// In which form a column stands: each of them has what the ones before have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shown {
    /// In every form.
    Always,
    /// Not in the terminal's short form.
    InFull,
    /// On the page, which has room for it.
    OnPage,
}

/// A table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Table {
    /// What it is a table of; empty where the heading above says it.
    pub(crate) title: String,
    /// The heads.
    pub(crate) columns: Vec<Head>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
    /// What its columns show, a sentence each.
    pub(crate) meanings: Vec<String>,
    /// What is not in it, and where it is.
    pub(crate) left_out: Option<String>,
    /// Rows that there are.
    #[serde(skip)]
    all: usize,
    /// Where the others are.
    #[serde(skip)]
    elsewhere: String,
    /// What else is not in it.
    #[serde(skip)]
    also: Option<String>,
}

/// A column's head.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Head {
    /// Its words.
    pub(crate) words: String,
    /// The same in one or two lines.
    #[serde(skip)]
    pub(crate) lines: String,
    /// Whether figures stand in it.
    pub(crate) number: bool,
    #[serde(skip)]
    shown: Shown,
    #[serde(skip)]
    meaning: &'static str,
}

/// A table's row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// The cell, for highlighting it.
    pub(crate) cell: Option<u32>,
    /// The fields, as many as there are columns.
    pub(crate) fields: Vec<String>,
}

impl Head {
    /// A head; of a column of figures where it ends in `#`.
    pub(crate) fn new(head: &str) -> Self {
        let words = head.trim_end_matches('#');
        Self {
            words: words.into(),
            lines: words.replace(' ', "\n"),
            number: head.ends_with('#'),
            shown: Shown::Always,
            meaning: "",
        }
    }

    /// The head in one or two lines, where it is not broken between words.
    pub(crate) fn lines(self, lines: String) -> Self {
        Self { lines, ..self }
    }

    /// Of a column that not every form shows, with what it means.
    pub(crate) fn shown(self, shown: Shown, meaning: &'static str) -> Self {
        Self {
            shown,
            meaning,
            ..self
        }
    }
}

impl Table {
    /// A table; heads that end in `#` are of columns of figures.
    pub(crate) fn new<'a>(title: &str, heads: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(title, heads.into_iter().map(Head::new).collect())
    }

    /// A table with these columns.
    pub(crate) fn of(title: &str, columns: Vec<Head>) -> Self {
        let mut table = Self {
            title: title.into(),
            columns,
            rows: Vec::new(),
            meanings: Vec::new(),
            left_out: None,
            all: 0,
            elsewhere: String::new(),
            also: None,
        };
        table.mean();
        table
    }

    /// Adds a row; beyond [`ROWS`] it is only counted.
    pub(crate) fn row(&mut self, cell: Option<u32>, fields: Vec<String>) {
        debug_assert_eq!(fields.len(), self.columns.len(), "{}", self.title);
        self.all += 1;
        if self.rows.len() < ROWS {
            self.rows.push(Row { cell, fields });
        }
    }

    /// Says what did not fit, and where it is.
    pub(crate) fn finish(mut self, elsewhere: &str) -> Self {
        elsewhere.clone_into(&mut self.elsewhere);
        self.limit(ROWS);
        self
    }

    /// Says what else is not in it.
    pub(crate) fn also(mut self, sentence: Option<String>) -> Self {
        self.also = sentence;
        self.limit(ROWS);
        self
    }

    /// Leaves the first rows.
    pub(crate) fn limit(&mut self, rows: usize) {
        self.rows.truncate(rows);
        let shown = self.rows.len();
        let rest = (self.all > shown).then(|| {
            format!(
                "These are the first {shown} of {} rows; all of them: {}",
                self.all, self.elsewhere
            )
        });
        let said: Vec<String> = rest.into_iter().chain(self.also.clone()).collect();
        self.left_out = (!said.is_empty()).then(|| said.join(" "));
    }

    /// Leaves the columns that a form shows; nothing is left of a table of which it shows labels alone.
    pub(crate) fn keep(self, most: Shown) -> Option<Self> {
        self.filter(|head, _| head.shown <= most)
    }

    /// Leaves the columns of figures that have one.
    pub(crate) fn with_figures(self) -> Option<Self> {
        self.filter(|head, rows| {
            !head.number || rows.iter().any(|(row, at)| row.fields[*at] != NONE)
        })
    }

    fn filter(mut self, keep: impl Fn(&Head, &[(&Row, usize)]) -> bool) -> Option<Self> {
        let kept: Vec<bool> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, head)| {
                let rows: Vec<(&Row, usize)> = self.rows.iter().map(|row| (row, at)).collect();
                keep(head, &rows)
            })
            .collect();
        let mut at = kept.iter();
        self.columns.retain(|_| at.next() == Some(&true));
        for row in &mut self.rows {
            let mut at = kept.iter();
            row.fields.retain(|_| at.next() == Some(&true));
        }
        self.mean();
        self.columns.iter().any(|head| head.number).then_some(self)
    }

    /// Says what the columns that are left mean, each once.
    fn mean(&mut self) {
        self.meanings.clear();
        for head in &self.columns {
            let meaning = head.meaning;
            if !meaning.is_empty() && self.meanings.iter().all(|known| known != meaning) {
                self.meanings.push(meaning.into());
            }
        }
    }
}

/// A figure, or that there is none.
pub(crate) fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.into(), |value| format!("{value:.digits$}"))
}
