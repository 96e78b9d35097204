//! A report for people, for documents and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wirecost_bench::cpu::Cpu;
use wirecost_bench::figures::{interval, short, trim};
use wirecost_model::metric::Metric;
use wirecost_model::plan::Cores;

use crate::Arguments;
use crate::comparison::{Compared, Comparison, SLOW};
use crate::measure::{ComparisonOutcome, Report, RowResult};
use crate::row::{Bound, Row};

/// What has to be known before a ratio is believed.
const NOTES: &str = "\
Ratios are the first / the second: geometric mean over the pairs and its 95 % interval; below them
the medians. CPU: all that a host's cores did in the window, for each unit of what got through, in
percent of one core (streams) or microseconds of core time (requests and responses).
LOW: the interval reaches below the bound, or pairs are missing. HIGHER: CPU is above beyond noise.
";

/// Bound of a row, in words.
fn bound(row: Option<Bound>) -> String {
    row.map_or_else(
        || "shown, judged by nobody".to_owned(),
        |bound| bound.to_string(),
    )
}

/// What can be chosen, and how it is measured.
pub(crate) fn list(rows: &[Row], arguments: &Arguments) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for row in rows {
        let _ = writeln!(text, "{}: {}", row.name, bound(row.bound));
        for [ours, other] in &row.pairs {
            let _ = writeln!(text, "  {ours} / {other}");
        }
        let plan = row.plan(arguments.pairs, arguments.seconds, arguments.warmup);
        for line in plan.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

/// One JSON document, every pair included.
pub(crate) fn document(report: &Report) -> Value {
    json!(report)
}

/// Where and how it was measured.
fn head(report: &Report) -> String {
    let mut text = String::new();
    if let Some(machine) = &report.machine {
        let cpus = |host: &str| {
            let cpus = machine.cpus.get(host).into_iter().flatten();
            cpus.map(u32::to_string).collect::<Vec<_>>().join(",")
        };
        let _ = writeln!(
            text,
            "Linux {}, {}; sender on cores {}, receiver on {}",
            machine.kernel,
            machine.cpu_model,
            cpus("a"),
            cpus("b"),
        );
    }
    let _ = writeln!(
        text,
        "windows of {} s after {} s, {} pairs, seed {}",
        report.seconds, report.warmup, report.pairs, report.seed,
    );
    text
}

/// What a CPU metric's value is of.
const fn suffix(metric: Metric) -> &'static str {
    match metric {
        Metric::SenderCpu => " % snd",
        Metric::ReceiverCpu => " % rcv",
        Metric::Cpu => " % both",
        Metric::ClientCpu => " us cli",
        Metric::ServerCpu => " us srv",
        Metric::TransactionCpu => " us both",
        Metric::Transactions => " /s",
        Metric::Throughput => " Gbit/s",
        _ => "",
    }
}

fn medians(figure: &Compared) -> String {
    format!(
        "{} / {}{}",
        short(figure.ours),
        short(figure.other),
        suffix(figure.metric)
    )
}

/// How many of each are slow, and what was joined.
fn remarks(comparison: &Comparison) -> String {
    let mut text = format!(
        "slow runs {} / {} of {}",
        comparison.slow.ours,
        comparison.slow.other,
        comparison.pairs.len()
    );
    if let Some([ours, other]) = comparison.segments_per_packet {
        let _ = write!(
            text,
            ", segments a packet {} / {}",
            short(ours),
            short(other)
        );
    }
    if comparison.generator_bound_pairs > 0 {
        let _ = write!(
            text,
            ", generator-bound in {} pairs",
            comparison.generator_bound_pairs
        );
    }
    text
}

/// In as few words as the table has room for.
fn verdict(comparison: &Comparison) -> String {
    let Some(judgement) = &comparison.judgement else {
        return "-".to_owned();
    };
    let mut words = Vec::new();
    if !judgement.reached {
        words.push("LOW");
    }
    if judgement
        .cpu
        .as_ref()
        .is_some_and(|cpu| cpu.contains(&Cpu::Higher))
    {
        words.push("HIGHER");
    }
    if words.is_empty() {
        words.push("holds");
    }
    words.join(", ")
}

fn told(what: &ComparisonOutcome) -> Option<String> {
    match what {
        ComparisonOutcome::Measured(_) => None,
        ComparisonOutcome::CannotBeBuilt(why) => Some(format!("cannot be built: {why}")),
        ComparisonOutcome::Failed(why) => Some(format!("FAILED: {why}")),
    }
}

/// Tables no wider than 100 columns, but where a reason is.
pub(crate) fn text(report: &Report) -> String {
    let mut text = head(report);
    for row in &report.rows {
        let _ = writeln!(text, "\n{}: {}", row.name, bound(row.bound));
        for compared in &row.comparisons {
            let _ = write!(text, "  {} / {}: ", compared.ours, compared.other);
            let ComparisonOutcome::Measured(comparison) = &compared.what else {
                let _ = writeln!(text, "{}", told(&compared.what).unwrap_or_default());
                continue;
            };
            let _ = writeln!(text, "{}", verdict(comparison));
            for of in [|figure: &Compared| interval(&figure.ratio), medians] {
                let cells = comparison
                    .figures
                    .iter()
                    .map(|figure| format!("{:<24}", of(figure)));
                let _ = writeln!(text, "    {}", cells.collect::<String>());
            }
            let _ = writeln!(text, "    {}", remarks(comparison));
            if let Some(missing) = &comparison.missing {
                let _ = writeln!(
                    text,
                    "    {} of {} pairs: {missing}",
                    comparison.pairs.len(),
                    report.pairs
                );
            }
        }
    }
    text.push('\n');
    text.push_str(&disturbances(report));
    if report
        .machine
        .as_ref()
        .is_some_and(|machine| machine.cores == Cores::Shared)
    {
        text.push_str("Both hosts share the cores: CPU is the machine's.\n");
    }
    text.push_str(NOTES);
    let _ = writeln!(
        text,
        "slow: below {SLOW} of what one in ten of the row's runs exceeds."
    );
    trim(&text)
}

/// One table to paste into a document, a line for each comparison.
pub(crate) fn markdown(report: &Report) -> String {
    let mut text = String::new();
    for line in head(report).lines() {
        let _ = writeln!(text, "{line}  ");
    }
    text.push_str(
        "\n| row | first / second | ratio [95 %] | medians | sender CPU | receiver CPU | slow runs | has to hold | |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for row in &report.rows {
        for compared in &row.comparisons {
            let sides = format!("{} / {}", compared.ours, compared.other);
            let _ = write!(text, "| {} | {sides} | ", row.name);
            let _ = match &compared.what {
                ComparisonOutcome::Measured(comparison) => {
                    writeln!(text, "{}", cells(row, comparison))
                }
                what => {
                    let why = told(what).unwrap_or_default().replace('|', "\\|");
                    writeln!(text, "{why} | | | | | {} | |", bound(row.bound))
                }
            };
        }
    }
    text
}

/// The rest of a line of the Markdown table.
fn cells(row: &RowResult, comparison: &Comparison) -> String {
    let mut figures = comparison.figures.iter();
    let speed = figures.next();
    let mut cells = vec![
        speed.map_or_else(String::new, |figure| interval(&figure.ratio)),
        speed.map_or_else(String::new, medians),
    ];
    // Of hosts that share their cores there is one column.
    let cpu: Vec<String> = figures.map(|figure| interval(&figure.ratio)).collect();
    cells.extend((0..2).map(|at| cpu.get(at).cloned().unwrap_or_default()));
    let pairs = comparison.pairs.len();
    let slow = comparison.slow;
    cells.push(format!("{} / {} of {pairs}", slow.ours, slow.other));
    cells.push(bound(row.bound));
    cells.push(verdict(comparison));
    format!("{} |", cells.join(" | "))
}

/// In how many pairs the machine was not quiet.
fn disturbances(report: &Report) -> String {
    let comparisons = report.rows.iter().flat_map(|row| &row.comparisons);
    let (mut disturbed, mut pairs) = (0, 0);
    for compared in comparisons {
        if let ComparisonOutcome::Measured(comparison) = &compared.what {
            disturbed += comparison.disturbed_pairs;
            pairs += comparison.pairs.len();
        }
    }
    if disturbed == 0 {
        return String::new();
    }
    format!(
        "In {disturbed} of {pairs} pairs others used the cores, or a backlog overflowed; all pairs count.\n"
    )
}

#[cfg(test)]
mod tests;
