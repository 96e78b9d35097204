//! Tables of text that fit the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableStyle};

use super::page::{Page, visible_width};

/// Spaces between columns.
const GAP: u16 = 2;

#[derive(Debug, Clone)]
pub(super) struct Column {
    /// The head, in one or two lines.
    pub(super) head: String,
    pub(super) cells: Vec<String>,
    pub(super) align: CellAlignment,
    /// Whether the column holds verdicts.
    pub(super) verdicts: bool,
}

impl Column {
    /// A column of figures.
    pub(super) fn figures(head: &str, cells: Vec<String>) -> Self {
        Self {
            head: head.into(),
            cells,
            align: CellAlignment::Right,
            verdicts: false,
        }
    }

    /// A column of words.
    pub(super) fn text(head: &str, cells: Vec<String>) -> Self {
        Self {
            align: CellAlignment::Left,
            ..Self::figures(head, cells)
        }
    }

    pub(super) fn width(&self) -> usize {
        let lines = self
            .head
            .lines()
            .chain(self.cells.iter().map(String::as_str));
        lines.map(visible_width).max().unwrap_or(0)
    }
}

/// Prints columns, as many side by side as the terminal has room for. The rest follows below, with the
/// leading columns of text repeated.
pub(super) fn print_columns(mut columns: Vec<Column>, page: &mut Page) {
    let long = |column: &Column| Column {
        head: column.head.replace("-\n", "").replace('\n', " "),
        ..column.clone()
    };
    let in_one_line: Vec<Column> = columns.iter().map(long).collect();
    if total_width(&in_one_line) <= page.width() {
        columns = in_one_line;
    }
    for part in wrapped(columns, page.width()) {
        page.gap();
        for line in render(&part, page.width()).lines() {
            // Only the last column's padding is beyond the terminal's width.
            let line: String = line.chars().take(page.width()).collect();
            page.line(&line);
        }
    }
}

/// Splits the columns into parts that fit the width, each with the leading columns of text.
fn wrapped(columns: Vec<Column>, width: usize) -> Vec<Vec<Column>> {
    let text = columns
        .iter()
        .take_while(|column| column.align == CellAlignment::Left && !column.verdicts);
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
    // The last column's padding may go beyond the width: it is cut off.
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
