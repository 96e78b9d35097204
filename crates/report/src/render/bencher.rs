//! Bencher Metric Format (bencher.dev/docs/reference/bencher-metric-format): benchmark -> measure -> value with its
//! bounds.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use crate::render::format::{Format, FormatError, Terminal};
use crate::render::json::pretty;
use crate::result::run::RunResult;
use crate::result::values::{labels, of_cells};

/// Bencher Metric Format.
#[derive(Debug)]
pub(crate) struct Bencher;

impl Format<RunResult> for Bencher {
    fn option(&self) -> &'static str {
        "bencher"
    }

    fn help(&self) -> &'static str {
        "Bencher Metric Format: a benchmark per cell and load, a measure per figure, with 95 % intervals"
    }

    fn write(
        &self,
        result: &RunResult,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        pretty(to, &benchmarks(result))
    }
}

/// The mean of the rounds and its 95 % interval, which a single round does not have.
#[derive(Debug, Serialize)]
struct Bounded {
    #[serde(rename = "value")]
    mean: f64,
    #[serde(rename = "lower_value", skip_serializing_if = "Option::is_none")]
    low: Option<f64>,
    #[serde(rename = "upper_value", skip_serializing_if = "Option::is_none")]
    high: Option<f64>,
}

type Benchmarks = BTreeMap<String, BTreeMap<String, Bounded>>;

fn benchmarks(result: &RunResult) -> Benchmarks {
    let document = &result.document;
    let mut benchmarks = Benchmarks::new();
    for (cell, figures) in of_cells(result) {
        for (figure, summary) in figures {
            let levels = labels(result, cell);
            let levels = levels.iter().filter(|(_, level)| !level.is_empty());
            let levels: Vec<String> = levels
                .map(|(key, level)| format!("{key}={level}"))
                .collect();
            let parts = [&document.name, &levels.join(","), &figure.load];
            let parts = parts
                .iter()
                .map(|part| part.as_str())
                .filter(|part| !part.is_empty());
            // Histories are kept under this name: it is made of keys and levels of plan and record, not of display
            // names.
            let parts: Vec<&str> = parts.collect();
            let (name, _) = figure.metric.derived();
            // Bencher's slug of the measure, which it creates when the measure is first sent.
            let measures = benchmarks.entry(parts.join("/")).or_default();
            measures.insert(
                name.replace('_', "-"),
                Bounded {
                    mean: summary.mean,
                    low: summary.low,
                    high: summary.high,
                },
            );
        }
    }
    benchmarks
}
