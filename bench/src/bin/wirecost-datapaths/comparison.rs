//! Samples of two cells -> pairs -> ratios -> whether the bound is shown.

use serde::Serialize;
use wirecost_bench::cpu::{CPU_SECONDS, Cpu};
use wirecost_model::cell::Experiment;
use wirecost_model::metric::{Figure, Metric, segments_per_packet};
use wirecost_model::sample::{DeviceState, Mark, Sample};
use wirecost_stats::{PairedRatio, paired_ratio, summary};

use crate::row::{Bound, Row, Side};

/// A run is slow below this share of what the row's fast runs reach.
pub(crate) const SLOW: f64 = 0.75;
/// Which run is a fast one: this share of all the row's runs is not faster.
const FAST: f64 = 0.9;

/// What one round says of one cell.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Run {
    /// In the order of [`Comparison::figures`], in the metrics' units.
    pub(crate) figures: Vec<f64>,
    /// Segments of the wire in a packet as the receiving guest's TCP handled it.
    pub(crate) segments_per_packet: Option<f64>,
    /// Foreign load, steal or backlog drops above what marks a sample.
    pub(crate) disturbed: bool,
    /// Whether the load's own threads were the limit.
    pub(crate) generator_bound: bool,
}

/// Ours and the other in one round.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Pair {
    pub(crate) round: u32,
    pub(crate) ours: Run,
    pub(crate) other: Run,
}

/// One figure of both. The ratio is ours to the other's, paired.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Compared {
    pub(crate) metric: Metric,
    pub(crate) ratio: PairedRatio,
    /// Medians, in the metric's unit.
    pub(crate) ours: f64,
    pub(crate) other: f64,
}

/// Runs below [`SLOW`] of a fast one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Slow {
    pub(crate) ours: u32,
    pub(crate) other: u32,
}

/// Whether the bound is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Judgement {
    /// There are as many pairs as were asked for, and the interval's lower end is not below the bound.
    pub(crate) reached: bool,
    /// CPU for each unit, where the row judges it and there are seconds enough.
    pub(crate) cpu: Option<Vec<Cpu>>,
}

impl Judgement {
    pub(crate) fn holds(&self) -> bool {
        let cpu = self.cpu.as_ref();
        self.reached && cpu.is_none_or(|cpu| !cpu.contains(&Cpu::Higher))
    }
}

/// Ours against the other.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Comparison {
    /// What gets through, then CPU for each unit of it.
    pub(crate) figures: Vec<Compared>,
    pub(crate) slow: Slow,
    /// Medians: ours, the other's.
    pub(crate) segments_per_packet: Option<[f64; 2]>,
    /// Pairs in which either was disturbed.
    pub(crate) disturbed_pairs: u32,
    /// Pairs in which either was limited by the load's own threads and not by the path.
    pub(crate) generator_bound_pairs: u32,
    /// Why the first of the pairs that are missing is.
    pub(crate) missing: Option<String>,
    /// `None` where the row has no bound.
    pub(crate) judgement: Option<Judgement>,
    pub(crate) pairs: Vec<Pair>,
}

/// The samples of one row.
pub(crate) struct Measured<'a> {
    pub(crate) experiment: &'a Experiment,
    pub(crate) samples: &'a [Sample],
    figures: Vec<Figure>,
    /// Below which a run is slow, in the metric's own unit.
    slow: f64,
}

impl<'a> Measured<'a> {
    pub(crate) fn new(experiment: &'a Experiment, samples: &'a [Sample]) -> Self {
        let mut figures = experiment.figures();
        let speed = figures.iter().position(|figure| figure.metric.is_speed());
        figures.retain({
            let mut index = 0;
            move |figure| {
                index += 1;
                Some(index - 1) == speed || figure.metric.is_cpu()
            }
        });
        let valid = samples.iter().filter(|sample| sample.invalid.is_none());
        let mut speeds: Vec<f64> = valid
            .filter_map(|sample| figures.first()?.value(sample))
            .collect();
        speeds.sort_by(f64::total_cmp);
        let fast = (speeds.len() as f64 * FAST) as usize;
        let slow = speeds.get(fast).map_or(0.0, |fast| fast * SLOW);
        Self {
            experiment,
            samples,
            figures,
            slow,
        }
    }

    /// The samples of a cell, in the order of the rounds.
    fn of(&self, side: Side) -> impl Iterator<Item = &'a Sample> {
        let levels = [
            ("encapsulation", side.encapsulation),
            ("datapath", side.datapath),
        ];
        let mut cells = self.experiment.cells.iter();
        let cell = cells.find(|cell| {
            levels
                .iter()
                .all(|(key, is)| cell.levels.get(*key).is_some_and(|its| its == is))
        });
        let cell = cell.map(|cell| cell.index);
        let samples = self.samples.iter();
        samples.filter(move |sample| Some(sample.cell) == cell)
    }

    /// What a round says of a cell.
    ///
    /// # Errors
    /// In words, why it says nothing.
    fn run(&self, sample: &Sample) -> Result<Run, String> {
        if let Some(invalid) = &sample.invalid {
            return Err(invalid.reason().to_owned());
        }
        let figures: Option<Vec<f64>> = self
            .figures
            .iter()
            .map(|figure| {
                let value = figure.value(sample)? * figure.metric.unit().1;
                (value > 0.0 && value.is_finite()).then_some(value)
            })
            .collect();
        Ok(Run {
            figures: figures.ok_or("a figure is missing or is nothing")?,
            segments_per_packet: segments_per_packet(sample),
            disturbed: sample.marks.iter().any(|mark| !of_generator(mark)),
            generator_bound: sample.marks.iter().any(of_generator),
        })
    }

    /// Why a side was never measured, where it was not.
    pub(crate) fn never(&self, side: Side) -> Option<String> {
        let mut reason = None;
        for sample in self.of(side) {
            match self.run(sample) {
                Ok(_) => return None,
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        Some(reason.unwrap_or_else(|| "there is no sample of it".to_owned()))
    }

    /// The devices of a cell's path as they were read back; `None` where there is no sample of it.
    pub(crate) fn devices(&self, side: Side) -> Option<&'a [DeviceState]> {
        let mut samples = self.of(side).filter(|sample| !sample.devices.is_empty());
        samples.next().map(|sample| &sample.devices[..])
    }

    /// Where a cell was measured on other devices than the row says, in words.
    pub(crate) fn differs(&self, side: Side, row: &Row) -> Option<String> {
        let valid = |sample: &&Sample| sample.invalid.is_none();
        self.of(side)
            .filter(valid)
            .find_map(|sample| row.differs(side, &sample.devices))
    }

    /// Compares two cells. `wanted` are the pairs that were asked for, `seconds` the window.
    pub(crate) fn compare(
        &self,
        [ours, other]: [Side; 2],
        bound: Option<Bound>,
        wanted: u32,
        seconds: f64,
    ) -> Result<Comparison, String> {
        let (mut pairs, mut missing) = (Vec::new(), None);
        for sample in self.of(ours) {
            let round = sample.round;
            let beside = self.of(other).find(|other| other.round == round);
            let beside = beside.ok_or_else(|| "the run ended before".to_owned());
            let both = self.run(sample).and_then(|ours| {
                let other = self.run(beside?)?;
                Ok(Pair { round, ours, other })
            });
            match both {
                Ok(pair) => pairs.push(pair),
                Err(why) => missing = missing.or(Some(format!("round {}: {why}", round + 1))),
            }
        }
        let median = |values: &[f64]| {
            let summary = summary(values.iter().copied());
            summary.map_or(f64::NAN, |summary| summary.median)
        };
        let mut figures = Vec::with_capacity(self.figures.len());
        for (index, figure) in self.figures.iter().enumerate() {
            let of = |run: fn(&Pair) -> &Run| -> Vec<f64> {
                pairs.iter().map(|pair| run(pair).figures[index]).collect()
            };
            let (ours, other) = (of(|pair| &pair.ours), of(|pair| &pair.other));
            figures.push(Compared {
                metric: figure.metric,
                ratio: paired_ratio(&other, &ours).map_err(|error| error.to_string())?,
                ours: median(&ours),
                other: median(&other),
            });
        }
        let is_slow = |run: &Run| {
            let unit = self.figures.first().map_or(1.0, |one| one.metric.unit().1);
            run.figures
                .first()
                .is_some_and(|value| *value < self.slow * unit)
        };
        let slow = |run: fn(&Pair) -> &Run| -> u32 {
            pairs.iter().filter(|pair| is_slow(run(pair))).count() as u32
        };
        let segments = |run: fn(&Pair) -> &Run| -> Option<f64> {
            let values: Option<Vec<f64>> = pairs
                .iter()
                .map(|pair| run(pair).segments_per_packet)
                .collect();
            Some(median(&values.filter(|values| !values.is_empty())?))
        };
        let (of_ours, of_other) = (segments(|pair| &pair.ours), segments(|pair| &pair.other));
        let either = |of: fn(&Run) -> bool| {
            let has_it = pairs
                .iter()
                .filter(|pair| of(&pair.ours) || of(&pair.other));
            has_it.count() as u32
        };
        Ok(Comparison {
            judgement: bound.map(|bound| judge(bound, &figures, wanted, seconds)),
            figures,
            slow: Slow {
                ours: slow(|pair| &pair.ours),
                other: slow(|pair| &pair.other),
            },
            segments_per_packet: of_ours.zip(of_other).map(|(ours, other)| [ours, other]),
            disturbed_pairs: either(|run| run.disturbed),
            generator_bound_pairs: either(|run| run.generator_bound),
            missing,
            pairs,
        })
    }
}

fn of_generator(mark: &Mark) -> bool {
    matches!(mark, Mark::GeneratorBound { .. })
}

fn judge(bound: Bound, figures: &[Compared], wanted: u32, seconds: f64) -> Judgement {
    let speed = figures.first().map(|figure| figure.ratio);
    let low = speed.filter(|ratio| ratio.pairs >= wanted);
    let cpu_seconds = seconds * f64::from(speed.map_or(0, |ratio| ratio.pairs));
    let cpu = figures.iter().skip(1).map(|figure| Cpu::of(&figure.ratio));
    Judgement {
        reached: low
            .and_then(|ratio| ratio.low)
            .is_some_and(|low| low >= bound.at_least),
        cpu: (bound.cpu && cpu_seconds >= CPU_SECONDS).then(|| cpu.collect()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
