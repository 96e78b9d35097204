//! Published figures beside measured ones.

use serde::Serialize;
use wirecost_answer::Tally;
use wirecost_model::plan::Levels;
use wirecost_model::published::{Outcome, PublishedValue, Rule, Unmeasured};
use wirecost_stats::Summary;
use wirecost_stats::published::Agreement;

/// Published figures beside measured ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedResult {
    /// Who, what, on which hardware.
    pub source: String,
    /// The study's title.
    pub title: Option<String>,
    /// Whether the study was reproduced, in a sentence; `null` without comparisons.
    pub sentence: Option<String>,
    /// Its comparisons by what was found of them.
    pub tally: Tally,
    /// What the study ran on.
    pub environment: Option<String>,
    /// What was scaled down.
    pub scaled: Option<String>,
    /// Of a study of OVN's, what built the cells and why nothing nearer to it did.
    pub datapath: Option<String>,
    /// How the study made one figure of several runs.
    pub rule: Option<Rule>,
    /// Published ratios of throughput and those measured here.
    pub ratios: Vec<PublishedRatio>,
    /// Where a published configuration differs from the cell.
    pub notes: Vec<PublishedNote>,
    /// Published comparisons and what was measured of them.
    pub comparisons: Vec<ComparisonResult>,
    /// What was published and is not measured.
    pub unmeasured: Vec<Unmeasured>,
    /// The study's charts.
    pub charts: Vec<ChartResult>,
}

/// A published ratio between two cells that differ in one factor, and the ratio measured here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRatio {
    /// The factor's key.
    pub factor: String,
    /// The level compared with.
    pub from: String,
    /// The level compared.
    pub to: String,
    /// The levels of the other varied factors.
    #[serde(rename = "where")]
    pub where_: Levels,
    /// Published throughput of `to` over that of `from`.
    pub published: f64,
    /// The ratio measured here; absent without a pair.
    pub here: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
}

/// How a published configuration differs from the cell beside which it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishedNote {
    /// The levels of the cells.
    pub levels: Levels,
    /// How it differs.
    pub note: String,
}

/// A published comparison and what was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonResult {
    /// What is compared, in words.
    pub what: String,
    /// The figure.
    pub metric: Outcome,
    /// Its unit.
    pub unit: &'static str,
    /// The levels of the two cells, as the plan names them.
    pub cells: [Levels; 2],
    /// What was published; `null` of a comparison that the study did not make.
    pub published: Option<PublishedValue>,
    /// Whether it was inferred.
    pub inferred: bool,
    /// What has to be known of it.
    pub note: Option<String>,
    /// What was measured: the ratio of the second cell to the first, or the difference in the unit, as it was published.
    pub here: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
    /// Whether `here` is a difference.
    pub is_difference: bool,
    /// The mean figures of both cells.
    pub figures: [Option<f64>; 2],
    /// What the study's rule makes of both cells' samples; `null` where it comes to no figure.
    pub by_rule: [Option<f64>; 2],
    /// Rounds in which both cells were valid.
    pub rounds: u32,
    /// Whether it agrees; `null` where nothing was published.
    pub agreement: Option<Agreement>,
    /// Why it is not comparable.
    pub reason: Option<String>,
}

impl ComparisonResult {
    /// What was published, as it is compared: a ratio, or a difference in the unit.
    pub fn compared_with(&self) -> Option<f64> {
        let published = self.published?;
        published.ratio().or(match published {
            PublishedValue::Difference(by) | PublishedValue::AtMost(by) => Some(by),
            PublishedValue::Values(_) | PublishedValue::Ratio(_) => None,
        })
    }

    /// The same of what the study's rule makes of the samples here.
    pub fn ruled(&self) -> Option<f64> {
        let [from, to] = self.by_rule;
        let (from, to) = from.zip(to)?;
        if self.is_difference {
            Some(to - from)
        } else {
            (from > 0.0).then(|| to / from)
        }
    }
}

/// A chart of the study, published beside measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChartResult {
    /// What it shows.
    pub title: String,
    /// The figure.
    pub metric: Outcome,
    /// The unit of the bars.
    pub unit: &'static str,
    /// Whether the bars are differences or ratios of two cells, and not their figures.
    pub of: BarsOf,
    /// The factor whose levels are the groups.
    pub by: String,
    /// The groups.
    pub groups: Vec<ChartGroup>,
}

/// What a chart's bars are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BarsOf {
    /// Figures of cells.
    Figures,
    /// Differences of two cells.
    Differences,
    /// Ratios of two cells, as a change in percent.
    Changes,
}

/// Bars of one level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChartGroup {
    /// The level.
    pub level: String,
    /// The bars.
    pub bars: Vec<ChartBar>,
}

/// One bar, published and measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChartBar {
    /// What distinguishes it from the others of its group; empty where it is the only one.
    pub label: String,
    /// The published figure.
    pub published: Option<f64>,
    /// Whether that is only a bound, or inferred.
    pub is_loose: bool,
    /// The measured figure: a mean.
    pub here: Option<f64>,
    /// Its 95 % interval.
    pub low: Option<f64>,
    /// The other end.
    pub high: Option<f64>,
}

impl ChartBar {
    /// A bar of a cell's samples.
    pub(crate) fn of(label: String, published: Option<f64>, summary: Option<Summary>) -> Self {
        Self {
            label,
            published,
            is_loose: false,
            here: summary.map(|summary| summary.mean),
            low: summary.and_then(|summary| summary.low),
            high: summary.and_then(|summary| summary.high),
        }
    }
}
