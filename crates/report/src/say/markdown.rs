//! A result as GitHub-flavoured Markdown, for a pull request or a wiki: what the terminal says,
//! the verdicts first.

mod compare;
mod study;

use std::fmt::Write as _;
use std::io::Write;

use wirecost_stats::Margin;

use crate::result::document::EffectResult;
use crate::result::document::{CellResult, Document};
use crate::result::loads::named;
use crate::result::run::RunResult;
use crate::result::trust::marked;
use crate::say::effects;
use crate::say::format::{Format, FormatError, Terminal, put};
use crate::say::visible::visible;
use crate::say::{
    answer, column, columns, digits, loads, notes, skipped, trust, until, validity, words,
};

pub use compare::comparison_markdown;
pub(crate) use study::Study;
use study::comparisons;

/// GitHub-flavoured Markdown.
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

/// Prints a result. Every text of the record is escaped: it is shown as it is, and neither markup,
/// nor HTML, nor a mention of a user.
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
    if let Some(sentence) = until::sentence(doc) {
        page.paragraph(&text(&sentence));
    }
    page.gap();
    for said in answer::sentences(doc, '×') {
        let lead = match said.lead.as_str() {
            "" => String::new(),
            lead => format!("**{}** ", text(lead)),
        };
        page.line(&format!("- {lead}{}", text(&said.rest)));
    }
    page.line(&format!("- {}", text(&trust::sentence(doc))));
    oddities(doc, &mut page);
    verdicts(doc, &mut page);
    dependences(doc, &mut page);
    cells(doc, &mut page);
    published(doc, &mut page);
    page.heading("Environment");
    page.paragraph(&text(notes::measures(doc)));
    page.paragraph(&text(&format!("{}.", notes::place(doc, true))));
    page.paragraph(&text(&format!(
        "Started {}, seed {}, wirecost {}, record version {}. To repeat it: the plan.yaml of the run directory.",
        doc.started, doc.seed, doc.program_version, doc.record_version
    )));
    page.0
}

/// Sentences about what depends on what.
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

    /// A table; heads that end in `#` are of columns of figures.
    fn table(&mut self, heads: &[String], rows: impl IntoIterator<Item = Vec<String>>) {
        self.gap();
        let names = heads.iter().map(|head| head.trim_end_matches('#'));
        self.line(&format!("| {} |", names.collect::<Vec<_>>().join(" | ")));
        let side = |head: &String| if head.ends_with('#') { "---:" } else { "---" };
        let sides: Vec<&str> = heads.iter().map(side).collect();
        self.line(&format!("| {} |", sides.join(" | ")));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
    }
}

/// Text as it is, in one line: no character of it means anything to Markdown or HTML.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A name behind it would be told that it was mentioned.
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

fn oddities(doc: &Document, page: &mut Page) {
    let invalid = notes::invalid(doc);
    let marked = marked(doc);
    let missing = validity::missing(doc);
    let findings = validity::sentences(doc);
    let general = effects::for_all(doc);
    let quiet = findings.is_empty() && doc.warnings.is_empty() && general.is_empty();
    if invalid.is_none() && marked.is_none() && missing.is_none() && quiet {
        return;
    }
    page.heading("Caveats");
    if let Some(label) = invalid {
        page.line(&format!("- **{}**", text(&label)));
        for line in notes::invalid_first(doc) {
            page.line(&format!("  - {}", text(&line)));
        }
    }
    for sentence in missing
        .iter()
        .chain(&marked)
        .chain(&findings)
        .chain(&general)
    {
        page.line(&format!("- {}", text(sentence)));
    }
    for warning in &doc.warnings {
        page.line(&format!("- {}.", text(warning)));
    }
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
    let same = |a: &EffectResult, b: &EffectResult| {
        (&a.factor, &a.from, &a.to, &a.where_) == (&b.factor, &b.from, &b.to, &b.where_)
    };
    let rows = doc.effects.chunk_by(same).map(|pair| {
        let first = &pair[0];
        let mut row = vec![
            text(&words::contrast(&first.factor, &first.from, &first.to)),
            text(&words::levels(&doc.factors, &first.where_)),
        ];
        row.extend(doc.figures.iter().map(|figure| {
            let is_it = |effect: &&EffectResult| {
                effect.metric == figure.metric && effect.load == figure.load
            };
            let effect = pair.iter().find(is_it);
            effect.map_or_else(|| "–".into(), |effect| verdict(doc, effect))
        }));
        row
    });
    page.table(&heads.collect::<Vec<_>>(), rows);
    let margin = Margin::of(doc.repeat.worth);
    page.paragraph(&format!(
        "× is the ratio paired within rounds, \\[ \\] its 95 % interval. **pays**, **costs**: the whole interval is outside the \
         margin, {:.2} to {:.2}; **makes no difference**: the whole interval is within the margin; **gains**, **loses**: the \
         interval excludes 1 and reaches into the margin; **cannot tell yet**: more rounds are needed; **not comparable**: \
         something else differs and decides the figure. For throughput more is better, for CPU less.",
        margin.low, margin.high
    ));
}

/// What one factor does only with some level of another.
fn dependences(doc: &Document, page: &mut Page) {
    let depends = effects::dependences(doc, true);
    if depends.is_empty() {
        return;
    }
    page.heading("Where one change depends on another");
    for sentence in depends.iter().take(DEPENDENCES) {
        page.line(&format!("- {}", text(sentence)));
    }
    if depends.len() > DEPENDENCES {
        let more = depends.len() - DEPENDENCES;
        page.line(&format!("- and {more} more, in the JSON document"));
    }
}

fn verdict(doc: &Document, effect: &EffectResult) -> String {
    let mut said = format!("**{}**", effect.verdict);
    if let Some(ratio) = digits::ratio_and_interval(effect.ratio, effect.low, effect.high) {
        // Writing to a string does not fail.
        let _ = write!(said, " {}", text(&ratio.replacen('x', "×", 1)));
    }
    if let Some(reason) = effects::reason(effect) {
        let _ = write!(said, "<br>{}", text(&reason));
        return said;
    }
    if effect.rounds < doc.rounds_done {
        let _ = write!(said, " ({} of {} rounds)", effect.rounds, doc.rounds_done);
    }
    for remark in effects::remarks(effect, effects::family(doc)) {
        let _ = write!(said, "<br>but {}", text(&remark));
    }
    for difference in effects::differences(effect) {
        let _ = write!(said, "<br>note: {}", text(&difference));
    }
    said
}

fn cells(doc: &Document, page: &mut Page) {
    page.heading("Cells");
    if !loads::plain(doc) {
        cells_by_load(doc, page);
        return;
    }
    let columns = columns::of_cells(doc);
    let heads = columns.iter().map(|column| format!("{}#", column.head));
    let heads = ["cell".to_owned()].into_iter().chain(heads);
    let heads: Vec<String> = heads.chain(["valid#".to_owned()]).collect();
    let rows = doc.cells.iter().map(|cell| {
        let mut row = vec![text(&words::cell(doc, cell))];
        let fields = columns.iter().map(|column| (column.field)(cell));
        row.extend(fields.map(|field| field.unwrap_or_else(|| "–".into())));
        row.push(skipped::or_valid(cell));
        row
    });
    page.table(&heads, rows);
    page.paragraph(&format!("{}.", column::meanings(&columns).join("; ")));
}

/// A row for each load of each cell.
fn cells_by_load(doc: &Document, page: &mut Page) {
    for (name, workload) in named(doc) {
        let of = |cell: &CellResult| -> Option<usize> {
            cell.loads.iter().position(|load| load.name == name)
        };
        let columns: Vec<loads::Column> = loads::columns(workload)
            .iter()
            .copied()
            .filter(|column| {
                let mut loads = doc
                    .cells
                    .iter()
                    .filter_map(|cell| cell.loads.get(of(cell)?));
                loads.any(|load| (column.field)(load).is_some())
            })
            .collect();
        let heads = [format!("{} ({})", text(name), workload.name())].into_iter();
        let heads = heads.chain(columns.iter().map(|column| format!("{}#", column.head)));
        let heads: Vec<String> = heads.chain(["valid#".to_owned()]).collect();
        let rows = doc.cells.iter().filter_map(|cell| {
            let load = &cell.loads[of(cell)?];
            let mut row = vec![text(&words::cell(doc, cell))];
            let fields = columns.iter().map(|column| (column.field)(load));
            row.extend(fields.map(|field| field.unwrap_or_else(|| "–".into())));
            row.push(skipped::or_valid(cell));
            Some(row)
        });
        page.table(&heads, rows);
        page.paragraph(&format!("{}.", column::meanings(&columns).join("; ")));
    }
    if let Some(shared) = loads::shared(doc) {
        page.paragraph(shared);
    }
}

fn published(doc: &Document, page: &mut Page) {
    let Some(published) = &doc.published else {
        return;
    };
    page.heading("Compared with published figures");
    if let Some(title) = &published.title {
        page.paragraph(&format!("**{}**", text(title)));
    }
    page.paragraph(&text(&published.source));
    if published.tally.all() > 0 {
        comparisons(doc, published, page);
    }
    if published.ratios.is_empty() {
        return;
    }
    let heads = ["change", "published#", "here#"].map(str::to_owned);
    let times = |ratio: String| text(&ratio.replacen('x', "×", 1));
    let rows = published.ratios.iter().map(|ratio| {
        let here = digits::ratio_and_interval(ratio.here, ratio.low, ratio.high);
        vec![
            text(&notes::published_contrast(doc, ratio)),
            times(digits::ratio(ratio.published)),
            here.map_or_else(|| "not measured".into(), times),
        ]
    });
    page.table(&heads, rows);
    page.gap();
    for note in &published.notes {
        page.line(&format!("- {}", text(&notes::published_note(doc, note))));
    }
}
