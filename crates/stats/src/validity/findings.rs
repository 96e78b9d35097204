//! All findings of an experiment, from its samples.

use std::collections::BTreeMap;

use serde::Serialize;
use wirecost_model::metric::{Figure, Metric};
use wirecost_model::sample::CoreDistance;

use super::{Outlier, Trend, TwoModes, outliers, trend, two_modes};
use crate::family::holm;
use crate::interval::{Interval, moments, t_tail};
use crate::observed::{Observed, join};
use crate::ratio::{PairedRatio, has_log};
use crate::sequential::Stopping;
use crate::verdict::Margin;

/// Probability that a sound run shows a drift in any of its metrics; the same for a foreign load,
/// and for cores that moved. Findings are read as warnings: one false finding in a hundred runs is
/// few enough.
pub const FINDING_ALPHA: f64 = 0.01;

/// A threat to the validity of a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Finding {
    /// A figure rose or fell over the rounds, in all cells together.
    Drift {
        /// Name of the load.
        load: String,
        /// The metric.
        metric: Metric,
        /// Factor of the figure from the first round to the last.
        change: f64,
        /// The trend over the rounds.
        trend: Trend,
    },
    /// A figure correlates with the load of other programs.
    ForeignLoad {
        /// Name of the load.
        load: String,
        /// The metric.
        metric: Metric,
        /// Cores that other programs used: the 5th percentile over the samples.
        least: f64,
        /// The 95th percentile of these cores.
        most: f64,
        /// Factor of the figure from `least` to `most`.
        change: f64,
        /// The trend of samples, divided by their cell's median, over the foreign cores.
        trend: Trend,
    },
    /// A figure correlates with the distance of the cores, where that changed.
    #[serde(rename = "cores_apart")]
    CoreDistance {
        /// Name of the load.
        load: String,
        /// The metric.
        metric: Metric,
        /// Round trip of a cache line between the cores, nanoseconds: the 5th percentile over the samples.
        nearest_ns: f64,
        /// The 95th percentile of the round trip, nanoseconds.
        farthest_ns: f64,
        /// Factor of the figure from the nearest cores to the farthest.
        change: f64,
        /// The trend of samples, divided by their cell's median, over the logarithm of the round trip.
        trend: Trend,
    },
    /// The samples of a cell fall into two modes.
    TwoModes {
        /// Name of the load.
        load: String,
        /// The metric.
        metric: Metric,
        /// The cell's number.
        cell: u32,
        /// Ratio of the higher mode to the lower one.
        ratio: f64,
        /// The modes, in logarithms of the figure.
        modes: TwoModes,
    },
    /// Samples far from the others of their cell; they still count.
    Outliers {
        /// Name of the load.
        load: String,
        /// The metric.
        metric: Metric,
        /// The cell's number.
        cell: u32,
        /// The outlying samples.
        samples: Vec<OutlierSample>,
    },
}

/// A sample far from the others of its cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OutlierSample {
    /// Round of the sample, from 0.
    pub round: u32,
    /// Modified z-score of the sample's logarithm.
    pub z: f64,
    /// The sample divided by the cell's median.
    pub of_median: f64,
}

/// The comparison of a cell with its duplicate (A/A).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SelfTest {
    /// The ratio of the duplicate to the cell, with its interval.
    pub ratio: PairedRatio,
    /// Two-sided p of Student's t that they do not differ; absent below two pairs.
    pub p: Option<f64>,
    /// Whether the interval excludes 1: something other than what was varied differs between cells.
    /// By chance this happens in one of twenty runs for each metric.
    pub shows_effect: bool,
    /// Whether the interval lies entirely beyond the margin: no verdict of this run can be trusted.
    pub beyond_worth: bool,
    /// Half-width of the interval as a fraction: this run cannot resolve smaller differences.
    pub resolution: Option<f64>,
}

/// Judges the log ratios of a cell and its duplicate (A/A). `worth` is the margin, a fraction.
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
pub fn findings(observed: &Observed) -> Vec<Finding> {
    let mut trends: [Vec<(Trend, Finding)>; 3] = Default::default();
    let mut found: [Vec<Finding>; 2] = Default::default();
    // One figure at a time: a table is as large as all its samples.
    for at in 0..observed.figures().len() {
        let table = Table::of(at, observed);
        for (all, one) in
            trends
                .iter_mut()
                .zip([table.drift(), table.foreign(), table.core_distance()])
        {
            all.extend(one);
        }
        found[0].extend(table.modes());
        found[1].extend(table.outliers());
    }
    let significant = trends.into_iter().flat_map(significant);
    significant.chain(found.into_iter().flatten()).collect()
}

/// The findings of one kind that remain significant after Holm's correction over the metrics.
fn significant(results: Vec<(Trend, Finding)>) -> Vec<Finding> {
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

/// Most points for one trend: of more points, every nth is taken. So many give the trend far more
/// precisely than needed.
const POINTS: usize = 50_000;

fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS).max(1);
    points.into_iter().step_by(step).collect()
}

/// One sample: its round, the logarithm of its figure, that of the ratio to the cell's median, the
/// foreign cores, and the logarithm of the distance of the cores in nanoseconds.
struct Entry {
    round: u32,
    log: f64,
    deviation: f64,
    foreign: Option<f64>,
    core_distance: Option<f64>,
}

/// Valid samples of one figure, by cell.
struct Table {
    figure: Figure,
    cells: BTreeMap<u32, Vec<Entry>>,
}

impl Table {
    fn of(at: usize, observed: &Observed) -> Self {
        let figure = observed.figures()[at].clone();
        let mut cells: BTreeMap<u32, Vec<Entry>> = BTreeMap::new();
        for (cell, columns) in observed.cells() {
            let has_log = |(_, value): &(u32, f64)| has_log(*value);
            let values = columns.series(at).values().filter(has_log);
            let conditions = columns.core_conditions.each();
            let conditions =
                conditions.map(|(round, foreign, distance)| (round, (foreign, distance)));
            let entry = |((round, value), (foreign, core_distance)): (
                (u32, f64),
                (Option<f64>, Option<f64>),
            )| Entry {
                round,
                log: value.ln(),
                deviation: 0.0,
                foreign,
                core_distance: core_distance
                    .filter(|&ns| crate::ratio::has_log(ns))
                    .map(f64::ln),
            };
            let joined = join(
                values.map(|(round, value)| (round, (round, value))),
                conditions,
            );
            let entries: Vec<Entry> = joined.map(entry).collect();
            if !entries.is_empty() {
                cells.insert(cell, entries);
            }
        }
        for entries in cells.values_mut() {
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
        let span = means.last()?.0 - means.first()?.0;
        let trend = trend(&thinned(means))?;
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

    /// The trend of the figure over `other`, and the 5th and the 95th percentile of `other`.
    fn over(&self, other: impl Fn(&Entry) -> Option<f64>) -> Option<(Trend, [f64; 2])> {
        let points: Vec<(f64, f64)> = self
            .entries()
            .filter_map(|entry| Some((other(entry)?, entry.deviation)))
            .collect();
        let points = thinned(points);
        let trend = trend(&points)?;
        let mut others: Vec<f64> = points.iter().map(|(other, _)| *other).collect();
        others.sort_unstable_by(f64::total_cmp);
        let ends = [0.05, 0.95].map(|p| crate::bootstrap::quantile(&others, p));
        Some((trend, ends))
    }

    fn core_distance(&self) -> Option<(Trend, Finding)> {
        let (trend, [least, most]) = self.over(|entry| entry.core_distance)?;
        let (nearest_ns, farthest_ns) = (least.exp(), most.exp());
        // Even with cores that stay, the distance is not measured as exactly the same.
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
                // Not extrapolated to a whole core: nothing is known beyond the range that was seen.
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
