//! Tables to paste into a document.

use std::fmt::Write as _;

use super::cells::{Line, lines};
use super::{by, head};
use crate::report::Report;

/// One table, a line for each row and opponent.
pub(crate) fn markdown(report: &Report) -> String {
    let mut text = String::new();
    for line in head(report).lines() {
        let _ = writeln!(text, "{line}  ");
    }
    text.push_str(
        "\n| row | beside | ours / theirs [95 %] | medians | sender CPU | receiver CPU | |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in &report.rows {
        for line in lines(row) {
            let _ = match line {
                Line::Figures(cells) => writeln!(
                    text,
                    "| {}{} | {} | {} | {} | {} | {} | {} |",
                    row.name,
                    by(row.cpu),
                    cells.opponent,
                    cells.figure.ratio,
                    cells.figure.medians,
                    cells.sender.ratio,
                    cells.receiver.ratio,
                    cells.verdict
                ),
                Line::Words { opponent, words } => {
                    writeln!(text, "| {} | {opponent} | {words} | | | | |", row.name)
                }
            };
        }
    }
    text
}
