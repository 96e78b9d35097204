//! A table, which terminal, Markdown and HTML page draw.

use serde::Serialize;

/// Most rows of a table; further rows are only counted.
pub(crate) const ROWS: usize = 1000;

/// The text of a field without a figure.
pub(crate) const NONE: &str = "–";

/// The output form from which on a column is shown; each form also has the columns of the forms before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShownIn {
    /// In every form, including the terminal's short one.
    Always,
    /// In every form but the terminal's short one.
    InFull,
    /// On the HTML page alone, which has room for it.
    OnPage,
}

/// A table.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Table {
    /// Title of the table; empty where the heading above it suffices.
    pub(crate) title: String,
    /// The heads.
    pub(crate) columns: Vec<ColumnHead>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
    /// What the columns show, a phrase each.
    pub(crate) meanings: Vec<String>,
    /// What the table leaves out, and where to find it.
    pub(crate) left_out: Option<String>,
    /// Number of rows added, whether kept or not.
    #[serde(skip)]
    all: usize,
    /// Where to find all rows.
    #[serde(skip)]
    elsewhere: String,
    /// A sentence on what else is left out.
    #[serde(skip)]
    note: Option<String>,
}

/// A column's head.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ColumnHead {
    /// The head in one line.
    pub(crate) words: String,
    /// The head in one or two lines.
    #[serde(skip)]
    pub(crate) lines: String,
    /// Whether the column holds figures.
    pub(crate) number: bool,
    #[serde(skip)]
    shown: ShownIn,
    #[serde(skip)]
    meaning: &'static str,
}

/// A table's row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// Number of the row's cell, for highlighting.
    pub(crate) cell: Option<u32>,
    /// The fields, as many as there are columns.
    pub(crate) fields: Vec<String>,
}

impl ColumnHead {
    /// A head; a `#` at its end marks a column of figures.
    pub(crate) fn new(head: &str) -> Self {
        let words = head.trim_end_matches('#');
        Self {
            words: words.into(),
            lines: words.replace(' ', "\n"),
            number: head.ends_with('#'),
            shown: ShownIn::Always,
            meaning: "",
        }
    }

    /// Sets the head's lines where they do not break between words.
    pub(crate) fn lines(self, lines: String) -> Self {
        Self { lines, ..self }
    }

    /// Sets the form from which on the column is shown, and what the column means.
    pub(crate) fn shown(self, shown: ShownIn, meaning: &'static str) -> Self {
        Self {
            shown,
            meaning,
            ..self
        }
    }
}

impl Table {
    /// An empty table; a `#` at the end of a head marks a column of figures.
    pub(crate) fn new<'a>(title: &str, heads: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of(title, heads.into_iter().map(ColumnHead::new).collect())
    }

    /// An empty table with these columns.
    pub(crate) fn of(title: &str, columns: Vec<ColumnHead>) -> Self {
        let mut table = Self {
            title: title.into(),
            columns,
            rows: Vec::new(),
            meanings: Vec::new(),
            left_out: None,
            all: 0,
            elsewhere: String::new(),
            note: None,
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

    /// Ends the table; where rows were left out, says so and where to find all of them.
    pub(crate) fn finish(mut self, elsewhere: &str) -> Self {
        elsewhere.clone_into(&mut self.elsewhere);
        self.limit(ROWS);
        self
    }

    /// Adds a sentence on what else is left out.
    pub(crate) fn with_note(mut self, sentence: Option<String>) -> Self {
        self.note = sentence;
        self.limit(ROWS);
        self
    }

    /// Keeps the first `rows` rows, and says how many are left out.
    pub(crate) fn limit(&mut self, rows: usize) {
        self.rows.truncate(rows);
        let shown = self.rows.len();
        let rest = (self.all > shown).then(|| {
            format!(
                "These are the first {shown} of {} rows; all of them: {}",
                self.all, self.elsewhere
            )
        });
        let said: Vec<String> = rest.into_iter().chain(self.note.clone()).collect();
        self.left_out = (!said.is_empty()).then(|| said.join(" "));
    }

    /// Keeps the columns that the form `most` shows; `None` where no column of figures is left.
    pub(crate) fn for_form(self, most: ShownIn) -> Option<Self> {
        self.filter(|head, _| head.shown <= most)
    }

    /// Drops columns of figures in which every field is empty; `None` where no column of figures is left.
    pub(crate) fn with_figures(self) -> Option<Self> {
        self.filter(|head, rows| {
            !head.number || rows.iter().any(|(row, at)| row.fields[*at] != NONE)
        })
    }

    fn filter(mut self, keep: impl Fn(&ColumnHead, &[(&Row, usize)]) -> bool) -> Option<Self> {
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

    /// Collects the meanings of the columns, each once.
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

/// A figure with `digits` decimals, or [`NONE`].
pub(crate) fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NONE.into(), |value| format!("{value:.digits$}"))
}
