//! The samples of an experiment as columns of figures and sums. Samples are added one by one and
//! not kept, so that a run of a million samples fits into memory.

use std::collections::BTreeMap;

use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::load::NamedLoad;
use wirecost_model::metric::{CpuParts, Figure};
use wirecost_model::record::WakeupCost;
use wirecost_model::sample::Sample;

use crate::sums::LoadSums;

/// The valid samples of an experiment, a column for each figure of each cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// Core time that a wake-up costs on the machine of the run.
    cost: Option<WakeupCost>,
    /// All figures: first the `judged` ones that verdicts are about, then those that are only shown.
    figures: Vec<Figure>,
    judged: usize,
    cells: BTreeMap<u32, CellColumns>,
}

/// The columns of one cell, each in the order of rounds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CellColumns {
    /// Series in the order of [`Observed::figures`], followed by the figures that are only shown.
    series: Vec<Series>,
    /// Conditions around each sample.
    pub(crate) core_conditions: CoreConditions,
    /// Loads in the cell's order, with their sums.
    loads: Vec<(NamedLoad, LoadSums)>,
}

/// One figure of one cell. CPU metrics are kept as their parts (`parts`), all others as the figure (`values`).
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Series {
    rounds: Vec<u32>,
    values: Vec<f64>,
    parts: Vec<CpuParts>,
    /// Whether a sample has too few transactions for the percentile.
    pub(crate) is_sparse: bool,
    /// Sums of interrupts, of the seconds they cost, of busy seconds and of units of work, over the
    /// samples that have all.
    pub(crate) wakeups: Option<[f64; 4]>,
    /// Whether a sample lacks the CPU of the devices between the hosts, so that it is part of the hosts'.
    pub(crate) has_unknown_transit: bool,
}

/// Placeholder for an unknown value, in columns of values that are never negative.
const UNKNOWN: f64 = -1.0;

/// Cores of other programs and distance of the cores, of every sample; [`UNKNOWN`] where a sample lacks one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CoreConditions {
    rounds: Vec<u32>,
    foreign: Vec<f64>,
    distance_ns: Vec<f64>,
}

impl Observed {
    /// Without samples. `cost` is what a wake-up costs on the machine of the run.
    pub fn new(experiment: &Experiment, cost: Option<WakeupCost>) -> Self {
        let mut figures = experiment.figures();
        let judged = figures.len();
        let shown = experiment.shown_figures().into_iter();
        let shown: Vec<Figure> = shown.filter(|one| !figures.contains(one)).collect();
        figures.extend(shown);
        let columns = |cell: &Cell| CellColumns {
            series: figures.iter().map(|_| Series::default()).collect(),
            core_conditions: CoreConditions::default(),
            loads: cell
                .loads
                .iter()
                .map(|load| (load.clone(), LoadSums::default()))
                .collect(),
        };
        let cells = experiment.measured();
        Self {
            cost,
            cells: cells.map(|cell| (cell.index, columns(cell))).collect(),
            figures,
            judged,
        }
    }

    /// From existing samples. `cost` is what a wake-up costs on the machine of the run.
    pub fn of<'a>(
        experiment: &Experiment,
        samples: impl IntoIterator<Item = &'a Sample>,
        cost: Option<WakeupCost>,
    ) -> Self {
        let mut observed = Self::new(experiment, cost);
        for sample in samples {
            observed.add(sample);
        }
        observed
    }

    /// Adds a sample. A sample that is not valid, or whose cell is not of the experiment, is ignored.
    pub fn add(&mut self, sample: &Sample) {
        let Some(cell) = self.cells.get_mut(&sample.cell) else {
            return;
        };
        if sample.invalid.is_some() {
            return;
        }
        cell.core_conditions.add(sample);
        for (figure, series) in self.figures.iter().zip(&mut cell.series) {
            series.add(figure, sample, self.cost);
        }
        for (load, sums) in &mut cell.loads {
            sums.add(load, sample);
        }
    }

    /// The experiment's figures that verdicts are about, in the experiment's order.
    pub fn figures(&self) -> &[Figure] {
        &self.figures[..self.judged]
    }

    /// Rounds in which a cell has a valid sample, ascending.
    pub fn rounds(&self, cell: u32) -> &[u32] {
        let columns = self.cells.get(&cell);
        columns.map_or(&[], |columns| &columns.core_conditions.rounds)
    }

    /// A figure of a cell's valid samples in the order of rounds, in the metric's own unit.
    pub fn values(&self, cell: u32, figure: &Figure) -> impl Iterator<Item = f64> + Clone + '_ {
        let series = self.series(cell, figure);
        series
            .into_iter()
            .flat_map(Series::values)
            .map(|(_, value)| value)
    }

    /// A figure of a cell's valid samples with their rounds, ascending, in the metric's own unit.
    pub fn column(&self, cell: u32, figure: &Figure) -> Vec<(u32, f64)> {
        let series = self.series(cell, figure);
        series.into_iter().flat_map(Series::values).collect()
    }

    /// The parts of a CPU figure of a cell's valid samples, in the order of rounds; empty for other metrics.
    pub fn parts(&self, cell: u32, figure: &Figure) -> &[CpuParts] {
        let series = self.series(cell, figure);
        series.map_or(&[], |series| &series.parts)
    }

    /// Whether the figure is a percentile for which a valid sample of the cell has too few transactions. The samples
    /// that have it are then not like the others.
    pub fn is_sparse(&self, cell: u32, figure: &Figure) -> bool {
        self.series(cell, figure)
            .is_some_and(|series| series.is_sparse)
    }

    pub(crate) fn load_sums(&self, cell: u32, load: &str) -> Option<&LoadSums> {
        let mut loads = self.cells.get(&cell)?.loads.iter();
        let (_, sums) = loads.find(|(one, _)| one.name == load)?;
        Some(sums)
    }

    pub(crate) fn cost(&self) -> Option<WakeupCost> {
        self.cost
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = (u32, &CellColumns)> {
        self.cells.iter().map(|(index, columns)| (*index, columns))
    }

    pub(crate) fn core_conditions(&self, cell: u32) -> Option<&CoreConditions> {
        Some(&self.cells.get(&cell)?.core_conditions)
    }

    pub(crate) fn series(&self, cell: u32, figure: &Figure) -> Option<&Series> {
        let at = self.figures.iter().position(|one| one == figure)?;
        Some(&self.cells.get(&cell)?.series[at])
    }
}

impl CellColumns {
    pub(crate) fn series(&self, figure: usize) -> &Series {
        &self.series[figure]
    }
}

impl Series {
    fn add(&mut self, figure: &Figure, sample: &Sample, cost: Option<WakeupCost>) {
        if figure.metric.is_cpu() {
            self.add_parts(figure, sample, cost);
        } else if let Some(value) = figure.value(sample) {
            let at = place(&mut self.rounds, sample.round);
            self.values.insert(at, value);
        } else if figure.metric.is_percentile() {
            self.is_sparse = true;
        }
    }

    fn add_parts(&mut self, figure: &Figure, sample: &Sample, cost: Option<WakeupCost>) {
        let host = figure.metric.cpu_host(sample, &figure.load);
        self.has_unknown_transit |= host.is_some_and(|host| host.transit_cores.is_none());
        let Some(parts) = figure.metric.cpu_parts(sample, &figure.load) else {
            return;
        };
        let at = place(&mut self.rounds, sample.round);
        self.parts.insert(at, parts);
        if let Some((wakeups, cost)) = host.and_then(|host| host.wakeups).zip(cost) {
            let sum = self.wakeups.get_or_insert([0.0; 4]);
            sum[0] += wakeups.interrupts() as f64;
            sum[1] += cost.seconds(&wakeups);
            sum[2] += parts.busy_s;
            sum[3] += parts.units;
        }
    }

    /// Rounds and figures; for CPU metrics without the rounds in which the counter did not advance.
    pub(crate) fn values(&self) -> impl Iterator<Item = (u32, f64)> + Clone + '_ {
        let figure = |parts: &CpuParts| {
            Some(parts.figure()).filter(|value| *value > 0.0 && value.is_finite())
        };
        let plain = self.values.iter().copied().map(Some);
        let all = plain.chain(self.parts.iter().map(figure));
        let rounds = self.rounds.iter().copied();
        rounds
            .zip(all)
            .filter_map(|(round, value)| Some((round, value?)))
    }

    /// Rounds and the parts of CPU figures.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, CpuParts)> + '_ {
        self.rounds.iter().copied().zip(self.parts.iter().copied())
    }
}

impl CoreConditions {
    fn add(&mut self, sample: &Sample) {
        let at = place(&mut self.rounds, sample.round);
        let hosts = [&sample.sender, &sample.receiver].into_iter().flatten();
        let foreign = hosts.filter_map(|host| host.foreign_cores).reduce(f64::max);
        self.foreign.insert(at, foreign.unwrap_or(UNKNOWN));
        let distance = sample.core_distance_ns();
        self.distance_ns.insert(at, distance.unwrap_or(UNKNOWN));
    }

    /// Rounds, cores of other programs, and the cache-line round trip between the cores in nanoseconds.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, Option<f64>, Option<f64>)> + '_ {
        let known = |value: &f64| Some(*value).filter(|value| *value >= 0.0);
        let foreign = self.foreign.iter().map(known);
        let distance = self.distance_ns.iter().map(known);
        let rounds = self.rounds.iter().copied().zip(foreign).zip(distance);
        rounds.map(|((round, foreign), distance)| (round, foreign, distance))
    }
}

/// Inserts a round in ascending order and returns its index, which is usually the end.
fn place(rounds: &mut Vec<u32>, round: u32) -> usize {
    let at = match rounds.last() {
        Some(last) if *last > round => rounds.partition_point(|one| *one <= round),
        _ => rounds.len(),
    };
    rounds.insert(at, round);
    at
}

/// Values of two columns in the rounds that both have. Both columns are ascending.
pub(crate) fn join<A: Copy, B: Copy>(
    from: impl Iterator<Item = (u32, A)>,
    to: impl Iterator<Item = (u32, B)>,
) -> impl Iterator<Item = (A, B)> {
    let mut to = to.peekable();
    from.filter_map(move |(round, one)| {
        while to.next_if(|(other, _)| *other < round).is_some() {}
        let (_, other) = to.next_if(|(other, _)| *other == round)?;
        Some((one, other))
    })
}
