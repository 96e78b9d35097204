//! Every finding of an experiment, from its samples.

use std::collections::BTreeMap;

use serde::Serialize;
use wirecost_model::cell::Experiment;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::sample::{CoreDistance, Sample};

use super::{Outlier, Trend, TwoModes, outliers, trend, two_modes};
use crate::family::holm;
use crate::interval::{Interval, moments, t_tail};
use crate::ratio::{PairedRatio, has_log};
use crate::sequential::Stopping;
use crate::verdict::Margin;

/// How often a sound run may show a drift over all its metrics, as often a foreign load over
/// all its cells, and as often cores that moved: findings are read as warnings, and one false in a hundred runs is enough.
pub const FINDING_ALPHA: f64 = 0.01;

/// A threat to the validity of a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Finding {
    /// A figure rose or fell over the rounds, in all cells together.
    Drift {
        /// The load.
        load: String,
        /// The figure.
        metric: Metric,
        /// Factor from the first to the last round.
        change: f64,
        /// The test.
        trend: Trend,
    },
    /// A figure correlates with the load of other programs.
    ForeignLoad {
        /// The load.
        load: String,
        /// The figure.
        metric: Metric,
        /// Cores that others used: the 5th percentile over the samples.
        least: f64,
        /// The 95th percentile.
        most: f64,
        /// Factor from the least to the most.
        change: f64,
        /// The test, on samples divided by their cell's median.
        trend: Trend,
    },
    /// A figure correlates with the core distance, where that changed.
    #[serde(rename = "cores_apart")]
    CoreDistance {
        /// The load.
        load: String,
        /// The figure.
        metric: Metric,
        /// Nanoseconds that a cache line took from core to core and back: the 5th percentile over the samples.
        nearest_ns: f64,
        /// The 95th percentile.
        farthest_ns: f64,
        /// Factor from the nearest to the farthest.
        change: f64,
        /// The test, of samples divided by their cell's median on the logarithm of the time.
        trend: Trend,
    },
    /// A cell has good and bad runs.
    TwoModes {
        /// The load.
        load: String,
        /// The figure.
        metric: Metric,
        /// The cell's number.
        cell: u32,
        /// How much higher the higher mode is.
        ratio: f64,
        /// The modes, in logarithms of the figure.
        modes: TwoModes,
    },
    /// Samples far from the others of their cell, which count all the same.
    Outliers {
        /// The load.
        load: String,
        /// The figure.
        metric: Metric,
        /// The cell's number.
        cell: u32,
        /// Round, modified z-score, and the sample as a multiple of the cell's median.
        samples: Vec<OutlierSample>,
    },
}

/// A sample far from the others of its cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OutlierSample {
    /// Its round, from 0.
    pub round: u32,
    /// Modified z-score of its logarithm.
    pub z: f64,
    /// The sample divided by the cell's median.
    pub of_median: f64,
}

/// What a cell compared with itself shows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SelfTest {
    /// Ratio and interval.
    pub ratio: PairedRatio,
    /// Two-sided p of Student's t; absent below two pairs.
    pub p: Option<f64>,
    /// The interval excludes 1: something other than what was varied differs between cells. It
    /// happens by chance in one of twenty runs for each metric.
    pub shows_effect: bool,
    /// The interval lies wholly beyond the margin: no verdict of this run can be trusted.
    pub beyond_worth: bool,
    /// Half-width of the interval as a fraction: differences below it cannot be seen by this run.
    pub resolution: Option<f64>,
}

/// Judges the log ratios of a cell and its duplicate (A/A).
pub fn self_test(logs: &[f64], worth: f64, stopping: Stopping) -> SelfTest {
    let ratio = PairedRatio::of_logs(logs, stopping);
    let interval = ratio.interval();
    let margin = Margin::of(worth);
    let p = match moments(logs) {
        Some((mean, Some(sd))) if sd > 0.0 => {
            let n = logs.len() as f64;
            Some(2.0 * t_tail(mean.abs() / (sd / n.sqrt()), n - 1.0))
        }
        Some((mean, Some(_))) => Some(if mean == 0.0 { 1.0 } else { 0.0 }),
        _ => None,
    };
    SelfTest {
        ratio,
        p,
        shows_effect: interval.is_some_and(|interval| !interval.holds(1.0)),
        beyond_worth: interval
            .is_some_and(|Interval { low, high }| low > margin.high || high < margin.low),
        resolution: interval.map(|Interval { low, high }| (high / low).sqrt() - 1.0),
    }
}

/// Looks for drift, foreign load, cores that moved, second modes and outliers in every metric's valid samples; the
/// findings in that order, then by metric and cell.
pub fn findings(experiment: &Experiment, samples: &[Sample]) -> Vec<Finding> {
    let tables: Vec<Table> = experiment
        .figures()
        .into_iter()
        .map(|figure| Table::of(figure, samples))
        .collect();
    let mut found = significant(&tables, Table::drift);
    found.extend(significant(&tables, Table::foreign));
    found.extend(significant(&tables, Table::core_distance));
    found.extend(tables.iter().flat_map(Table::modes));
    found.extend(tables.iter().flat_map(Table::outliers));
    found
}

/// Those of one kind that stand after Holm's correction over the metrics.
fn significant(
    tables: &[Table],
    test: impl Fn(&Table) -> Option<(Trend, Finding)>,
) -> Vec<Finding> {
    let results: Vec<_> = tables.iter().filter_map(test).collect();
    let adjusted = holm(
        &results
            .iter()
            .map(|(trend, _)| Some(trend.p))
            .collect::<Vec<_>>(),
    );
    results
        .into_iter()
        .zip(adjusted)
        .filter(|(_, p)| p.is_some_and(|p| p <= FINDING_ALPHA))
        .map(|((_, finding), _)| finding)
        .collect()
}

/// A sample's round, its logarithm, that of its ratio to the cell's median, the foreign load, and the logarithm of how far
/// apart the cores were.
struct Entry {
    round: u32,
    log: f64,
    deviation: f64,
    foreign: Option<f64>,
    core_distance: Option<f64>,
}

/// One metric's valid samples by cell.
struct Table {
    figure: Figure,
    cells: BTreeMap<u32, Vec<Entry>>,
}

impl Table {
    fn of(figure: Figure, samples: &[Sample]) -> Self {
        let mut cells: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| sample.invalid.is_none()) {
            let Some(value) = figure.value(sample).filter(|&value| has_log(value)) else {
                continue;
            };
            let hosts = [&sample.sender, &sample.receiver];
            cells.entry(sample.cell).or_default().push(Entry {
                round: sample.round,
                log: value.ln(),
                deviation: 0.0,
                foreign: hosts
                    .into_iter()
                    .flatten()
                    .filter_map(|host| host.foreign_cores)
                    .reduce(f64::max),
                core_distance: sample
                    .core_distance_ns()
                    .filter(|&ns| has_log(ns))
                    .map(f64::ln),
            });
        }
        for entries in cells.values_mut() {
            entries.sort_by_key(|entry| entry.round);
            let mut logs: Vec<f64> = entries.iter().map(|entry| entry.log).collect();
            logs.sort_unstable_by(f64::total_cmp);
            let median = crate::bootstrap::quantile(&logs, 0.5);
            for entry in entries {
                entry.deviation = entry.log - median;
            }
        }
        Self { figure, cells }
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.cells.values().flatten()
    }

    fn drift(&self) -> Option<(Trend, Finding)> {
        let mut rounds: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
        for entry in self.entries() {
            let (sum, count) = rounds.entry(entry.round).or_default();
            *sum += entry.deviation;
            *count += 1;
        }
        let means: Vec<(f64, f64)> = rounds
            .iter()
            .map(|(&round, &(sum, count))| (f64::from(round), sum / f64::from(count)))
            .collect();
        let trend = trend(&means)?;
        let span = means.last()?.0 - means.first()?.0;
        Some((
            trend,
            Finding::Drift {
                load: self.figure.load.clone(),
                metric: self.figure.metric,
                change: (trend.slope * span).exp(),
                trend,
            },
        ))
    }

    /// How the figure went with something else: the trend, and the 5th and the 95th percentile of the other.
    fn over(&self, other: impl Fn(&Entry) -> Option<f64>) -> Option<(Trend, [f64; 2])> {
        let points: Vec<(f64, f64)> = self
            .entries()
            .filter_map(|entry| Some((other(entry)?, entry.deviation)))
            .collect();
        let trend = trend(&points)?;
        let mut others: Vec<f64> = points.iter().map(|(other, _)| *other).collect();
        others.sort_unstable_by(f64::total_cmp);
        let ends = [0.05, 0.95].map(|p| crate::bootstrap::quantile(&others, p));
        Some((trend, ends))
    }

    fn core_distance(&self) -> Option<(Trend, Finding)> {
        let (trend, [least, most]) = self.over(|entry| entry.core_distance)?;
        let (nearest_ns, farthest_ns) = (least.exp(), most.exp());
        // Cores that stay are not always told as just as far apart.
        if !CoreDistance::differ([nearest_ns, farthest_ns]) {
            return None;
        }
        Some((
            trend,
            Finding::CoreDistance {
                load: self.figure.load.clone(),
                metric: self.figure.metric,
                nearest_ns,
                farthest_ns,
                change: (trend.slope * (most - least)).exp(),
                trend,
            },
        ))
    }

    fn foreign(&self) -> Option<(Trend, Finding)> {
        let (trend, [least, most]) = self.over(|entry| entry.foreign)?;
        Some((
            trend,
            Finding::ForeignLoad {
                load: self.figure.load.clone(),
                metric: self.figure.metric,
                least,
                most,
                // Not for a whole core: nothing is known beyond the range that was seen.
                change: (trend.slope * (most - least)).exp(),
                trend,
            },
        ))
    }

    fn modes(&self) -> impl Iterator<Item = Finding> {
        self.cells.iter().filter_map(|(&cell, entries)| {
            let modes = two_modes(&entries.iter().map(|entry| entry.log).collect::<Vec<_>>())?;
            Some(Finding::TwoModes {
                load: self.figure.load.clone(),
                metric: self.figure.metric,
                cell,
                ratio: (modes.high - modes.low).exp(),
                modes,
            })
        })
    }

    fn outliers(&self) -> impl Iterator<Item = Finding> {
        self.cells.iter().filter_map(|(&cell, entries)| {
            let far = outliers(&entries.iter().map(|entry| entry.log).collect::<Vec<_>>());
            let samples: Vec<OutlierSample> = far
                .iter()
                .map(|&Outlier { index, z }| OutlierSample {
                    round: entries[index].round,
                    z,
                    of_median: entries[index].deviation.exp(),
                })
                .collect();
            (!samples.is_empty()).then_some(Finding::Outliers {
                load: self.figure.load.clone(),
                metric: self.figure.metric,
                cell,
                samples,
            })
        })
    }
}
