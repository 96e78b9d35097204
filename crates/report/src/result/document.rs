//! The result of a run as one document: the `--json` contract. Its names are stable; later versions
//! only add to them.

mod adaptive;
mod core_distance;
mod effect;
mod invalid;
mod load;
mod network;
mod published;
mod rules;
mod self_test;
mod trust;
mod wakeups;

use serde::Serialize;
use wirecost_answer::Answer;
use wirecost_model::cell::Factor;
use wirecost_model::curve::LevelCurve;
use wirecost_model::metric::Figure;
use wirecost_model::plan::{Cores, Levels, Repeat};
use wirecost_model::record::Environment;
use wirecost_model::switch::OpenVswitch;
use wirecost_model::vary::Vary;
use wirecost_stats::validity::Finding;
use wirecost_stats::{Factorial, Summary};

use crate::result::cell_figures::CellFigures;
use crate::result::gathered::Gathered;

pub use adaptive::{AdaptiveResult, Intervals};
pub use core_distance::CoreDistanceResult;
pub use effect::{EffectResult, NoRatio};
pub use invalid::InvalidSample;
pub use load::{CellLoad, LatencyResult};
pub use network::{NetworkChange, NetworkShare};
pub use published::{
    BarsOf, ChartBar, ChartGroup, ChartResult, ComparisonResult, PublishedNote, PublishedRatio,
    PublishedResult,
};
pub use rules::{CellRules, OtherRules};
pub use self_test::{MetricSelfTest, SelfTestResult};
pub use trust::{Trust, TrustLevel};
pub use wakeups::{CellWakeups, HostWakeups, WakeupsResult, WindowCpu};

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Version of the record.
    pub record_version: u32,
    /// Version of the program that made the run.
    pub program_version: String,
    /// The run directory.
    pub run_dir: String,
    /// The plan's name.
    pub name: String,
    /// The plan's description.
    pub description: Option<String>,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// Whether the run's verdicts can be relied on.
    pub trust: Trust,
    /// What the run answers, in sentences that follow from the effects.
    pub answer: Answer,
    /// How the run ended.
    pub outcome: Ending,
    /// What ended the run early.
    pub reason: Option<String>,
    /// Rounds in which every cell has its sample, valid or not.
    pub rounds_done: u32,
    /// Rounds that the plan asked for. In an adaptive run that its rule ended, the rounds taken; in
    /// another adaptive run, the most that it may take.
    pub rounds_planned: u32,
    /// How an adaptive run stopped; `null` where the number of rounds is fixed.
    pub until: Option<AdaptiveResult>,
    /// Rounds, window and warm-up in seconds, and the margin called worth it (a fraction).
    pub repeat: Repeat,
    /// Samples taken, invalid ones included.
    pub samples: u32,
    /// Samples that the plan asked for; `null` in an adaptive run that its rule did not stop.
    pub samples_planned: Option<u32>,
    /// The samples that enter no verdict, in the order in which they were taken.
    pub invalid: Vec<InvalidSample>,
    /// Attempts that failed before a valid sample of the same round and cell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measured_again: Vec<InvalidSample>,
    /// How many samples were marked, by kind of mark. Marked samples count.
    pub marks: Vec<MarkCount>,
    /// The factors that were varied; the first level of each is the reference.
    pub factors: Vec<Factor>,
    /// What the levels of the plan's own factors change on the hosts.
    pub vary: Vec<Vary>,
    /// The cells in the experiment's order.
    pub cells: Vec<CellResult>,
    /// The figures that have effects, in the order of tables.
    pub figures: Vec<Figure>,
    /// Every effect, for every figure; none of a skipped cell, which more rounds would not measure either.
    pub effects: Vec<EffectResult>,
    /// Main effects and interactions by metric; empty with fewer than two varied factors, and in an adaptive run that
    /// its rule did not stop.
    pub factorials: Vec<Factorial>,
    /// Factors with six numeric levels or more, as curves: where most of the gain is reached, and steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<LevelCurve>,
    /// Findings that cast doubt on the result.
    pub findings: Vec<Finding>,
    /// Results of other tools' stopping rules on the same samples.
    pub other_rules: OtherRules,
    /// The self-test: the first cell against itself; `null` where the plan asks for none.
    pub self_test: Option<SelfTestResult>,
    /// Published figures compared with the measured ones; `null` where the plan has none.
    pub published: Option<PublishedResult>,
    /// Share of the run's time within measured windows, 0 to 1; `null` where the record has no end.
    pub measured_share: Option<f64>,
    /// Wall-clock seconds of the run; `null` where the record has no end.
    pub seconds: Option<f64>,
    /// How far apart the lab's cores were; absent where no sample has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_apart: Option<CoreDistanceResult>,
    /// CPU with and without the line, and wake-ups; absent where no cell has a window without the line and wake-ups
    /// take little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakeups: Option<WakeupsResult>,
    /// What each level of a factor adds to the network's part of storage latency; absent without `network_share`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_changes: Vec<NetworkChange>,
    /// Whether the hosts had cores of their own.
    pub cores: Cores,
    /// Seed of the random order.
    pub seed: u64,
    /// The machine and the hosts of the run.
    pub environment: Environment,
    /// The hosts' Open vSwitch, as in the first sample that it carried (both of its datapaths may have been measured);
    /// absent where no sample was carried by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_vswitch: Option<OpenVswitch>,
    /// Oddities of the record, and surroundings that affect all figures; in words.
    pub warnings: Vec<String>,
    /// Sums and columns of the samples, from which the document is computed.
    #[serde(skip)]
    pub(crate) gathered: Gathered,
}

impl Document {
    /// Whether the figures are of several loads, so that each has to name its load.
    pub(crate) fn several_loads(&self) -> bool {
        self.figures
            .windows(2)
            .any(|two| two[0].load != two[1].load)
    }

    /// The cells, and the self-test's twin.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &CellResult> {
        let twin = self.self_test.as_ref().map(|test| &test.twin);
        self.cells.iter().chain(twin)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Every round was measured, or as many as the rule of an adaptive run asked for.
    Complete,
    /// Ctrl-C or another signal.
    Interrupted,
    /// The run could not go on.
    Failed,
    /// The record has no end: the run was killed, or is still going.
    NoEnd,
}

/// How often a mark was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MarkCount {
    /// The kind of mark: `foreign-load`, `steal`, `backlog-drops`, `generator-bound`, `cores-moved`.
    pub kind: String,
    /// Samples that carry the mark.
    pub samples: u32,
}

/// One cell: summaries over its valid samples; `null` where there are none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellResult {
    /// The cell's number.
    pub cell: u32,
    /// The cell's levels of the varied factors.
    pub levels: Levels,
    /// The cell's levels of all factors that apply to it (`underlay.ip` does not apply without a tunnel).
    pub all_levels: Levels,
    /// The guest's MTU in bytes, resolved where the plan said `max`.
    pub guest_mtu: u32,
    /// Why the cell was skipped: its network could not be built in any sample; else `null`.
    pub skipped: Option<String>,
    /// Samples taken.
    pub samples: u32,
    /// Valid samples.
    pub valid: u32,
    /// Samples that carry a mark, for example as perhaps disturbed.
    pub marked: u32,
    /// Gbit/s that the receiving application read.
    pub throughput_gbps: Option<Summary>,
    /// Percent of one core of the sending host per Gbit/s, of the first stream; `null` where the cores are shared.
    pub sender_cpu_percent_per_gbps: Option<Summary>,
    /// Percent of one core of the receiving host per Gbit/s, likewise.
    pub receiver_cpu_percent_per_gbps: Option<Summary>,
    /// Percent of one core of the machine per Gbit/s, likewise; `null` where each host has its own cores.
    pub cpu_percent_per_gbps: Option<Summary>,
    /// Figures that do not depend on the loads; in JSON they are names of the cell itself.
    #[serde(flatten)]
    pub figures: CellFigures,
    /// The most TCP payload that the line carries in this cell's frames, Gbit/s (TCP with
    /// timestamps over the guests' IP, in tunnels over the underlay's); `null` without a rate.
    pub line_limit_gbps: Option<f64>,
    /// The throughput that was published for this cell, Gbit/s.
    pub published_gbps: Option<f64>,
    /// Number of cores that hosts a and b kept busy, by all loads together.
    pub busy_cores: [Option<Summary>; 2],
    /// Each load of the cell.
    pub loads: Vec<CellLoad>,
}
