//! Gauges for a monitoring system: a file for the textfile collector of Prometheus' node exporter.
//!
//! The text is valid both as OpenMetrics 1.0 and as Prometheus' text format 0.0.4, in which the last line is a comment.
//! Names have base units, as `promtool check metrics` requires.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use jiff::Timestamp;
use wirecost_model::cell::Factor;
use wirecost_model::metric::Metric;

use crate::render::format::{Format, FormatError, Terminal, put};
use crate::result::document::{Ending, TrustLevel};
use crate::result::run::RunResult;
use crate::result::values::{labels, of_cells};

/// The OpenMetrics format.
#[derive(Debug)]
pub(crate) struct OpenMetrics;

/// Labels of series besides those of the factors.
const OWN_LABELS: [&str; 4] = ["plan", "cell", "load", "estimate"];

/// Most series of one cell: monitoring systems keep every series for months.
const MOST_A_CELL: usize = 10;

impl Format<RunResult> for OpenMetrics {
    fn option(&self) -> &'static str {
        "openmetrics"
    }

    fn help(&self) -> &'static str {
        "Gauges for Prometheus: a file for the node exporter's textfile collector, at most 10 series per cell"
    }

    fn write(
        &self,
        result: &RunResult,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        put(to, &text(result))
    }
}

/// A metric's name without `wirecost_`, and the factor from the unit that people read to the base unit in the name.
const fn base(metric: Metric) -> (&'static str, f64) {
    match metric {
        // Prometheus' base unit is the byte.
        Metric::Throughput => ("throughput_bytes_per_second", 1e9 / 8.0),
        // One percent of a core per Gbit/s is 0.01 seconds of a core per gigabit.
        Metric::SenderCpu => ("sender_cpu_seconds_per_gigabit", 0.01),
        Metric::ReceiverCpu => ("receiver_cpu_seconds_per_gigabit", 0.01),
        Metric::Cpu => ("cpu_seconds_per_gigabit", 0.01),
        Metric::Transactions => ("transactions_per_second", 1.0),
        Metric::LatencyMedian => ("latency_p50_seconds", 1e-6),
        Metric::LatencyP99 => ("latency_p99_seconds", 1e-6),
        Metric::LatencyP999 => ("latency_p999_seconds", 1e-6),
        Metric::ClientCpu => ("client_cpu_seconds_per_transaction", 1e-6),
        Metric::ServerCpu => ("server_cpu_seconds_per_transaction", 1e-6),
        Metric::TransactionCpu => ("cpu_seconds_per_transaction", 1e-6),
        Metric::Datagrams => ("datagrams_per_second", 1.0),
        Metric::Delivered => ("delivered_ratio", 0.01),
        Metric::MoveTime => ("move_seconds", 1.0),
        Metric::Downtime => ("downtime_seconds", 1e-3),
        Metric::DirtyLimit => ("dirty_limit_bytes_per_second", 1e9 / 8.0),
    }
}

/// Metrics by name: the help text, and the lines behind the name.
type Families = BTreeMap<&'static str, (String, Vec<String>)>;

fn text(result: &RunResult) -> String {
    let document = &result.document;
    let plan = [("plan", document.name.as_str())];
    let mut families = Families::new();
    let mut add = |name, help: &str, labels: &[(&str, &str)], value: f64| {
        let (_, lines) = families
            .entry(name)
            .or_insert_with(|| (help.to_owned(), Vec::new()));
        lines.push(format!("{{{}}} {value}", written(labels)));
    };
    let switch = |on: bool| f64::from(u8::from(on));
    add(
        "run_complete",
        "Whether every round was measured.",
        &plan,
        switch(document.outcome == Ending::Complete),
    );
    add(
        "run_sound",
        "Whether the verdicts of the run can be relied on.",
        &plan,
        switch(document.trust.level == TrustLevel::Sound),
    );
    if let Ok(started) = document.started.parse::<Timestamp>() {
        add(
            "run_start_timestamp_seconds",
            "When the run began.",
            &plan,
            started.as_second() as f64,
        );
    }
    let mut left_out = 0;
    let factors = label_names(&document.factors);
    for (cell, figures) in of_cells(result) {
        let number = cell.cell.to_string();
        let mut own = vec![plan[0], ("cell", &number)];
        let levels = labels(result, cell).into_iter();
        own.extend(
            factors
                .iter()
                .zip(levels)
                .map(|(name, (_, level))| (name.as_str(), level)),
        );
        add(
            "valid_samples",
            "Samples that the cell's figures are made of.",
            &own,
            f64::from(cell.valid),
        );
        let mut series = 1;
        let mut seen: Vec<&str> = Vec::new();
        for (figure, summary) in figures {
            let (name, scale) = base(figure.metric);
            // Only a load's first figure has its interval.
            let first = !seen.contains(&figure.load.as_str());
            seen.push(&figure.load);
            let bounds = [("low", summary.low), ("high", summary.high)];
            let mut estimates = vec![("mean", summary.mean)];
            estimates.extend(
                bounds
                    .into_iter()
                    .filter_map(|(name, bound)| Some((name, bound.filter(|_| first)?))),
            );
            if series + estimates.len() > MOST_A_CELL {
                left_out += 1;
                continue;
            }
            series += estimates.len();
            let help = format!(
                "The {} of a load over the valid samples of a cell: mean, and ends of its 95% interval.",
                figure.metric.words()
            );
            for (estimate, value) in estimates {
                let mut labels = own.clone();
                labels.extend([("load", &*figure.load), ("estimate", estimate)]);
                add(name, &help, &labels, value * scale);
            }
        }
    }
    let mut text = String::new();
    for (name, (help, lines)) in &families {
        // Writing to memory does not fail.
        let _ = writeln!(
            text,
            "# HELP wirecost_{name} {help}\n# TYPE wirecost_{name} gauge"
        );
        for line in lines {
            let _ = writeln!(text, "wirecost_{name}{line}");
        }
    }
    if left_out > 0 {
        let _ = writeln!(
            text,
            "# {left_out} figures are left out, to keep to {MOST_A_CELL} series a cell; --json has them"
        );
    }
    text + "# EOF\n"
}

/// A label name for each factor: its key, in which other characters than letters, digits and `_` become `_`. A reader
/// refuses the whole file where a series has a name twice: of a name that is taken, `factor_` is put in front.
fn label_names(factors: &[Factor]) -> Vec<String> {
    let mut taken = Vec::from(OWN_LABELS.map(str::to_owned));
    for factor in factors {
        let sign = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut name: String = factor.key.chars().map(sign).collect();
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, '_');
        }
        while taken.contains(&name) {
            name.insert_str(0, "factor_");
        }
        taken.push(name);
    }
    taken.split_off(OWN_LABELS.len())
}

/// Labels in the format's syntax.
fn written(labels: &[(&str, &str)]) -> String {
    let one = |(name, value): &(&str, &str)| {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    labels.iter().map(one).collect::<Vec<_>>().join(",")
}
