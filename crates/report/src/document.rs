//! The result of a run as one document: the `--json` contract. Its names are stable; what is
//! added later is added beside them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use wirecost_model::cell::{Cell, Experiment, Factor};
use wirecost_model::load::Workload;
use wirecost_model::metric::{
    Figure, Metric, retransmits, segments_per_packet, stack_packets_per_second,
    wire_frames_per_second,
};
use wirecost_model::plan::{Cores, Levels, Repeat};
use wirecost_model::record::{Environment, Outcome, Run};
use wirecost_model::sample::{Mark, Sample};
use wirecost_model::switch::OpenVswitch;
use wirecost_model::vary::Vary;
use wirecost_stats::validity::{Finding, findings};
use wirecost_stats::{Factorial, Summary, contrasts, summary};
use wirecost_wire::line::tcp_goodput_bps;

use crate::apart::{self, CoresApartResult};
use crate::beside::{self, EffectResult};
use crate::loads::{self, CellLoad};
use crate::published::{self, PublishedNote, PublishedRatio};
use crate::rules::{self, OtherRules};
use crate::self_test::{self, SelfTestResult};
use crate::skipped;
use crate::trust::Trust;
use crate::until::{self, UntilResult};
use crate::wakeups::{self, WakeupsResult};
use crate::warnings;

/// Everything that a run has to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// Version of the record that it was worked out from.
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
    /// Whether its verdicts can be relied on.
    pub trust: Trust,
    /// How it ended.
    pub outcome: Ending,
    /// What ended it early.
    pub reason: Option<String>,
    /// Rounds in which every cell has its sample, valid or not.
    pub rounds_done: u32,
    /// Rounds that the plan asked for; of a run until it is known that its rule ended, those it took,
    /// and else the most that it would take.
    pub rounds_planned: u32,
    /// How a run until it is known stopped; `null` where the number of rounds is fixed.
    pub until: Option<UntilResult>,
    /// Rounds, window and warm-up in seconds, and the margin called worth it (a fraction).
    pub repeat: Repeat,
    /// Samples taken, invalid ones included.
    pub samples: u32,
    /// Samples that the plan asked for; `null` in a run until it is known that its rule did not stop.
    pub samples_planned: Option<u32>,
    /// The samples that enter no verdict, in the order in which they were taken.
    pub invalid: Vec<InvalidSample>,
    /// How many samples were marked as perhaps disturbed, by kind. They count.
    pub marks: Vec<MarkCount>,
    /// The factors that were varied; the first level of each is the reference.
    pub factors: Vec<Factor>,
    /// What the levels of the plan's own factors change on the hosts.
    pub vary: Vec<Vary>,
    /// The cells in the experiment's order.
    pub cells: Vec<CellResult>,
    /// The loads' figures that effects are on, in the order of tables.
    pub figures: Vec<Figure>,
    /// Every effect, for every figure; none of a skipped cell, which more rounds would not tell either.
    pub effects: Vec<EffectResult>,
    /// Main effects and interactions by metric; empty below two varied factors, and in a run until it
    /// is known that its rule did not stop.
    pub factorials: Vec<Factorial>,
    /// What speaks against the result.
    pub findings: Vec<Finding>,
    /// What other people's rules make of the same samples.
    pub other_rules: OtherRules,
    /// The first cell against itself; `null` where the plan asks for no self-test.
    pub self_test: Option<SelfTestResult>,
    /// Figures of others beside these.
    pub published: Option<PublishedResult>,
    /// Share of the run's time that lay within measured windows; absent where it has no end.
    pub measured_share: Option<f64>,
    /// Wall-clock seconds of the run; absent where it has no end.
    pub seconds: Option<f64>,
    /// How far apart the lab's cores were; absent where no sample knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores_apart: Option<CoresApartResult>,
    /// CPU at the line and without it, and wake-ups; absent where no cell has a window without its line and wake-ups take little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakeups: Option<WakeupsResult>,
    /// Whether the hosts had cores of their own.
    pub cores: Cores,
    /// Seed of the random order.
    pub seed: u64,
    /// Where it ran.
    pub environment: Environment,
    /// The Open vSwitch of the hosts; absent where no sample was carried by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_vswitch: Option<OpenVswitch>,
    /// What was odd about the record.
    pub warnings: Vec<String>,
}

impl Document {
    /// Whether figures have to say whose they are.
    pub(crate) fn several_loads(&self) -> bool {
        self.figures
            .windows(2)
            .any(|two| two[0].load != two[1].load)
    }

    /// The cells, and the twin.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &CellResult> {
        let twin = self.self_test.as_ref().map(|test| &test.twin);
        self.cells.iter().chain(twin)
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Every round was measured.
    Complete,
    /// Ctrl-C or another signal.
    Interrupted,
    /// It could not go on.
    Failed,
    /// The record has no end: the run was killed, or is still going.
    NoEnd,
}

/// A sample that enters no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InvalidSample {
    /// Round, from 0.
    pub round: u32,
    /// The cell's number.
    pub cell: u32,
    /// Why.
    pub reason: String,
}

/// How often a mark was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MarkCount {
    /// `foreign-load`, `steal`, `backlog-drops`, `generator-bound`, `cores-moved`.
    pub kind: String,
    /// Samples that carry it.
    pub samples: u32,
}

/// Published figures beside measured ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedResult {
    /// Who, what, on which hardware.
    pub source: String,
    /// Published ratios and those measured here.
    pub ratios: Vec<PublishedRatio>,
    /// Where a published configuration differs from the cell.
    pub notes: Vec<PublishedNote>,
}

/// One cell: summaries over its valid samples; `null` where there are none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellResult {
    /// Its number.
    pub cell: u32,
    /// Its levels of the varied factors.
    pub levels: Levels,
    /// Its levels of all factors that mean something to it (`underlay.ip` means nothing without a tunnel).
    pub all_levels: Levels,
    /// The guest's MTU in bytes, resolved where the plan said `max`.
    pub guest_mtu: u32,
    /// Why it was skipped: no sample of it could be built here.
    pub skipped: Option<String>,
    /// Samples taken.
    pub samples: u32,
    /// Of these, valid.
    pub valid: u32,
    /// Of these, marked as perhaps disturbed.
    pub marked: u32,
    /// Gbit/s that the receiving application read.
    pub throughput_gbps: Option<Summary>,
    /// Percent of one core of the sending host per Gbit/s; `null` where the cores are shared.
    pub sender_cpu_percent_per_gbps: Option<Summary>,
    /// Percent of one core of the receiving host per Gbit/s; `null` where the cores are shared.
    pub receiver_cpu_percent_per_gbps: Option<Summary>,
    /// Percent of one core of the machine per Gbit/s; `null` where each host has its own cores.
    pub cpu_percent_per_gbps: Option<Summary>,
    /// Frames on the wire per second, both directions.
    pub wire_frames_per_s: Option<Summary>,
    /// Packets per second as the receiving guest's TCP handled them.
    pub stack_packets_per_s: Option<Summary>,
    /// Segments on the wire per packet that the receiving guest's TCP handled.
    pub segments_per_packet: Option<Summary>,
    /// Segments retransmitted within a window.
    pub retransmits: Option<Summary>,
    /// The most TCP payload that the line carries in this cell's frames, Gbit/s (TCP with
    /// timestamps over the guests' IP, in tunnels over the underlay's); `null` without a rate.
    pub line_limit_gbps: Option<f64>,
    /// The published throughput, Gbit/s.
    pub published_gbps: Option<f64>,
    /// Cores that host a had busy, as a number of cores, and host b: of all loads together.
    pub busy_cores: [Option<Summary>; 2],
    /// Each of its loads.
    pub loads: Vec<CellLoad>,
}

impl CellResult {
    /// CPU of its first stream in digits, see [`CellLoad::cpu`].
    pub(crate) fn cpu(&self, metric: Metric) -> Option<String> {
        let mut loads = self.loads.iter();
        loads
            .find(|load| !load.workload.is_request_response())?
            .cpu(metric)
    }
}

/// The hosts' Open vSwitch: all labs of a run have the same.
pub(crate) fn open_vswitch(run: &Run) -> Option<OpenVswitch> {
    let mut samples = run.samples.iter();
    samples.find_map(|sample| sample.open_vswitch.clone())
}

/// Works the result out of a run that was read with [`crate::read`], whose warnings are passed on.
pub fn document(run: &Run, run_dir: &Path, warnings: Vec<String>) -> Document {
    let head = &run.head;
    let experiment = &head.experiment;
    let plan = &experiment.plan;
    let cost = head.environment.wakeup_cost;
    let contrasts = contrasts(experiment, &run.samples, cost);
    let rounds_done = rounds_done(run);
    let (until, basis) = until::judge(run, &contrasts, rounds_done);
    let mut effects = beside::effects(run, &contrasts, basis);
    let rounds_planned = match &until {
        Some(until) if until.stopped.is_some() => rounds_done,
        _ => plan.repeat.rounds,
    };
    let end = run.end.as_ref();
    let by_cell = by_cell(&run.samples);
    let cells: Vec<CellResult> = experiment
        .cells
        .iter()
        .map(|cell| cell_result(experiment, cell, &by_cell))
        .collect();
    let told = warnings::of(run, &cells);
    // Before effects of skipped cells go: what was published of these is told as not measured here.
    let published = published::result(experiment, &effects);
    effects.retain(|effect| !skipped::is_of_one(&cells, effect));
    let mut document = Document {
        record_version: head.record_version,
        program_version: head.program_version.clone(),
        run_dir: run_dir.display().to_string(),
        name: plan.name.clone(),
        description: plan.description.clone(),
        started: head.started.clone(),
        outcome: end.map_or(Ending::NoEnd, |end| match end.outcome {
            Outcome::Complete => Ending::Complete,
            Outcome::Interrupted => Ending::Interrupted,
            Outcome::Failed => Ending::Failed,
        }),
        reason: end.and_then(|end| end.reason.clone()),
        rounds_done,
        rounds_planned,
        samples_planned: (until.is_none() || rounds_planned == rounds_done)
            .then_some(rounds_planned * experiment.samples_a_round()),
        until,
        repeat: plan.repeat.clone(),
        samples: run.samples.len() as u32,
        invalid: run.samples.iter().filter_map(invalid).collect(),
        marks: marks(&run.samples),
        factors: experiment.varied().cloned().collect(),
        vary: plan.vary.clone(),
        figures: experiment.figures(),
        cells,
        published,
        effects,
        other_rules: rules::apply(&experiment.cells, &by_cell),
        self_test: experiment.twin.as_ref().map(|twin| {
            let twin = cell_result(experiment, twin, &by_cell);
            self_test::judge(run, twin, basis)
        }),
        factorials: beside::factorials(run, basis),
        findings: findings(experiment, &run.samples),
        measured_share: end
            .filter(|end| end.seconds > 0.0)
            .map(|end| end.measured_s / end.seconds),
        seconds: end.map(|end| end.seconds),
        cores_apart: apart::of(&run.samples),
        wakeups: wakeups::of(run, &by_cell),
        cores: plan.cores,
        seed: head.seed,
        environment: head.environment.clone(),
        open_vswitch: open_vswitch(run),
        warnings: warnings.into_iter().chain(told).collect(),
        trust: Trust::default(),
    };
    document.trust = Trust::of(&document, &run.samples);
    document
}

/// Whether the first stream of a cell is TCP in one direction, to which the line's limit in one applies.
fn one_way(cell: &Cell) -> bool {
    let mut streams = cell.loads.iter().map(|named| named.load.workload);
    let first = streams.find(|workload| !workload.is_request_response());
    first == Some(Workload::TcpStream)
}

fn rounds_done(run: &Run) -> u32 {
    let mut cells_in: BTreeMap<u32, usize> = BTreeMap::new();
    for sample in &run.samples {
        *cells_in.entry(sample.round).or_default() += 1;
    }
    let all = run.head.experiment.samples_a_round() as usize;
    cells_in.values().filter(|&&cells| cells == all).count() as u32
}

fn invalid(sample: &Sample) -> Option<InvalidSample> {
    Some(InvalidSample {
        round: sample.round,
        cell: sample.cell,
        reason: sample.invalid.as_ref()?.reason().into(),
    })
}

fn marks(samples: &[Sample]) -> Vec<MarkCount> {
    Mark::KINDS
        .into_iter()
        .filter_map(|wanted| {
            let carries = |sample: &&Sample| sample.marks.iter().any(|mark| mark.kind() == wanted);
            let samples = samples.iter().filter(carries).count() as u32;
            (samples > 0).then(|| MarkCount {
                kind: wanted.into(),
                samples,
            })
        })
        .collect()
}

/// The samples of each cell, in the order in which they were taken.
pub(crate) type ByCell<'a> = BTreeMap<u32, Vec<&'a Sample>>;

fn by_cell(samples: &[Sample]) -> ByCell<'_> {
    let mut cells = ByCell::new();
    for sample in samples {
        cells.entry(sample.cell).or_default().push(sample);
    }
    cells
}

fn cell_result(experiment: &Experiment, cell: &Cell, samples: &ByCell<'_>) -> CellResult {
    let mine = samples.get(&cell.index).map_or(&[][..], Vec::as_slice);
    let valid: Vec<&Sample> = mine
        .iter()
        .copied()
        .filter(|s| s.invalid.is_none())
        .collect();
    let over = |figure: &dyn Fn(&Sample) -> Option<f64>| {
        summary(valid.iter().filter_map(|sample| figure(sample)))
    };
    let loads = loads::of(experiment, cell, &valid);
    let stream = loads
        .iter()
        .find(|load| !load.workload.is_request_response());
    let cpu = |of: fn(&CellLoad) -> Option<Summary>| stream.and_then(of);
    let varied = |(key, _): &(&String, &String)| experiment.varied().any(|f| f.key == **key);
    let network = &cell.network;
    CellResult {
        cell: cell.index,
        levels: cell
            .levels
            .iter()
            .filter(varied)
            .map(|(key, level)| (key.clone(), level.clone()))
            .collect(),
        all_levels: cell.levels.clone(),
        guest_mtu: cell.guest_mtu,
        skipped: skipped::reason(mine),
        samples: mine.len() as u32,
        valid: valid.len() as u32,
        marked: mine.iter().filter(|s| !s.marks.is_empty()).count() as u32,
        throughput_gbps: over(&|sample| Some(sample.throughput()? / 1e9)),
        sender_cpu_percent_per_gbps: cpu(|load| load.sender_cpu_percent_per_gbps),
        receiver_cpu_percent_per_gbps: cpu(|load| load.receiver_cpu_percent_per_gbps),
        cpu_percent_per_gbps: cpu(|load| load.cpu_percent_per_gbps),
        wire_frames_per_s: over(&wire_frames_per_second),
        stack_packets_per_s: over(&stack_packets_per_second),
        segments_per_packet: over(&segments_per_packet),
        retransmits: over(&|sample| Some(retransmits(sample)? as f64)),
        line_limit_gbps: network.rate.filter(|_| one_way(cell)).map(|rate| {
            let overhead = network.line_overhead_bytes(cell.guest_mtu);
            tcp_goodput_bps(rate, cell.guest_mtu, overhead, network.guest_ip) / 1e9
        }),
        published_gbps: published::figure(experiment, cell).map(|figure| figure.gbps),
        busy_cores: ["a", "b"].map(|host| over(&|sample| Some(sample.host(host)?.busy_cores()))),
        loads,
    }
}
