//! Sums and columns of figures over the samples of a run. Samples are added one by one and not kept, so that a run of a
//! million of them fits into memory; a few are kept elsewhere, to be drawn ([`crate::result::thinned`]).

use std::collections::BTreeMap;

use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::end_window::End;
use wirecost_model::latency::Latency;
use wirecost_model::load::NamedLoad;
use wirecost_model::metric::{Metric, StreamCpu, saturated_cpu, stream_cpu};
use wirecost_model::path_access::PathAccess;
use wirecost_model::plan::Cores;
use wirecost_model::record::{RunHead, WakeupCost};
use wirecost_model::sample::{Invalid, LoadResult, Mark, Sample};
use wirecost_model::switch::{OpenVswitch, OvsDatapath};
use wirecost_model::usage::HostUsage;
use wirecost_stats::Observed;

use crate::result::cell_figures::CellColumns;
use crate::result::document::InvalidSample;
use crate::result::flows::FlowColumns;
use crate::result::load_counts::{DatagramsResult, RequestsResult};
use crate::result::moves::MoveColumns;
use crate::result::outcomes::Outcomes;
use crate::result::round_latencies::RoundLatencies;

/// Everything of a run's samples that results are computed from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gathered {
    /// The figures that verdicts are about.
    pub(crate) observed: Observed,
    /// The cells by number, the twin included.
    pub(crate) cells: BTreeMap<u32, CellSums>,
    pub(crate) samples: u32,
    pub(crate) invalid: Vec<InvalidSample>,
    /// Failed attempts at samples that are valid.
    pub(crate) measured_again: Vec<InvalidSample>,
    /// Samples that carry a mark, for each of [`Mark::KINDS`].
    pub(crate) marked: [u32; Mark::KINDS.len()],
    /// Samples that something outside of the plan disturbed.
    pub(crate) disturbed: u32,
    /// Number of samples, by round.
    rounds: BTreeMap<u32, u32>,
    /// The hosts' Open vSwitch, of the first sample that has one: all labs of a run have the same.
    pub(crate) open_vswitch: Option<OpenVswitch>,
    /// The first Open vSwitch that forwards in userspace.
    pub(crate) userspace: Option<OpenVswitch>,
    pub(crate) is_not_steered: bool,
    /// Core distances of the samples that have one, nanoseconds.
    pub(crate) core_distances: Vec<f64>,
    /// Whether any sample has a second window, without the line or at the storage target.
    pub(crate) has_two_windows: bool,
    /// Length that a window should have for CPU verdicts, seconds: the largest that a host asks for.
    pub(crate) enough_s: Option<f64>,
    pub(crate) idle_steps: IdleSteps,
    /// The shortest window of a load that ends by itself, seconds.
    pub(crate) shortest_limited_s: Option<f64>,
    /// When the last sample ended, seconds since the run began.
    pub(crate) elapsed_s: f64,
    pub(crate) proofs: Proofs,
    /// Figures of published comparisons that get no verdict of their own.
    pub(crate) outcomes: Outcomes,
    cores: Cores,
    cost: Option<WakeupCost>,
}

/// Counts of the proofs that the path carries a datagram of exactly the guest MTU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Proofs {
    pub(crate) tried: usize,
    pub(crate) given: usize,
    /// Proofs whose datagram was seen on the underlay as one unfragmented frame of the expected size.
    pub(crate) seen: usize,
}

/// How finely the hosts' idle time was read, over all samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct IdleSteps {
    /// Whether any was read in steps of 10 ms.
    pub(crate) coarse: bool,
    /// Whether any was read in microseconds.
    pub(crate) fine: bool,
}

/// Sums and columns of one cell. Columns have a value for each valid sample that has the figure, in the order in which
/// the samples were taken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellSums {
    pub(crate) samples: u32,
    pub(crate) valid: u32,
    pub(crate) marked: u32,
    pub(crate) took_s: f64,
    /// Why the cell's network could be built in none of its samples.
    pub(crate) unbuilt: Option<String>,
    /// Why the last sample is not valid.
    pub(crate) last_invalid: Option<Invalid>,
    pub(crate) gbps: Vec<f64>,
    /// Seconds of moves, where all machines moved; of several migrations in a cell the slowest.
    pub(crate) move_s: Vec<f64>,
    pub(crate) columns: CellColumns,
    /// Busy cores of the hosts a and b.
    pub(crate) busy_cores: [Vec<f64>; 2],
    is_limited: bool,
    /// The cell's loads, in its order.
    pub(crate) loads: Vec<LoadColumns>,
}

/// Sums and columns of one load of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoadColumns {
    pub(crate) named: NamedLoad,
    pub(crate) latency: Latency,
    pub(crate) lateness: Latency,
    pub(crate) requests: RequestsResult,
    /// Range of single rounds' latencies, for each of [`PERCENTILES`].
    pub(crate) spread: [Spread; PERCENTILES.len()],
    pub(crate) datagrams: Option<DatagramsResult>,
    pub(crate) delivered_percent: Vec<f64>,
    pub(crate) jitter_us: Vec<f64>,
    pub(crate) fairness: Vec<f64>,
    pub(crate) flows: FlowColumns,
    pub(crate) moves: MoveColumns,
    /// Latencies of rounds that also have a window at the storage target.
    pub(crate) shares: Vec<RoundLatencies>,
    pub(crate) flushes: Latency,
    pub(crate) path: Option<PathAccess>,
    pub(crate) strays: u64,
    pub(crate) generator_bound: u32,
    pub(crate) missed_schedule: u32,
    /// Windows of a stream that ran alone: with the line and without, each at the client and at the server.
    pub(crate) windows: [[Vec<StreamCpu>; 2]; 2],
    /// Busy time by class, at the client and at the server.
    pub(crate) classes: [Classes; 2],
}

/// Latency percentiles that are also given for single rounds.
pub(crate) const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// Transactions that must lie beyond a percentile for it to be given.
pub(crate) const ENOUGH_BEYOND: u64 = 10;

/// A percentile of latencies in microseconds; `None` where too few transactions lie beyond it.
pub(crate) fn percentile_us(latency: &Latency, percent: f64) -> Option<f64> {
    let time = latency.percentile(percent);
    time.filter(|_| latency.beyond(percent) >= ENOUGH_BEYOND)
        .map(|time| time.as_secs_f64() * 1e6)
}

/// The lowest and the highest value over the rounds, if every round has one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spread {
    ends: Option<(f64, f64)>,
    lacks_one: bool,
}

impl Spread {
    fn add(&mut self, value: Option<f64>) {
        match (value, self.ends) {
            (None, _) => self.lacks_one = true,
            (Some(value), None) => self.ends = Some((value, value)),
            (Some(value), Some((low, high))) => {
                self.ends = Some((low.min(value), high.max(value)));
            }
        }
    }

    pub(crate) fn ends(&self) -> Option<(f64, f64)> {
        self.ends.filter(|_| !self.lacks_one)
    }
}

/// Seconds of busy time by class: user, system, softirq, irq, and unclassified.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Classes {
    seconds: [f64; 5],
    busy_s: f64,
}

impl Classes {
    /// Adds the classes of every core, weighted with the core's busy time.
    fn add(&mut self, usage: &HostUsage) {
        for core in &usage.cores {
            let told = [
                core.shares.user,
                core.shares.system,
                core.shares.softirq,
                core.shares.irq,
            ];
            for (class, share) in self.seconds.iter_mut().zip(told) {
                *class += core.busy_s * share;
            }
            self.seconds[4] += core.busy_s * unclassified(told);
            self.busy_s += core.busy_s;
        }
    }

    /// Shares of the classes, which sum to 1.
    pub(crate) fn shares(&self) -> [f64; 5] {
        if self.busy_s > 0.0 {
            self.seconds.map(|class| class / self.busy_s)
        } else {
            [0.0, 0.0, 0.0, 0.0, 1.0]
        }
    }
}

/// The share that belongs to no class; 0 where that is only a rounding error.
fn unclassified(told: [f64; 4]) -> f64 {
    let left = 1.0 - told.iter().sum::<f64>();
    if left > 1e-6 { left } else { 0.0 }
}

/// The end of a load whose host's CPU a metric is about; shared cores are counted at the server. `None` for other
/// metrics.
pub(crate) const fn end(metric: Metric) -> Option<End> {
    match metric {
        Metric::SenderCpu | Metric::ClientCpu => Some(End::Client),
        Metric::ReceiverCpu | Metric::ServerCpu | Metric::Cpu | Metric::TransactionCpu => {
            Some(End::Server)
        }
        _ => None,
    }
}

/// Index of an end's figures in pairs of client and server.
pub(crate) const fn side(end: End) -> usize {
    match end {
        End::Client => 0,
        End::Server => 1,
    }
}

/// Whether a mark says that something outside of the plan affected the figures. The load's own threads, and drops from
/// the backlog of a core that is full, are part of what was measured; the guard before each verdict looks at them.
const fn disturbs(mark: &Mark) -> bool {
    match mark {
        Mark::ForeignLoad { .. } | Mark::Steal { .. } | Mark::CoresMoved { .. } => true,
        Mark::GeneratorBound { .. } | Mark::BacklogDrops { .. } => false,
    }
}

impl Gathered {
    /// An empty one for a run with this head.
    pub(crate) fn new(head: &RunHead) -> Self {
        let experiment = &head.experiment;
        let cost = head.environment.wakeup_cost;
        let cells = experiment.measured();
        Self {
            observed: Observed::new(experiment, cost),
            cells: cells
                .map(|cell| (cell.index, CellSums::new(cell)))
                .collect(),
            samples: 0,
            invalid: Vec::new(),
            measured_again: Vec::new(),
            marked: [0; Mark::KINDS.len()],
            disturbed: 0,
            rounds: BTreeMap::new(),
            open_vswitch: None,
            userspace: None,
            is_not_steered: false,
            core_distances: Vec::new(),
            has_two_windows: false,
            enough_s: None,
            idle_steps: IdleSteps::default(),
            shortest_limited_s: None,
            elapsed_s: 0.0,
            proofs: Proofs::default(),
            outcomes: Outcomes::new(experiment),
            cores: experiment.plan.cores,
            cost,
        }
    }

    /// The sums and columns of these samples.
    pub(crate) fn of(head: &RunHead, samples: &[Sample]) -> Self {
        let mut gathered = Self::new(head);
        for sample in samples {
            gathered.add(sample);
        }
        gathered
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, sample: &Sample) {
        self.observed.add(sample);
        self.outcomes.add(sample);
        self.samples += 1;
        *self.rounds.entry(sample.round).or_default() += 1;
        self.elapsed_s = sample.started_s + sample.took_s;
        let named = |invalid: &Invalid| InvalidSample {
            round: sample.round,
            cell: sample.cell,
            reason: invalid.reason().into(),
        };
        match &sample.invalid {
            Some(invalid) => self.invalid.push(named(invalid)),
            None => self
                .measured_again
                .extend((sample.failed_attempts.iter()).map(|failed| named(&failed.invalid))),
        }
        for (kind, count) in Mark::KINDS.iter().zip(&mut self.marked) {
            let mut marks = sample.marks.iter();
            *count += u32::from(marks.any(|mark| mark.kind() == *kind));
        }
        self.disturbed += u32::from(sample.marks.iter().any(disturbs));
        if let Some(switch) = &sample.open_vswitch {
            self.open_vswitch.get_or_insert_with(|| switch.clone());
            if switch.datapath == OvsDatapath::Userspace {
                self.userspace.get_or_insert_with(|| switch.clone());
            }
        }
        self.is_not_steered |= sample.not_steered;
        self.core_distances.extend(sample.core_distance_ns());
        self.has_two_windows |= sample.saturated.is_some() || sample.at_target.is_some();
        let hosts = || sample.sender.iter().chain(&sample.receiver);
        self.idle_steps.coarse |= hosts().any(HostUsage::is_coarse);
        self.idle_steps.fine |= hosts().any(|host| !host.is_coarse());
        let enough = hosts().map(HostUsage::enough_for_cpu_s);
        self.enough_s = self.enough_s.into_iter().chain(enough).reduce(f64::max);
        for proof in &sample.proofs {
            self.proofs.tried += 1;
            self.proofs.given += usize::from(proof.proven);
            let whole = proof.seen.as_ref().is_some_and(|seen| {
                !seen.fragment && seen.outer_ip_bytes == seen.expected_outer_ip_bytes
            });
            self.proofs.seen += usize::from(whole);
        }
        let Some(cell) = self.cells.get_mut(&sample.cell) else {
            return;
        };
        cell.add(sample, self.cores, self.cost);
        if cell.is_limited && sample.invalid.is_none() {
            let seconds = sample.loads.iter().map(|load| load.client_seconds);
            let shortest = self.shortest_limited_s.into_iter().chain(seconds);
            self.shortest_limited_s = shortest.reduce(f64::min);
        }
    }

    /// Rounds in which every cell has its sample.
    pub(crate) fn rounds_done(&self, experiment: &Experiment) -> u32 {
        let all = experiment.samples_a_round();
        self.rounds.values().filter(|&&cells| cells == all).count() as u32
    }
}

impl CellSums {
    fn new(cell: &Cell) -> Self {
        Self {
            samples: 0,
            valid: 0,
            marked: 0,
            took_s: 0.0,
            unbuilt: None,
            last_invalid: None,
            gbps: Vec::new(),
            move_s: Vec::new(),
            columns: CellColumns::default(),
            busy_cores: [Vec::new(), Vec::new()],
            is_limited: cell.loads.iter().any(|named| named.load.ends_by_itself()),
            loads: cell.loads.iter().map(LoadColumns::new).collect(),
        }
    }

    fn add(&mut self, sample: &Sample, cores: Cores, cost: Option<WakeupCost>) {
        self.samples += 1;
        self.marked += u32::from(!sample.marks.is_empty());
        self.took_s += sample.took_s;
        self.unbuilt = match (&sample.invalid, self.unbuilt.take()) {
            (Some(Invalid::Build(reason)), None) if self.samples == 1 => Some(reason.clone()),
            (Some(Invalid::Build(_)), known) => known,
            _ => None,
        };
        self.last_invalid.clone_from(&sample.invalid);
        if sample.invalid.is_some() {
            return;
        }
        self.valid += 1;
        self.gbps.extend(sample.throughput().map(|bits| bits / 1e9));
        let moves = sample.loads.iter();
        let moves = moves.filter_map(|load| Metric::MoveTime.value(sample, &load.name));
        self.move_s.extend(moves.max_by(f64::total_cmp));
        self.columns.add(sample);
        for (busy, host) in self.busy_cores.iter_mut().zip(["a", "b"]) {
            busy.extend(sample.host(host).map(HostUsage::busy_cores));
        }
        for load in &mut self.loads {
            load.add(sample, cores, cost);
        }
    }

    /// The columns of one load, by its name.
    pub(crate) fn load(&self, name: &str) -> Option<&LoadColumns> {
        self.loads.iter().find(|load| load.named.name == name)
    }
}

impl LoadColumns {
    fn new(named: &NamedLoad) -> Self {
        Self {
            named: named.clone(),
            latency: Latency::default(),
            lateness: Latency::default(),
            requests: RequestsResult::default(),
            spread: [Spread::default(); PERCENTILES.len()],
            datagrams: None,
            delivered_percent: Vec::new(),
            jitter_us: Vec::new(),
            fairness: Vec::new(),
            flows: FlowColumns::default(),
            moves: MoveColumns::default(),
            shares: Vec::new(),
            flushes: Latency::default(),
            path: None,
            strays: 0,
            generator_bound: 0,
            missed_schedule: 0,
            windows: Default::default(),
            classes: [Classes::default(); 2],
        }
    }

    fn add(&mut self, sample: &Sample, cores: Cores, cost: Option<WakeupCost>) {
        let name = &self.named.name;
        let bound = |mark: &Mark| matches!(mark, Mark::GeneratorBound { load, .. } if load == name);
        self.generator_bound += u32::from(sample.marks.iter().any(bound));
        let result = sample.load(name);
        let requests = result.and_then(|result| result.requests.as_ref());
        for (spread, percent) in self.spread.iter_mut().zip(PERCENTILES) {
            spread.add(requests.and_then(|requests| percentile_us(&requests.latency, percent)));
        }
        let Some(result) = result else { return };
        self.shares.extend(RoundLatencies::of(sample, name));
        for metric in Metric::of(self.named.load.workload, cores) {
            let Some(end) = end(*metric) else { continue };
            let host = sample.host(result.direction.host_of(end));
            if let Some(host) = host.filter(|_| metric.value(sample, name).is_some()) {
                self.classes[side(end)].add(host);
            }
        }
        if !self.named.load.workload.is_request_response() {
            for end in [End::Client, End::Server] {
                let at = side(end);
                self.windows[0][at].extend(stream_cpu(sample, name, end, cost));
                self.windows[1][at].extend(saturated_cpu(sample, name, end, cost));
            }
        }
        self.counts(result);
    }

    fn counts(&mut self, result: &LoadResult) {
        self.flows.add(result);
        self.moves.add(&result.moves);
        if result.path.is_some() {
            self.path.clone_from(&result.path);
        }
        self.strays += u64::from(result.strays);
        let missed = result.missed_schedule(&self.named.load);
        self.missed_schedule += u32::from(missed.is_some());
        let fairness = result.stream.as_ref().and_then(|stream| stream.fairness);
        self.fairness.extend(fairness);
        if let Some(requests) = &result.requests {
            self.latency.merge(&requests.latency);
            self.lateness.merge(&requests.lateness);
            self.flushes.merge(&requests.flushes);
            self.requests.add(requests);
        }
        if let Some(datagrams) = &result.datagrams {
            self.datagrams.get_or_insert_default().add(datagrams);
            let delivered = datagrams.delivered().map(|share| share * 100.0);
            self.delivered_percent.extend(delivered);
            self.jitter_us.push(datagrams.jitter_s * 1e6);
        }
    }
}
