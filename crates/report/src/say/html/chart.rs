//! What a chart is to the page: a question, one or more pictures, how to read them, and the
//! numbers behind them as a table.

use minijinja::Value;
use serde::Serialize;

use crate::say::table::{ROWS, Table};

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
