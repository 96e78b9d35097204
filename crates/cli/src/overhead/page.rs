//! Formats paragraphs and tables that fit a width.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use textwrap::WordSeparator::AsciiSpace;
use textwrap::WordSplitter::NoHyphenation;

/// Smallest width in columns; on a narrower terminal, lines are longer than the terminal is wide.
const NARROWEST: usize = 40;
/// Number of spaces between columns.
const GAP: usize = 2;

/// The text of a page so far.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    width: usize,
}

/// A column of a table.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) head: String,
    /// The column with the highest rank is left out first; columns of rank 0 are never left out.
    pub(super) rank: u8,
    pub(super) align: CellAlignment,
    pub(super) cells: Vec<String>,
}

impl Column {
    fn width(&self) -> usize {
        let cells = self
            .cells
            .iter()
            .map(String::as_str)
            .chain(self.head.lines());
        cells.map(textwrap::core::display_width).max().unwrap_or(0)
    }
}

impl Page {
    pub(super) fn new(width: usize) -> Self {
        Self {
            text: String::new(),
            width: width.max(NARROWEST),
        }
    }

    /// Adds an empty line.
    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    /// Adds a paragraph; lines after the first are indented by `hanging` columns.
    pub(super) fn paragraph(&mut self, text: &str, hanging: usize) {
        let indent = " ".repeat(hanging);
        let options = textwrap::Options::new(self.width)
            .subsequent_indent(&indent)
            .break_words(false)
            .word_separator(AsciiSpace)
            .word_splitter(NoHyphenation);
        for line in textwrap::wrap(text, options) {
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    /// Adds a table. Columns are left out by rank until the others fit; if that is not enough, the last column is
    /// wrapped.
    /// Returns the heads of the columns that were left out.
    pub(super) fn table(&mut self, mut columns: Vec<Column>) -> Vec<String> {
        let mut left_out = Vec::new();
        while total_width(&columns) > self.width {
            let Some(least) = (0..columns.len())
                .max_by_key(|&at| columns[at].rank)
                .filter(|&at| columns[at].rank > 0)
            else {
                break;
            };
            left_out.push(columns.remove(least).head.replace('\n', " "));
        }
        left_out.reverse();
        let over = total_width(&columns).saturating_sub(self.width);
        if let Some(last) = columns.last_mut() {
            let room = last.width().saturating_sub(over).max(1);
            for cell in &mut last.cells {
                let options = textwrap::Options::new(room).word_separator(AsciiSpace);
                *cell = textwrap::fill(cell, options);
            }
        }
        for line in render(&columns).lines() {
            // Only the padding of the last column exceeds the width.
            let line: String = line.chars().take(self.width).collect();
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
        left_out
    }

    pub(super) fn finish(self) -> String {
        self.text.trim_end().to_owned()
    }
}

fn total_width(columns: &[Column]) -> usize {
    let widths: usize = columns.iter().map(|column| column.width() + GAP).sum();
    widths.saturating_sub(GAP)
}

fn render(columns: &[Column]) -> Table {
    let mut table = Table::new();
    table
        .load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')))
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(columns.iter().map(|column| column.head.as_str()));
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        table.add_row(columns.iter().map(|column| column.cells[row].as_str()));
    }
    for (column, ours) in table.column_iter_mut().zip(columns) {
        // The other space of the gap is where the line below the head has its junction.
        column.set_padding((0, 1));
        column.set_cell_alignment(ours.align);
    }
    table
}
