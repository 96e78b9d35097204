//! What a chart is to the page: a question, one or more pictures, how to read them, and the
//! numbers behind them as a table.

use minijinja::Value;
use serde::Serialize;

/// Rows of a table before the rest is only counted.
pub(super) const ROWS: usize = 1000;

/// How much of a run is drawn and listed: less of a larger one, so that its page stays small.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Samples of all cells together, as far as the cells are no more than these.
    pub(super) samples: usize,
    /// Cells of a chart.
    pub(super) cells: usize,
    /// Effects of a chart.
    pub(super) effects: usize,
    /// Rows of a table, and lines of a list.
    pub(super) rows: usize,
    /// Bytes of the plan.
    pub(super) plan: usize,
}

impl Limits {
    /// One after the other until the page is small enough.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let halved = (0..8).map(|times| Self {
            samples: 1200 >> times,
            cells: (48 >> times).max(3),
            effects: (60 >> times).max(5),
            rows: (400 >> times).max(10),
            plan: (1 << 16) >> times,
        });
        std::iter::once(Self::NONE).chain(halved)
    }

    /// What a chart and a table have room for.
    const NONE: Self = Self {
        samples: usize::MAX,
        cells: usize::MAX,
        effects: usize::MAX,
        rows: ROWS,
        plan: usize::MAX,
    };
}

/// A question and its pictures.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    /// Unique on the page.
    pub(super) id: String,
    /// What the page's list of its parts calls it; nothing where it does not stand there.
    pub(super) nav: Option<String>,
    /// What is asked.
    pub(super) title: String,
    /// How to read it.
    pub(super) caption: String,
    /// What is not drawn, and where it is.
    pub(super) left_out: Option<String>,
    /// One wide picture, or many small ones.
    pub(super) panels: Vec<Panel>,
    /// Whether the panels are small.
    pub(super) small: bool,
    /// The numbers.
    pub(super) table: Table,
}

/// One picture.
#[derive(Debug, Serialize)]
pub(super) struct Panel {
    /// The id of its label.
    pub(super) id: String,
    /// Whose it is, above a small picture.
    pub(super) label: String,
    /// The cell, for highlighting it.
    pub(super) cell: Option<u32>,
    /// The markup.
    pub(super) svg: Value,
}

/// A table.
#[derive(Debug, Serialize)]
pub(super) struct Table {
    /// What it is a table of.
    pub(super) title: String,
    /// The heads.
    pub(super) columns: Vec<Column>,
    /// The rows.
    pub(super) rows: Vec<Row>,
    /// What is not in it, and where it is.
    pub(super) left_out: Option<String>,
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
#[derive(Debug, Serialize)]
pub(super) struct Column {
    /// Its words.
    pub(super) head: String,
    /// Whether figures stand in it.
    pub(super) number: bool,
}

/// A table's row.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// The cell, for highlighting it.
    pub(super) cell: Option<u32>,
    /// The fields.
    pub(super) fields: Vec<String>,
}

impl Table {
    /// A table; heads that end in `#` are of columns of figures.
    pub(super) fn new<'a>(title: &str, heads: impl IntoIterator<Item = &'a str>) -> Self {
        let column = |head: &str| Column {
            head: head.trim_end_matches('#').into(),
            number: head.ends_with('#'),
        };
        Self {
            title: title.into(),
            columns: heads.into_iter().map(column).collect(),
            rows: Vec::new(),
            left_out: None,
            all: 0,
            elsewhere: String::new(),
            also: None,
        }
    }

    /// Adds a row; beyond [`ROWS`] it is only counted.
    pub(super) fn row(&mut self, cell: Option<u32>, fields: Vec<String>) {
        debug_assert_eq!(fields.len(), self.columns.len(), "{}", self.title);
        self.all += 1;
        if self.rows.len() < ROWS {
            self.rows.push(Row { cell, fields });
        }
    }

    /// Says what did not fit, and where it is.
    pub(super) fn finish(mut self, elsewhere: &str) -> Self {
        elsewhere.clone_into(&mut self.elsewhere);
        self.limit(ROWS);
        self
    }

    /// Says what else is not in it.
    pub(super) fn also(mut self, sentence: Option<String>) -> Self {
        self.also = sentence;
        self.limit(ROWS);
        self
    }

    /// Leaves the first rows.
    pub(super) fn limit(&mut self, rows: usize) {
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
}

/// A figure, or that there is none.
pub(super) fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.digits$}"))
}
