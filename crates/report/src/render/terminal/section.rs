//! Sections printed for a terminal.

use super::page::{Page, Style, nonbreaking};
use super::table::{Column, print_columns, total_width};
use crate::render::section::{Item, Section};
use crate::render::table::{ColumnHead, NONE, Table};

/// Prints a section under its heading.
pub(super) fn print(section: &Section, page: &mut Page) {
    if !section.heading.is_empty() {
        page.heading(&section.heading);
    }
    for sentence in &section.sentences {
        page.paragraph(sentence);
    }
    for table in &section.tables {
        self::table(table, page);
    }
    items(&section.items, page);
    if !section.meanings.is_empty() {
        page.gap();
    }
    for meaning in &section.meanings {
        page.paragraph(meaning);
    }
}

/// Prints the items of a list.
pub(super) fn items(items: &[Item], page: &mut Page) {
    for item in items {
        let lead = page.paint(Style::Worse, &item.lead);
        let text = format!("{lead} {}", item.text);
        page.paragraph(text.trim());
        for line in &item.lines {
            page.paragraph(&format!("- {line}"));
        }
    }
}

/// Prints a table with its title above its first head, and what its columns mean. Where rows have long names and the
/// table is wider than the terminal, each row is a paragraph.
pub(super) fn table(table: &Table, page: &mut Page) {
    let column = |(at, head): (usize, &ColumnHead)| {
        let lines = match (at, table.title.as_str()) {
            (0, title) if !title.is_empty() => format!("{title}:\n{}", head.words),
            _ => head.lines.clone(),
        };
        let cells = table.rows.iter().map(|row| field(&row.fields[at]));
        if head.number {
            Column::figures(&lines, cells.collect())
        } else {
            Column::text(&lines, cells.collect())
        }
    };
    let columns: Vec<Column> = table.columns.iter().enumerate().map(column).collect();
    page.gap();
    let is_named = columns[0].width() * 2 > page.width();
    if is_named && total_width(&columns) > page.width() {
        for row in &table.rows {
            let figures = table.columns.iter().zip(&row.fields).skip(1);
            let figures =
                figures.map(|(head, text)| nonbreaking(&format!("{} {}", head.words, field(text))));
            let figures: Vec<String> = figures.collect();
            page.paragraph(&format!("{}: {}", row.fields[0], figures.join(", ")));
        }
    } else {
        print_columns(columns, page);
    }
    if let Some(left_out) = &table.left_out {
        page.paragraph(left_out);
    }
    if !table.meanings.is_empty() {
        page.gap();
        page.paragraph(&format!("{}.", table.meanings.join("; ")));
    }
}

/// A field with the terminal's signs: `-` for no figure, `x` for `×`.
fn field(text: &str) -> String {
    match text {
        NONE => "-".into(),
        text => text.replace('×', "x"),
    }
}
