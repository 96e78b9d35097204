//! The figure that a chart of samples shows: one figure of one load, in a unit that people read.

use std::fmt::Write as _;

use wirecost_model::load::Workload;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::sample::{Interval, Sample};
use wirecost_stats::{Summary, summary};

use super::cells::{CellView, remarks};
use crate::render::digits;
use crate::result::document::Document;
use crate::result::loads::named;

/// Counts from this value on are shown in thousands.
const THOUSANDS: f64 = 10_000.0;

/// A load of a run, with the names of its charts.
#[derive(Debug, Clone)]
pub(super) struct ChartLoad<'a> {
    pub(super) name: &'a str,
    pub(super) workload: Workload,
    /// Whether the run has several loads, so that charts name theirs.
    several: bool,
}

/// One figure of a load, as it is shown.
#[derive(Debug, Clone)]
pub(super) struct ChartFigure<'a> {
    pub(super) load: ChartLoad<'a>,
    what: ChartMetric,
    thousands: bool,
}

/// Which figure of a load is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChartMetric {
    /// Gbit/s, or transactions per second for loads of requests.
    Speed,
    /// Datagrams per second that arrived.
    Datagrams,
    /// Datagrams that did not arrive, percent of those sent.
    Lost,
}

impl<'a> ChartLoad<'a> {
    /// The loads of a run, in the order of its cells.
    pub(super) fn all(doc: &'a Document) -> Vec<Self> {
        let named = named(doc);
        let several = named.len() > 1;
        let load = |(name, workload)| Self {
            name,
            workload,
            several,
        };
        named.into_iter().map(load).collect()
    }

    /// A chart's id on the page: `drift`; with several loads `drift-ping`.
    pub(super) fn id(&self, chart: &str) -> String {
        if self.several {
            format!("{chart}-{}", self.name)
        } else {
            chart.to_owned()
        }
    }

    /// A chart's question, which begins with a capital; with several loads, with the load's name: `ping: how fast
    /// ...?`.
    pub(super) fn question(&self, question: &str) -> String {
        if !self.several {
            return question.to_owned();
        }
        let mut letters = question.chars();
        let first = letters.next().map(|c| c.to_ascii_lowercase());
        let rest = letters.as_str();
        format!(
            "{}: {}{rest}",
            self.name,
            first.map(String::from).unwrap_or_default()
        )
    }

    /// A chart's name in the page's navigation. With several loads only the first chart of each (`None`) is listed, by
    /// the load's name; with one load, each chart that has a name.
    pub(super) fn nav(&self, chart: Option<&str>) -> Option<String> {
        match chart {
            None => self.several.then(|| self.name.to_owned()),
            Some(name) => (!self.several).then(|| name.to_owned()),
        }
    }

    /// The cells that run the load.
    pub(super) fn cells<'c, 'd>(&self, cells: &'c [CellView<'d>]) -> Vec<&'c CellView<'d>> {
        let runs = |cell: &&CellView| cell.result.loads.iter().any(|load| load.name == self.name);
        cells.iter().filter(runs).collect()
    }

    /// Whether the load is the cell's first stream, which the line's limit and the published throughput are for.
    pub(super) fn is_first_stream(&self, cell: &CellView) -> bool {
        let mut streams = cell.result.loads.iter();
        let first = streams.find(|load| !load.workload.is_request_response());
        first.is_some_and(|load| load.name == self.name)
    }
}

impl<'a> ChartFigure<'a> {
    /// A figure over some cells, whose samples decide whether it is shown in thousands.
    pub(super) fn of(load: &ChartLoad<'a>, what: ChartMetric, cells: &[&CellView]) -> Self {
        let mut shown = Self {
            load: load.clone(),
            what,
            thousands: false,
        };
        let counts = shown.metric() != Metric::Throughput && what != ChartMetric::Lost;
        let mut figures = cells
            .iter()
            .flat_map(|cell| &cell.samples)
            .filter_map(|sample| shown.value(sample));
        shown.thousands = counts && figures.any(|figure| figure >= THOUSANDS);
        shown
    }

    /// The metric that verdicts on the figure are about.
    pub(super) const fn metric(&self) -> Metric {
        match self.what {
            ChartMetric::Datagrams => Metric::Datagrams,
            ChartMetric::Lost => Metric::Delivered,
            ChartMetric::Speed if self.load.workload.is_request_response() => Metric::Transactions,
            ChartMetric::Speed => Metric::Throughput,
        }
    }

    /// The metric in words.
    pub(super) fn measured(&self) -> &'static str {
        self.metric().words_of(self.load.workload)
    }

    /// Whether the figure is of lost datagrams.
    pub(super) fn is_lost(&self) -> bool {
        self.what == ChartMetric::Lost
    }

    /// The factor from the metric's value to the unit shown.
    fn scale(&self) -> f64 {
        let thousands = if self.thousands { 1e-3 } else { 1.0 };
        self.metric().unit().1 * thousands
    }

    /// The figure of a sample, valid or not, as it is shown.
    pub(super) fn value(&self, sample: &Sample) -> Option<f64> {
        Some(self.told(self.metric().value(sample, self.load.name)?))
    }

    /// A metric's value as it is shown.
    fn told(&self, value: f64) -> f64 {
        let value = value * self.scale();
        match self.what {
            ChartMetric::Lost => (100.0 - value).max(0.0),
            ChartMetric::Speed | ChartMetric::Datagrams => value,
        }
    }

    /// Summary over all valid samples of a cell.
    pub(super) fn summary(&self, cell: &CellView) -> Option<Summary> {
        let figure = Figure {
            load: self.load.name.to_owned(),
            metric: self.metric(),
        };
        let values = cell.observed.values(cell.result.cell, &figure);
        summary(values.map(|value| self.told(value)))
    }

    /// The intervals of a sample's window: start and end in seconds, and the speed within.
    pub(super) fn parts(&self, sample: &Sample) -> Vec<(f64, f64, f64)> {
        let load = sample.load(self.load.name);
        let speed = |part: &Interval, seconds: f64| match self.metric() {
            Metric::Transactions => part.messages as f64 / seconds,
            _ => part.bytes as f64 * 8.0 / seconds,
        };
        let intervals = load.and_then(|load| match (&load.stream, &load.requests) {
            (Some(stream), _) => Some(&stream.intervals),
            (None, Some(requests)) => Some(&requests.intervals),
            (None, None) => None,
        });
        let mut from = 0.0;
        let mut parts = Vec::new();
        for interval in intervals.into_iter().flatten() {
            let seconds = interval.end_s - from;
            if seconds > 0.0 {
                let speed = speed(interval, seconds) * self.scale();
                parts.push((from, interval.end_s, speed));
            }
            from = interval.end_s;
        }
        parts
    }

    /// The unit shown.
    pub(super) fn unit(&self) -> &'static str {
        match (self.metric(), self.thousands) {
            (Metric::Transactions, true) if self.load.workload.is_storage() => {
                "thousand I/O per second"
            }
            (Metric::Transactions, true) => "k transactions/s",
            (Metric::Datagrams, true) => "k datagrams/s",
            _ if self.what == ChartMetric::Lost => "% lost",
            (metric, _) => metric.unit_of(self.load.workload).0,
        }
    }

    /// The title of an axis.
    pub(super) fn axis(&self) -> String {
        match (self.what, self.metric()) {
            (ChartMetric::Lost, _) => {
                "percent of the datagrams sent that did not arrive; less is better".to_owned()
            }
            (_, Metric::Transactions) => format!("{} that were answered", self.thousandfold()),
            (_, Metric::Datagrams) => {
                format!(
                    "{} that the receiving application read",
                    self.thousandfold()
                )
            }
            _ => "Gbit/s that the receiving application read".to_owned(),
        }
    }

    fn thousandfold(&self) -> String {
        let unit = self
            .metric()
            .unit_of(self.load.workload)
            .0
            .replace("/s", " per second");
        if self.thousands {
            format!("thousand {unit}")
        } else {
            unit
        }
    }

    /// The text of a sample's tooltip.
    pub(super) fn tooltip(&self, cell: &CellView, sample: &Sample) -> String {
        let mut text = format!("{}\nround {}", cell.label, sample.round + 1);
        if let Some(value) = self.value(sample) {
            // Writing to a string does not fail.
            let _ = write!(text, ": {value:.3} {}", self.unit());
        }
        let remarks = remarks(sample);
        if !remarks.is_empty() {
            text.push('\n');
            text.push_str(&remarks);
        }
        text
    }

    /// A figure as text.
    pub(super) fn words(&self, value: f64) -> String {
        match self.metric() {
            Metric::Throughput => digits::gbps(value),
            Metric::Delivered => format!("{value:.2}"),
            _ if self.thousands => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        }
    }
}
