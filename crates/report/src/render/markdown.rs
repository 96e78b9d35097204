//! A result as GitHub-flavoured Markdown, for a pull request or a wiki: the content of the terminal's
//! output, with the verdicts before the cells.

mod compare;
mod study;

use std::fmt::Write as _;
use std::io::Write;

use wirecost_model::effect::Verdict;
use wirecost_stats::Margin;

use crate::render::format::{Format, FormatError, Terminal, put};
use crate::render::section::Section;
use crate::render::table::{NONE, ShownIn};
use crate::render::verdicts::{VerdictText, compared, verdict_text};
use crate::render::visible::visible;
use crate::render::{
    adaptive, answer, caveats, cells, effects, notes, published, trust, wakeups, words,
};
use crate::result::document::Document;
use crate::result::run::RunResult;

pub use compare::comparison_markdown;
pub(crate) use study::Study;

/// The Markdown format.
#[derive(Debug)]
pub(crate) struct Markdown;

impl Format<RunResult> for Markdown {
    fn option(&self) -> &'static str {
        "markdown"
    }

    fn help(&self) -> &'static str {
        "Markdown for a pull request or a wiki"
    }

    fn write(
        &self,
        result: &RunResult,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        put(to, &markdown(&result.document))
    }
}

/// Prints a result. Every text of the record is escaped, so that none acts as markup, HTML or a mention
/// of a user.
pub fn markdown(doc: &Document) -> String {
    let mut page = Page::default();
    if let Some((label, why)) = trust::line(doc) {
        page.paragraph(&format!("**{label}** {}", text(&why)));
        page.gap();
    }
    page.line(&format!("## {}", text(&notes::title(doc))));
    if let Some(description) = &doc.description {
        page.paragraph(&text(description));
    }
    if let Some(sentence) = notes::behind(doc) {
        page.paragraph(&format!("**{}**", text(&sentence)));
    }
    if let Some(sentence) = adaptive::sentence(doc) {
        page.paragraph(&text(&sentence));
    }
    page.gap();
    page.answer(doc);
    let caveats = caveats::section(doc, true);
    page.section(caveats.as_ref());
    verdicts(doc, &mut page);
    page.section(effects::section(doc, true, DEPENDENCES).as_ref());
    page.section(Some(&cells::section(doc).for_form(ShownIn::InFull)));
    page.section(wakeups::section(doc).as_ref());
    page.section(published::section(doc).as_ref());
    page.heading("Environment");
    page.paragraph(&text(&notes::measures(doc)));
    page.paragraph(&text(&format!("{}.", notes::place(doc, true))));
    page.paragraph(&text(&format!(
        "Started {}, seed {}, wirecost {}, record version {}. To repeat it: the plan.yaml of the run directory.",
        doc.started, doc.seed, doc.program_version, doc.record_version
    )));
    page.0
}

/// Most sentences about effects that depend on another factor's level.
const DEPENDENCES: usize = 12;

#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn gap(&mut self) {
        if !self.0.is_empty() && !self.0.ends_with("\n\n") {
            self.0.push('\n');
        }
    }

    fn paragraph(&mut self, paragraph: &str) {
        self.gap();
        self.line(paragraph);
    }

    fn heading(&mut self, heading: &str) {
        self.gap();
        self.line(&format!("### {heading}"));
        self.gap();
    }

    /// An item of a list, with `lead` in bold.
    fn item(&mut self, lead: &str, rest: &str) {
        let lead = match lead {
            "" => String::new(),
            lead => format!("**{}** ", text(lead)),
        };
        self.line(format!("- {lead}{}", text(rest)).trim_end());
    }

    /// What the run answers, and whether it can be relied on.
    fn answer(&mut self, doc: &Document) {
        for said in answer::sentences(doc, '×') {
            self.item(&said.lead, &said.rest);
        }
        self.item("", &trust::sentence(doc));
    }

    /// A section of the result; empty parts are left out.
    fn section(&mut self, section: Option<&Section>) {
        let Some(section) = section else { return };
        self.heading(&text(&section.heading));
        for sentence in &section.sentences {
            self.paragraph(&text(sentence));
        }
        for table in &section.tables {
            if !table.title.is_empty() {
                self.paragraph(&format!("**{}**", text(&table.title)));
            }
            let heads: Vec<String> = table.columns.iter().map(|head| text(&head.words)).collect();
            let numbers: Vec<bool> = table.columns.iter().map(|head| head.number).collect();
            let rows = table.rows.iter();
            let rows = rows.map(|row| row.fields.iter().map(|field| text(field)).collect());
            self.table(&heads, &numbers, rows);
            if let Some(left_out) = &table.left_out {
                self.paragraph(&text(left_out));
            }
            if !table.meanings.is_empty() {
                self.paragraph(&format!("{}.", text(&table.meanings.join("; "))));
            }
        }
        if !section.items.is_empty() {
            self.gap();
        }
        for item in &section.items {
            self.item(&item.lead, &item.text);
            for line in &item.lines {
                self.line(&format!("  - {}", text(line)));
            }
        }
        for meaning in &section.meanings {
            self.paragraph(&text(meaning));
        }
    }

    /// A table; `numbers` says for each column whether it holds figures.
    fn table(
        &mut self,
        heads: &[String],
        numbers: &[bool],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        self.gap();
        self.line(&format!("| {} |", heads.join(" | ")));
        let sides = numbers
            .iter()
            .map(|number| if *number { "---:" } else { "---" });
        self.line(&format!("| {} |", sides.collect::<Vec<_>>().join(" | ")));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
    }
}

/// Escapes a text for Markdown and HTML, in one line.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // Otherwise a user of the name that follows would be notified of a mention.
            '@' => out.push_str("@<!-- -->"),
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn verdicts(doc: &Document, page: &mut Page) {
    if doc.effects.is_empty() {
        return;
    }
    page.heading("What each change does, other things equal");
    let heads = ["change", "where"].into_iter().map(str::to_owned);
    let figures = doc.figures.iter();
    let heads =
        heads.chain(figures.map(|figure| text(&words::measured(doc, &figure.load, figure.metric))));
    let family = effects::family(doc);
    let rows = compared(doc).into_iter().map(|pair| {
        let change = pair.change;
        let mut row = vec![
            text(&words::contrast(&change.factor, &change.from, &change.to)),
            text(&pair.place),
        ];
        let of = pair.effects.iter();
        row.extend(of.map(|effect| match effect {
            Some(effect) => verdict(&verdict_text(doc, effect, family), effect.verdict),
            None => NONE.into(),
        }));
        row
    });
    let heads: Vec<String> = heads.collect();
    page.table(&heads, &vec![false; heads.len()], rows);
    let margin = Margin::of(doc.repeat.worth);
    page.paragraph(&format!(
        "× is the ratio paired within rounds, \\[ \\] its 95 % interval. **pays**, **costs**: the whole interval is outside the \
         margin, {:.2} to {:.2}; **makes no difference**: the whole interval is within the margin; **gains**, **loses**: the \
         interval excludes 1 and reaches into the margin; **cannot tell yet**: more rounds are needed; **not comparable**: \
         something else differs and decides the figure. For throughput more is better, for CPU less.",
        margin.low, margin.high
    ));
}

fn verdict(worded: &VerdictText, verdict: Verdict) -> String {
    let mut cell = format!("**{verdict}**");
    for part in [&worded.ratio, &worded.interval].into_iter().flatten() {
        cell.push(' ');
        cell.push_str(&text(part));
    }
    // Writing to a string does not fail.
    if let Some(reason) = &worded.reason {
        let _ = write!(cell, "<br>{}", text(reason));
        return cell;
    }
    if let Some(rounds) = &worded.rounds {
        let _ = write!(cell, " ({rounds})");
    }
    for remark in &worded.remarks {
        let _ = write!(cell, "<br>but {}", text(remark));
    }
    for difference in &worded.differences {
        let _ = write!(cell, "<br>note: {}", text(difference));
    }
    cell
}
