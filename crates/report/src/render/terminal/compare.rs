//! A comparison printed for a terminal.

use std::fmt::Write as _;
use std::io::Write;

use wirecost_model::effect::Verdict;

use super::Text;
use super::page::{Page, Style, nonbreaking};
use crate::render::comparison as sentences;
use crate::render::format::{Format, FormatError, Terminal, put};
use crate::render::visible::visible;
use crate::result::compare::{Comparison, Conclusion, Figure};

impl Format<Comparison> for Text {
    fn option(&self) -> &'static str {
        "text"
    }

    fn help(&self) -> &'static str {
        "Text for a terminal"
    }

    fn write(
        &self,
        comparison: &Comparison,
        options: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        put(to, &comparison_terminal(comparison, options))
    }
}

/// Prints a comparison: differences between the runs, a summary, every figure, and the conclusion. Every
/// line fits the width, except where there is no space to break at (a path).
pub fn comparison_terminal(comparison: &Comparison, options: Terminal) -> String {
    let mut page = Page::new(options);
    if let Some(trust_warning) = sentences::trust_warning(comparison) {
        page.paragraph(&page.paint_words(Style::Bad, &plain(&trust_warning)));
    }
    let title = page.paint(Style::Bold, &plain(&sentences::title(comparison)));
    page.paragraph(&title);
    for (label, side) in [
        ("before:", &comparison.before),
        ("after:", &comparison.after),
    ] {
        page.paragraph(&format!("{label} {}", plain(&sentences::side(side))));
    }
    differences(comparison, &mut page);
    for note in &comparison.notes {
        let label = page.paint(Style::Worse, "Note:");
        page.paragraph(&format!("{label} {}.", plain(note)));
    }
    if !comparison.cells.is_empty() {
        page.heading("In short");
        let sentences = [sentences::counts(comparison), sentences::shifts(comparison)];
        for sentence in sentences.into_iter().flatten() {
            page.paragraph(&plain(&sentence));
        }
        if !comparison.shifts.is_empty() {
            page.paragraph(sentences::SHARED);
        }
        page.paragraph(sentences::DRIFT);
        page.heading("Cell by cell");
    }
    let several = sentences::several_loads(comparison);
    for cell in sentences::failing_first(comparison) {
        page.paragraph(&plain(&sentences::cell(comparison, &cell.all_levels)));
        for figure in &cell.figures {
            let line = line(figure, several, &page);
            page.paragraph(&line);
        }
    }
    let left_out = sentences::left_out(comparison);
    if !left_out.is_empty() {
        page.heading("Not compared");
        for (fails, line) in left_out {
            let fails = if fails {
                page.paint(Style::Bad, " - fails")
            } else {
                String::new()
            };
            page.paragraph(&format!("- {}{fails}", plain(&line)));
        }
    }
    page.gap();
    if !comparison.cells.is_empty() {
        page.paragraph(&sentences::how_to_read(comparison));
    }
    let (label, why) = sentences::conclusion(comparison);
    let style = match comparison.conclusion {
        Conclusion::NoRegression => Style::Good,
        Conclusion::Regression | Conclusion::NothingComparable | Conclusion::CannotTell => {
            Style::Bad
        }
    };
    let label = page.paint(style, &label);
    page.paragraph(&format!("{label} {why}"));
    page.finish()
}

fn differences(comparison: &Comparison, page: &mut Page) {
    page.heading("Other differences");
    if comparison.differences.is_empty() {
        page.paragraph("none recorded");
    }
    for difference in &comparison.differences {
        page.paragraph(&format!(
            "- {}: {} -> {}",
            plain(&sentences::difference(difference)),
            plain(sentences::value(difference.before.as_ref())),
            plain(sentences::value(difference.after.as_ref()))
        ));
    }
    page.gap();
}

/// The line of a figure: `- throughput 4.90 -> 4.41 Gbit/s, x0.90 [0.89, 0.91] - costs`.
fn line(figure: &Figure, several: bool, page: &Page) -> String {
    let name = sentences::name(several, figure);
    let name = name
        .trim_end_matches(" per Gbit/s")
        .trim_end_matches(" per transaction")
        .trim_end_matches(" per I/O");
    let mut line = format!("- {name}");
    if let Some(medians) = sentences::medians(figure, "->") {
        let unit = match figure.unit.strip_prefix("% of a core") {
            Some(rest) => format!("%{rest},"),
            None => format!(" {},", figure.unit),
        };
        line.push(' ');
        line.push_str(&nonbreaking(&(medians + &unit)));
    }
    if let Some(ratio) = sentences::ratio(figure) {
        line.push(' ');
        line.push_str(&nonbreaking(&ratio));
    }
    let style = match (figure.fails, figure.judged.verdict) {
        (true, _) | (_, Verdict::Costs) => Style::Bad,
        (_, Verdict::Pays) => Style::Good,
        (_, Verdict::Gains) => Style::Better,
        (_, Verdict::Loses) => Style::Worse,
        (_, Verdict::MakesNoDifference | Verdict::CannotTellYet | Verdict::NotComparable) => {
            Style::Dim
        }
    };
    let verdict = page.paint(style, &figure.judged.verdict.to_string());
    // Writing to a string does not fail.
    let _ = write!(line, " {}{verdict}", nonbreaking("- "));
    let beside = sentences::notes(figure);
    if !beside.is_empty() {
        let _ = write!(line, " ({})", beside.join("; "));
    }
    line
}

/// The text in one line, control characters made visible, so that it cannot control the terminal.
fn plain(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}
