//! The table of cells, or one for each load.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle};

use super::page::{Page, visible_width};
use crate::result::document::{CellLoad, CellResult, Document};
use crate::result::loads::named;
use crate::say::words;
use crate::say::{columns, loads};

/// Spaces between columns.
const GAP: u16 = 2;

/// What to show where there is no figure.
pub(super) const NONE: &str = "-";

#[derive(Debug, Clone)]
pub(super) struct Column {
    /// One or two lines.
    pub(super) head: String,
    /// Whether it is printed in full alone.
    pub(super) only_full: bool,
    /// What it shows, for the text below.
    pub(super) meaning: &'static str,
    pub(super) cells: Vec<String>,
    pub(super) align: CellAlignment,
    /// Whether verdicts stand in it.
    pub(super) verdicts: bool,
}

impl Column {
    /// Whether verdicts stand in it.
    fn is_verdict(&self) -> bool {
        self.verdicts
    }

    fn width(&self) -> usize {
        let lines = self
            .head
            .lines()
            .chain(self.cells.iter().map(String::as_str));
        lines.map(visible_width).max().unwrap_or(0)
    }
}

/// Prints a table of the cells, or one for each load; in full with every column and what it means.
pub(super) fn print(doc: &Document, full: bool, page: &mut Page) {
    for columns in tables(doc) {
        let mut columns: Vec<Column> = columns
            .into_iter()
            .filter(|column| full || !column.only_full)
            .collect();
        if !full {
            for column in &mut columns {
                column.meaning = "";
            }
        }
        page.gap();
        print_columns(columns, None, page);
    }
    if let Some(says) = loads::shared(doc).filter(|_| full) {
        page.paragraph(says);
    }
}

/// Prints columns, as many beside each other as there is room for, and what they mean. Where they do not fit, the table
/// is continued below, its first columns of text repeated.
pub(super) fn print_columns(mut columns: Vec<Column>, says: Option<&str>, page: &mut Page) {
    let long = |column: &Column| Column {
        head: column.head.replace("-\n", "").replace('\n', " "),
        ..column.clone()
    };
    let in_one_line: Vec<Column> = columns.iter().map(long).collect();
    if total_width(&in_one_line) <= page.width() {
        columns = in_one_line;
    }
    let legend: Vec<&str> = columns
        .iter()
        .map(|column| column.meaning)
        .filter(|meaning| !meaning.is_empty())
        .collect();
    let legend = (!legend.is_empty()).then(|| format!("{}.", legend.join("; ")));
    for part in wrapped(columns, page.width()) {
        page.gap();
        for line in render(&part, page.width()).lines() {
            // Only the last column's padding hangs over the edge.
            let line: String = line.chars().take(page.width()).collect();
            page.line(&line);
        }
    }
    let legend = legend.into_iter().chain(says.map(str::to_owned));
    for text in legend {
        page.gap();
        page.paragraph(&text);
    }
}

/// The columns in parts that fit the width: the leading columns of text in each of them.
fn wrapped(columns: Vec<Column>, width: usize) -> Vec<Vec<Column>> {
    let text = columns
        .iter()
        .take_while(|column| column.align == CellAlignment::Left && !column.is_verdict());
    let (text, mut parts) = (text.count(), Vec::<Vec<Column>>::new());
    let mut columns = columns.into_iter();
    let labels: Vec<Column> = columns.by_ref().take(text).collect();
    let mut part = labels.clone();
    for column in columns {
        part.push(column);
        if total_width(&part) > width && part.len() > text + 1 {
            let next = part.split_off(part.len() - 1);
            parts.push(part);
            part = [labels.clone(), next].concat();
        }
    }
    parts.push(part);
    parts
}

pub(super) fn total_width(columns: &[Column]) -> usize {
    let widths: usize = columns
        .iter()
        .map(|column| column.width() + GAP as usize)
        .sum();
    widths.saturating_sub(GAP as usize)
}

fn render(columns: &[Column], width: usize) -> Table {
    let mut table = Table::new();
    // The last column's padding may hang over the edge: it is cut off.
    let width = u16::try_from(width).unwrap_or(u16::MAX).saturating_add(GAP);
    table
        .load_style(TableStyle::new())
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .set_header(columns.iter().map(|column| column.head.as_str()));
    let rows = columns
        .iter()
        .map(|column| column.cells.len())
        .max()
        .unwrap_or(0);
    for row in 0..rows {
        table.add_row(columns.iter().map(|column| column.cells[row].as_str()));
    }
    for (column, ours) in table.column_iter_mut().zip(columns) {
        column.set_padding((0, GAP));
        column.set_cell_alignment(ours.align);
    }
    table
}

/// A table of all figures, or one for each load.
fn tables(doc: &Document) -> Vec<Vec<Column>> {
    if loads::plain(doc) {
        return vec![columns(doc)];
    }
    named(doc)
        .into_iter()
        .map(|(name, workload)| of_load(doc, name, loads::columns(workload)))
        .collect()
}

fn columns(doc: &Document) -> Vec<Column> {
    let mut columns = levels(doc);
    columns.extend(columns::of_cells(doc).iter().map(|of| {
        let field = |cell| (of.field)(cell).unwrap_or_else(|| NONE.into());
        Column {
            cells: doc.cells.iter().map(field).collect(),
            ..Column::figures(&of.lines(), of.only_full, of.meaning)
        }
    }));
    columns.push(valid(doc));
    columns
}

/// The figures of one load in the cells that run it; its name stands above the levels where there are several.
fn of_load(doc: &Document, name: &str, of: &[loads::Column]) -> Vec<Column> {
    let of_cell = |cell: &CellResult, field: fn(&CellLoad) -> Option<String>| {
        field(cell.loads.iter().find(|load| load.name == name)?)
    };
    let figures = of.iter().map(|of| Column {
        cells: doc
            .cells
            .iter()
            .map(|cell| of_cell(cell, of.field).unwrap_or_else(|| NONE.into()))
            .collect(),
        ..Column::figures(&of.lines(), of.only_full, of.meaning)
    });
    let mut columns = levels(doc);
    let labels = columns.len();
    columns.extend(figures.filter(Column::has_figures));
    columns.push(valid(doc));
    let runs: Vec<bool> = doc
        .cells
        .iter()
        .map(|cell| cell.loads.iter().any(|load| load.name == name))
        .collect();
    for column in &mut columns {
        let mut runs = runs.iter();
        column.cells.retain(|_| runs.next() == Some(&true));
    }
    // What is the same in all its cells is no column: the factor of loads.
    let mut at = 0;
    columns.retain(|column| {
        at += 1;
        let varies = column.cells.windows(2).any(|two| two[0] != two[1]);
        at > labels || varies || column.cells.len() < 2
    });
    if let Some(first) = columns.first_mut().filter(|_| named(doc).len() > 1) {
        first.head = format!(
            "{name}:\n{}",
            first.head.replace("-\n", "").replace('\n', " ")
        );
    }
    columns
}

impl Column {
    /// An empty column of figures.
    pub(super) fn figures(head: &str, only_full: bool, meaning: &'static str) -> Self {
        Self {
            head: head.into(),
            only_full,
            meaning,
            cells: Vec::new(),
            align: CellAlignment::Right,
            verdicts: false,
        }
    }

    fn has_figures(&self) -> bool {
        self.cells.iter().any(|figure| figure != NONE)
    }
}

pub(super) fn levels(doc: &Document) -> Vec<Column> {
    let keys: Vec<&String> = if doc.factors.is_empty() {
        let first = doc.cells.first();
        first.map_or_else(Vec::new, |cell| cell.all_levels.keys().collect())
    } else {
        doc.factors.iter().map(|factor| &factor.key).collect()
    };
    let constant = |key: &str| !matches!(key, "guest_mtu" | "encapsulation" | "offload");
    keys.into_iter()
        .filter(|key| !doc.factors.is_empty() || !constant(key))
        .map(|key| Column {
            align: CellAlignment::Left,
            cells: doc
                .cells
                .iter()
                .map(|cell| {
                    cell.all_levels
                        .get(key)
                        .cloned()
                        .unwrap_or_else(|| NONE.into())
                })
                .collect(),
            ..Column::figures(&words::column(key), false, "")
        })
        .collect()
}

/// How many samples count.
fn valid(doc: &Document) -> Column {
    let cells = doc.cells.iter().map(|cell| {
        if cell.skipped.is_some() {
            "skipped".into()
        } else if cell.valid == cell.samples {
            cell.valid.to_string()
        } else {
            format!("{}/{}", cell.valid, cell.samples)
        }
    });
    Column {
        cells: cells.collect(),
        ..Column::figures("valid", false, "valid: samples that count, of those taken")
    }
}
