//! What a chart is to the page: a question, one or more pictures, how to read them, and the
//! numbers behind them as a table.

use minijinja::Value;
use serde::Serialize;

/// Rows of a table before the rest is only counted.
pub(super) const ROWS: usize = 1000;

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
        let shown = self.rows.len();
        if self.all > shown {
            let all = self.all;
            self.left_out = Some(format!(
                "These are the first {shown} of {all} rows; all of them: {elsewhere}"
            ));
        }
        self
    }
}

/// A figure, or that there is none.
pub(super) fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.digits$}"))
}
