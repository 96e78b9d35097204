//! Published figures compared with measured ones.

use serde::Serialize;
use wirecost_answer::Tally;
use wirecost_model::plan::Levels;
use wirecost_model::published::{Outcome, PublishedValue, Rule, Unmeasured};
use wirecost_stats::Summary;
use wirecost_stats::published::Agreement;

/// Published figures compared with measured ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedResult {
    /// Who published what, measured on which hardware.
    pub source: String,
    /// The study's title.
    pub title: Option<String>,
    /// Whether the study was reproduced, in a sentence; `null` without comparisons.
    pub sentence: Option<String>,
    /// The study's comparisons, counted by their result.
    pub tally: Tally,
    /// The study's own environment.
    pub environment: Option<String>,
    /// What the plan scales down against the study.
    pub scaled: Option<String>,
    /// For a study of OVN: the datapath that built the cells, and why none closer to the study's did.
    pub datapath: Option<String>,
    /// How the study computed one figure from several runs.
    pub rule: Option<Rule>,
    /// Published ratios of throughput and those measured here.
    pub ratios: Vec<PublishedRatio>,
    /// Where published configurations differ from the cells.
    pub notes: Vec<PublishedNote>,
    /// Published comparisons, each with what was measured.
    pub comparisons: Vec<ComparisonResult>,
    /// What was published and is not measured here.
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
    /// The ratio measured here; `null` without a valid pair.
    pub here: Option<f64>,
    /// Lower end of the measured ratio's 95 % interval.
    pub low: Option<f64>,
    /// Upper end of the measured ratio's 95 % interval.
    pub high: Option<f64>,
}

/// How a published configuration differs from the cells that it is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishedNote {
    /// The levels of the cells.
    pub levels: Levels,
    /// The difference, in words.
    pub note: String,
}

/// A published comparison with what was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonResult {
    /// What is compared, in words.
    pub what: String,
    /// The figure that is compared.
    pub metric: Outcome,
    /// The figure's unit.
    pub unit: &'static str,
    /// The levels of the two cells, as the plan names them.
    pub cells: [Levels; 2],
    /// What was published; `null` for a comparison that the study did not make.
    pub published: Option<PublishedValue>,
    /// Whether the published value is inferred and not given by the study.
    pub inferred: bool,
    /// Caveat of the comparison.
    pub note: Option<String>,
    /// What was measured: the ratio of the second cell to the first, or the difference in `unit`, whichever was
    /// published.
    pub here: Option<f64>,
    /// Lower end of the 95 % interval of `here`.
    pub low: Option<f64>,
    /// Upper end of the 95 % interval of `here`.
    pub high: Option<f64>,
    /// Whether `here` is a difference and not a ratio.
    pub is_difference: bool,
    /// Mean figures of both cells, in `unit`.
    pub figures: [Option<f64>; 2],
    /// The figures of both cells by the study's rule; `null` where the rule gives none.
    pub by_rule: [Option<f64>; 2],
    /// Rounds in which both cells were valid.
    pub rounds: u32,
    /// Whether measured and published value agree; `null` where nothing was published.
    pub agreement: Option<Agreement>,
    /// Why the comparison is not comparable.
    pub reason: Option<String>,
}

impl ComparisonResult {
    /// The published value in the form that is compared: a ratio, or a difference in `unit`.
    pub fn compared_with(&self) -> Option<f64> {
        let published = self.published?;
        published.ratio().or(match published {
            PublishedValue::Difference(by) | PublishedValue::AtMost(by) => Some(by),
            PublishedValue::Values(_) | PublishedValue::Ratio(_) => None,
        })
    }

    /// The ratio or difference that the study's rule gives for the samples measured here.
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

/// A chart of the study with published and measured bars.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChartResult {
    /// The chart's title.
    pub title: String,
    /// The figure that the bars are of.
    pub metric: Outcome,
    /// The unit of the bars.
    pub unit: &'static str,
    /// Whether the bars are figures of cells, or differences or ratios of two cells.
    pub of: BarsOf,
    /// The factor whose levels are the groups.
    pub by: String,
    /// The groups.
    pub groups: Vec<ChartGroup>,
}

/// What a chart's bars show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BarsOf {
    /// Figures of cells.
    Figures,
    /// Differences of two cells.
    Differences,
    /// Ratios of two cells, as changes in percent.
    Changes,
}

/// The bars of one level of the chart's factor.
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
    /// What distinguishes the bar from the others of its group; empty where it is the only one.
    pub label: String,
    /// The published figure.
    pub published: Option<f64>,
    /// Whether the published figure is only a bound, or inferred.
    pub is_loose: bool,
    /// The measured figure: a mean.
    pub here: Option<f64>,
    /// Lower end of the measured figure's 95 % interval.
    pub low: Option<f64>,
    /// Upper end of that interval.
    pub high: Option<f64>,
}

impl ChartBar {
    /// A bar with the mean of a cell's samples.
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
