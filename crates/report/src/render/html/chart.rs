//! A chart of the page: a question as its title, one or more pictures, how to read them, and the
//! numbers as a table.

use minijinja::Value;
use serde::Serialize;

use crate::render::table::{ROWS, Table};

/// Limits of what is drawn and listed, so that the page of a large run stays small.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Samples over all cells; each cell has some even where there are more cells than that.
    pub(super) samples: usize,
    /// Cells in a chart.
    pub(super) cells: usize,
    /// Effects in a chart.
    pub(super) effects: usize,
    /// Rows of a table, and lines of a list.
    pub(super) rows: usize,
    /// Bytes of the plan.
    pub(super) plan: usize,
}

impl Limits {
    /// The limits to try one after the other until the page is small enough.
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

    /// Only the limits that charts and tables have by themselves.
    const NONE: Self = Self {
        samples: usize::MAX,
        cells: usize::MAX,
        effects: usize::MAX,
        rows: ROWS,
        plan: usize::MAX,
    };
}

/// A chart: a question and its pictures.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    /// Id of the chart, unique on the page.
    pub(super) id: String,
    /// Name in the page's navigation; `None` where the chart is not listed there.
    pub(super) nav: Option<String>,
    /// The question that the chart answers.
    pub(super) title: String,
    /// How to read the chart.
    pub(super) caption: String,
    /// What is not drawn, and where to find it.
    pub(super) left_out: Option<String>,
    /// One wide picture, or many small ones.
    pub(super) panels: Vec<Panel>,
    /// Whether the panels are small.
    pub(super) small: bool,
    /// The numbers behind the pictures.
    pub(super) table: Table,
}

/// One picture.
#[derive(Debug, Serialize)]
pub(super) struct Panel {
    /// Id of the panel's label, unique on the page.
    pub(super) id: String,
    /// Title above a small picture.
    pub(super) label: String,
    /// Number of the cell, for highlighting.
    pub(super) cell: Option<u32>,
    /// The picture's markup.
    pub(super) svg: Value,
}
