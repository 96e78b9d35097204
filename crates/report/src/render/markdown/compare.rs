//! A comparison as Markdown, for a pull request.

use super::{Markdown, Page, text};
use crate::render::comparison as sentences;
use crate::render::effects::words_of;
use crate::render::format::{Format, FormatError, Terminal, put};
use crate::result::compare::{Comparison, Conclusion, Figure};
use std::io::Write;

impl Format<Comparison> for Markdown {
    fn option(&self) -> &'static str {
        "markdown"
    }

    fn help(&self) -> &'static str {
        "Markdown for a pull request"
    }

    fn write(
        &self,
        comparison: &Comparison,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        put(to, &comparison_markdown(comparison))
    }
}

/// Prints a comparison: the conclusion, what differs between the runs, then a row for each figure.
/// Every text of the records is escaped.
pub fn comparison_markdown(comparison: &Comparison) -> String {
    let mut page = Page::default();
    if let Some(trust_warning) = sentences::trust_warning(comparison) {
        page.paragraph(&format!("**{}**", text(&trust_warning)));
        page.gap();
    }
    page.line(&format!("## {}", text(&sentences::title(comparison))));
    let (label, why) = sentences::conclusion(comparison);
    let sign = match comparison.conclusion {
        Conclusion::NoRegression => "✅",
        Conclusion::Regression => "❌",
        Conclusion::NothingComparable | Conclusion::CannotTell => "⚠️",
    };
    page.paragraph(&format!("{sign} **{}** {}", text(&label), text(&why)));
    page.gap();
    for (label, side) in [("Before", &comparison.before), ("After", &comparison.after)] {
        page.line(&format!("- {label}: {}", text(&sentences::side(side))));
    }
    differences(comparison, &mut page);
    if !comparison.notes.is_empty() {
        page.heading("Caveats");
        for note in &comparison.notes {
            page.line(&format!("- {}.", text(note)));
        }
    }
    figures(comparison, &mut page);
    let left_out = sentences::left_out(comparison);
    if !left_out.is_empty() {
        page.heading("Not compared");
        for (fails, line) in left_out {
            let sign = if fails { "❌ " } else { "" };
            page.line(&format!("- {sign}{}", text(&line)));
        }
    }
    page.0
}

fn differences(comparison: &Comparison, page: &mut Page) {
    page.heading("Other differences");
    if comparison.differences.is_empty() {
        page.paragraph("None recorded.");
        return;
    }
    let rows = comparison.differences.iter().map(|difference| {
        vec![
            text(&sentences::difference(difference)),
            text(sentences::value(difference.before.as_ref())),
            text(sentences::value(difference.after.as_ref())),
        ]
    });
    page.table(
        &["what", "before", "after"].map(str::to_owned),
        &[false; 3],
        rows,
    );
}

fn figures(comparison: &Comparison, page: &mut Page) {
    if comparison.cells.is_empty() {
        return;
    }
    page.heading("Cell by cell");
    let sentences = [sentences::counts(comparison), sentences::shifts(comparison)];
    for sentence in sentences.into_iter().flatten() {
        page.line(&format!("- {}", times(&sentence)));
    }
    if !comparison.shifts.is_empty() {
        page.line(&format!("- {}", text(sentences::SHARED)));
    }
    page.line(&format!("- {}", text(sentences::DRIFT)));
    let heads = [
        "cell",
        "figure",
        "before → after",
        "after / before",
        "verdict",
        "corrected",
        "by ranks",
    ];
    let several = sentences::several_loads(comparison);
    let rows = sentences::failing_first(comparison)
        .into_iter()
        .flat_map(|cell| {
            let levels = text(&sentences::cell(comparison, &cell.all_levels));
            cell.figures
                .iter()
                .map(move |figure| row(levels.clone(), several, figure))
        });
    let numbers = [false, false, true, true, false, false, false];
    page.table(&heads.map(str::to_owned), &numbers, rows);
    let how = sentences::how_to_read(comparison);
    page.paragraph(&text(&how.replacen(", x the", ", × the", 1)));
}

fn row(levels: String, several: bool, figure: &Figure) -> Vec<String> {
    let none = || "–".to_owned();
    let judged = &figure.judged;
    let sign = if figure.fails { "❌ " } else { "" };
    let ranks = judged.rank_verdict;
    vec![
        levels,
        text(&sentences::name(several, figure)),
        sentences::medians(figure, "→").unwrap_or_else(none),
        sentences::ratio(figure).map_or_else(none, |ratio| times(&ratio)),
        match figure.not_comparable.as_ref() {
            Some(why) => format!("{sign}**{}**<br>{}", judged.verdict, text(&words_of(why))),
            None => format!("{sign}**{}**", judged.verdict),
        },
        judged.corrected.verdict.to_string(),
        ranks.map_or_else(none, |ranks| ranks.to_string()),
    ]
}

/// Escapes a sentence, with `×` for the x before a ratio.
fn times(sentence: &str) -> String {
    let mut said = String::with_capacity(sentence.len());
    let mut chars = sentence.chars().peekable();
    let mut last = ' ';
    while let Some(c) = chars.next() {
        let digit = chars.peek().is_some_and(char::is_ascii_digit);
        said.push(if c == 'x' && last == ' ' && digit {
            '×'
        } else {
            c
        });
        last = c;
    }
    text(&said)
}
