//! The verdicts as a matrix: a row for each change and the other factors' levels, a column for each figure.

use wirecost_model::effect::Verdict;
use wirecost_model::load::Workload;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::units::format_fraction;

use super::page::{Page, Style};
use super::table::{Column, print_columns, total_width};
use crate::render::{digits, effects, verdicts, words};
use crate::result::document::{Document, EffectResult};
use crate::result::loads::named;

/// The sign of a verdict, in Unicode or ASCII.
const fn sign(verdict: Verdict, ascii: bool) -> &'static str {
    match verdict {
        _ if !ascii => verdicts::sign(verdict),
        Verdict::Pays => "+",
        Verdict::Costs => "-",
        Verdict::Gains => "(+)",
        Verdict::Loses => "(-)",
        Verdict::MakesNoDifference => "=",
        Verdict::CannotTellYet => "?",
        Verdict::NotComparable => "!",
    }
}

/// The style in which a verdict is printed.
pub(super) const fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Pays => Style::Good,
        Verdict::Costs => Style::Bad,
        Verdict::Gains => Style::Better,
        Verdict::Loses => Style::Worse,
        Verdict::MakesNoDifference | Verdict::CannotTellYet | Verdict::NotComparable => Style::Dim,
    }
}

/// Prints a matrix for each load, and what its signs mean.
pub(super) fn print(doc: &Document, page: &mut Page) {
    if doc.effects.is_empty() {
        return;
    }
    let (named, compared) = (named(doc), verdicts::compared(doc));
    for (load, _) in &named {
        let figures: Vec<&Figure> = doc
            .figures
            .iter()
            .filter(|figure| figure.load == *load && is_shown(figure.metric))
            .collect();
        let shown = |effect: &&EffectResult| effect.load == *load && is_shown(effect.metric);
        let rows: Vec<Vec<&EffectResult>> = compared
            .iter()
            .map(|pair| {
                pair.effects
                    .iter()
                    .flatten()
                    .copied()
                    .filter(shown)
                    .collect()
            })
            .filter(|row: &Vec<&EffectResult>| !row.is_empty())
            .collect();
        if rows.is_empty() {
            continue;
        }
        page.gap();
        let name = (named.len() > 1).then_some(*load);
        one(doc, name, &figures, &rows, page);
    }
    legend(doc, page);
}

/// Whether a metric is in the matrix. Those that another metric shows as well are in the full report alone.
const fn is_shown(metric: Metric) -> bool {
    !matches!(metric, Metric::Datagrams | Metric::LatencyP999)
}

fn one(
    doc: &Document,
    name: Option<&str>,
    figures: &[&Figure],
    rows: &[Vec<&EffectResult>],
    page: &mut Page,
) {
    let place = |effect: &EffectResult| match words::levels(&doc.factors, &effect.where_) {
        place if place.is_empty() => String::new(),
        place => place.replace("guest MTU ", ""),
    };
    let change = |at: usize| {
        let effect = rows[at][0];
        let first = at == 0 || {
            let before = rows[at - 1][0];
            (&before.factor, &before.to) != (&effect.factor, &effect.to)
        };
        let text = words::change(&effect.factor, &effect.from, &effect.to);
        if first { text } else { String::new() }
    };
    let changes: Vec<String> = (0..rows.len()).map(change).collect();
    let places: Vec<String> = rows.iter().map(|row| place(row[0])).collect();
    let of_figures: Vec<Column> = figures
        .iter()
        .map(|figure| Column {
            verdicts: true,
            ..Column::text(
                head(doc, figure),
                rows.iter()
                    .map(|row| {
                        let found = row.iter().find(|effect| effect.metric == figure.metric);
                        found.map_or_else(|| "-".to_owned(), |effect| field(effect, page.ascii()))
                    })
                    .collect(),
            )
        })
        .collect();
    let title = name.unwrap_or("change");
    let mut columns = vec![
        Column::text(title, changes.clone()),
        Column::text("where", places.clone()),
    ];
    columns.extend(of_figures);
    if total_width(&columns) > page.width() {
        // Where the table is too wide, each change is a line of its own, with the other factors' levels below it.
        let mut labels = Vec::new();
        let mut origin = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            if !change.is_empty() && !places[at].is_empty() {
                labels.push(change.clone());
                origin.push(None);
            }
            let label = if places[at].is_empty() {
                change.clone()
            } else {
                format!("  {}", places[at])
            };
            labels.push(label);
            origin.push(Some(at));
        }
        columns.remove(0);
        for column in &mut columns[1..] {
            let cells = origin
                .iter()
                .map(|at| at.map_or_else(String::new, |at| column.cells[at].clone()));
            column.cells = cells.collect();
        }
        columns[0] = Column::text(title, labels);
    }
    print_columns(columns, page);
}

/// A metric's name, short enough for the head of a column.
fn head(doc: &Document, figure: &Figure) -> &'static str {
    let loads = named(doc);
    let storage =
        |(name, workload): &(&str, Workload)| *name == figure.load && workload.is_storage();
    match figure.metric {
        Metric::Transactions if loads.iter().any(storage) => "I/O per s",
        Metric::Throughput => "throughput",
        Metric::SenderCpu => "sender CPU",
        Metric::ReceiverCpu => "receiver CPU",
        Metric::Cpu | Metric::TransactionCpu => "CPU",
        Metric::Transactions => "trans/s",
        Metric::LatencyMedian => "p50",
        Metric::LatencyP99 => "p99",
        Metric::LatencyP999 => "p99.9",
        Metric::ClientCpu => "client CPU",
        Metric::ServerCpu => "server CPU",
        Metric::Datagrams => "datagrams",
        Metric::Delivered => "delivered",
        Metric::MoveTime => "move",
        Metric::Downtime => "downtime",
        Metric::DirtyLimit => "dirty limit",
    }
}

/// The field of an effect: `▲ x2.77`, followed by `*` where it is disputed; without the ratio where the cells are not
/// comparable.
fn field(effect: &EffectResult, ascii: bool) -> String {
    let sign = sign(effect.verdict, ascii);
    let ratio = effect
        .ratio
        .filter(|_| effect.verdict != Verdict::NotComparable);
    let ratio = ratio.map_or_else(String::new, |ratio| format!(" {}", digits::ratio(ratio)));
    let mark = if effects::is_disputed(effect) {
        "*"
    } else {
        ""
    };
    format!("{sign}{ratio}{mark}")
}

fn legend(doc: &Document, page: &mut Page) {
    let worth = format_fraction(doc.repeat.worth);
    let has = |verdict: Verdict| doc.effects.iter().any(|effect| effect.verdict == verdict);
    let mut said: Vec<String> = Vec::new();
    for verdict in verdicts::ALL {
        let word = verdicts::word(verdict).trim_end_matches(" yet");
        if has(verdict) {
            said.push(format!("{} {word}", sign(verdict, page.ascii())));
        }
    }
    if doc.effects.iter().any(effects::is_disputed) {
        said.push("* disputed".into());
    }
    page.paragraph(&format!("{}; margin {worth}", said.join("  ")));
}
