//! Pairs -> ratios -> whether the bound holds.

use serde::Serialize;
use wirecost_bench::cpu::{CPU_SECONDS, Cpu};
use wirecost_model::sample::CoreDistance;
use wirecost_stats::{PairedRatio, RatioError, Stopping, paired_ratio_stopped, summary};

use crate::bound::Bound;
use crate::sample::Sample;

/// Ours and another, one right after the other.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Pair {
    pub(crate) ours: Sample,
    pub(crate) other: Sample,
}

/// Ours against one other. Ratios are ours to the other's, paired.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Comparison {
    pub(crate) figure: PairedRatio,
    /// What the figure's ratio has to be at least, where it is that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) least: Option<f64>,
    pub(crate) sender_cpu: PairedRatio,
    pub(crate) receiver_cpu: PairedRatio,
    /// Median and 99th percentile of latencies, where both tell them. They are shown and not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency: Option<[Latency; 2]>,
    pub(crate) medians: Medians,
    /// Pairs that do not count: the hypervisor moved the cores in between.
    pub(crate) moved_pairs: u32,
    /// Pairs in which either sample would be marked in a run.
    pub(crate) disturbed_pairs: u32,
    /// Pairs that count for the figure alone.
    pub(crate) pairs_without_cpu: u32,
    pub(crate) judgement: Judgement,
    pub(crate) pairs: Vec<Pair>,
}

/// The middle of each figure, in the sample's units.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Medians {
    pub(crate) ours: Figures,
    pub(crate) other: Figures,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Figures {
    pub(crate) figure: f64,
    pub(crate) own: f64,
    pub(crate) sender_cpu: f64,
    pub(crate) receiver_cpu: f64,
}

/// A percentile of latencies.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Latency {
    pub(crate) ratio: PairedRatio,
    /// Medians, ours and the other's, microseconds.
    pub(crate) us: [f64; 2],
}

impl Latency {
    /// The median and the 99th percentile; `None` where a sample has none.
    fn both(pairs: &[Pair], stopping: Stopping) -> Result<Option<[Self; 2]>, RatioError> {
        let known = |pair: &Pair| pair.samples().iter().all(|one| one.latency_us.is_some());
        if !pairs.iter().all(known) {
            return Ok(None);
        }
        let of = |us: fn(&Sample) -> f64| -> Result<Self, RatioError> {
            let median = |whose: fn(&Pair) -> &Sample| {
                let values = still(pairs).map(whose).map(us);
                summary(values).map_or(f64::NAN, |summary| summary.median)
            };
            Ok(Self {
                ratio: ratio(us, still(pairs), stopping)?,
                us: [median(|pair| &pair.ours), median(|pair| &pair.other)],
            })
        };
        Ok(Some([
            of(|sample| sample.latency_us.map_or(f64::NAN, |us| us[0]))?,
            of(|sample| sample.latency_us.map_or(f64::NAN, |us| us[1]))?,
        ]))
    }
}

/// Whether the bound holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Judgement {
    /// The figure's interval is where the row wants it; `None` where it wants nothing.
    pub(crate) reached: Option<bool>,
    /// CPU for each unit at the sender and the receiver, where the row judges it and there are seconds enough.
    pub(crate) cpu: Option<[Cpu; 2]>,
}

/// The ratio of a figure, ours to the other's.
fn ratio<'p>(
    figure: fn(&Sample) -> f64,
    pairs: impl Iterator<Item = &'p Pair>,
    stopping: Stopping,
) -> Result<PairedRatio, RatioError> {
    let (other, ours): (Vec<f64>, Vec<f64>) = pairs
        .map(|pair| (figure(&pair.other), figure(&pair.ours)))
        .unzip();
    paired_ratio_stopped(&other, &ours, stopping)
}

/// Pairs that count.
pub(crate) fn still(pairs: &[Pair]) -> impl Iterator<Item = &Pair> {
    pairs.iter().filter(|pair| !pair.moved())
}

/// Whether more pairs would not change what is said of the figure.
///
/// # Errors
/// A figure without a logarithm.
pub(crate) fn is_settled(bound: Bound, pairs: &[Pair]) -> Result<bool, RatioError> {
    let ratio = ratio(|sample| sample.figure, still(pairs), Stopping::Sequential)?;
    Ok(bound.is_settled(ratio.interval()))
}

impl Judgement {
    /// `cpu_seconds`: of each of both in sum; `None` where CPU is not judged.
    fn of(ratios: [&PairedRatio; 3], bound: Bound, cpu_seconds: Option<f64>) -> Self {
        let [figure, sender, receiver] = ratios;
        Self {
            reached: bound.reached(figure.interval()),
            cpu: cpu_seconds
                .filter(|seconds| *seconds >= CPU_SECONDS)
                .map(|_| [Cpu::of(sender), Cpu::of(receiver)]),
        }
    }

    pub(crate) fn holds(self) -> bool {
        self.reached != Some(false) && self.cpu.is_none_or(|cpu| !cpu.contains(&Cpu::Higher))
    }
}

impl Comparison {
    /// `window`: seconds of each sample, where CPU is judged.
    ///
    /// A pair in which one of both has no CPU counts for the figure alone: a load takes some, so the machine's counters
    /// were wrong (a hypervisor that stole more than the window leaves nothing).
    ///
    /// # Errors
    /// A figure without a logarithm.
    pub(crate) fn new(
        bound: Bound,
        window: Option<f64>,
        stopping: Stopping,
        pairs: Vec<Pair>,
    ) -> Result<Self, RatioError> {
        let figure = ratio(|sample| sample.figure, still(&pairs), stopping)?;
        let counted = || still(&pairs).filter(|pair| pair.has_cpu());
        let sender_cpu = ratio(|sample| sample.sender_cpu, counted(), stopping)?;
        let receiver_cpu = ratio(|sample| sample.receiver_cpu, counted(), stopping)?;
        let counted = counted().count();
        let disturbed = |pair: &&Pair| pair.ours.disturbed || pair.other.disturbed;
        let cpu_seconds = window.map(|seconds| seconds * counted as f64);
        Ok(Self {
            judgement: Judgement::of([&figure, &sender_cpu, &receiver_cpu], bound, cpu_seconds),
            figure,
            least: bound.least(),
            sender_cpu,
            receiver_cpu,
            latency: Latency::both(&pairs, stopping)?,
            medians: Medians {
                ours: Figures::medians(&pairs, |pair| &pair.ours),
                other: Figures::medians(&pairs, |pair| &pair.other),
            },
            moved_pairs: (pairs.len() - still(&pairs).count()) as u32,
            disturbed_pairs: still(&pairs).filter(disturbed).count() as u32,
            pairs_without_cpu: (still(&pairs).count() - counted) as u32,
            pairs,
        })
    }
}

impl Pair {
    pub(crate) fn samples(&self) -> [&Sample; 2] {
        [&self.ours, &self.other]
    }

    /// Whether the cores were farther apart at one time than at another, before or after either sample.
    fn moved(&self) -> bool {
        let looks = self
            .samples()
            .into_iter()
            .flat_map(|sample| sample.apart_ns);
        CoreDistance::differ(looks.flatten())
    }

    fn has_cpu(&self) -> bool {
        self.samples()
            .iter()
            .all(|sample| sample.sender_cpu > 0.0 && sample.receiver_cpu > 0.0)
    }
}

impl Figures {
    fn medians(pairs: &[Pair], whose: fn(&Pair) -> &Sample) -> Self {
        let median = |figure: fn(&Sample) -> f64| {
            summary(still(pairs).map(whose).map(figure)).map_or(f64::NAN, |summary| summary.median)
        };
        Self {
            figure: median(|sample| sample.figure),
            own: median(|sample| sample.own),
            sender_cpu: median(|sample| sample.sender_cpu),
            receiver_cpu: median(|sample| sample.receiver_cpu),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample(figure: f64, cpu: f64) -> Sample {
        Sample {
            figure: 10.0 * figure,
            own: 9.5 * figure,
            latency_us: None,
            sender_cpu: 10.0 * cpu,
            receiver_cpu: 10.0,
            foreign_cores: 0.0,
            apart_ns: [Some(53.0); 2],
            disturbed: false,
            peak_bytes: None,
            generator_bound: None,
        }
    }

    /// The other at 10 Gbit/s and 10 % of a core per Gbit/s, ours at these multiples of it, in windows of 4 s.
    pub(crate) fn comparison(bound: Bound, figures: &[f64], cpu: &[f64]) -> Comparison {
        let pairs = figures
            .iter()
            .zip(cpu)
            .map(|(&figure, &cpu)| Pair {
                ours: sample(figure, cpu),
                other: sample(1.0, 1.0),
            })
            .collect();
        Comparison::new(bound, Some(4.0), Stopping::Fixed, pairs).expect("positive")
    }

    const AS_GOOD: Bound = Bound::AtLeast(0.97);

    #[test]
    fn as_fast_and_as_cheap_holds() {
        let same = comparison(AS_GOOD, &[0.99, 1.0, 1.01], &[1.01, 1.0, 0.99]);
        assert!(same.judgement.holds(), "{same:?}");
    }

    #[test]
    fn a_low_mean_and_a_wide_interval_both_miss_the_bound() {
        for figures in [[0.95, 0.95, 0.951], [0.8, 1.0, 1.2]] {
            let judged = comparison(AS_GOOD, &figures, &[1.0; 3]).judgement;
            assert!(judged.reached == Some(false) && !judged.holds());
        }
    }

    #[test]
    fn agreement_is_missed_on_either_side() {
        let judged = |figures: &[f64]| {
            comparison(Bound::Agree(0.01), figures, &[1.0; 3])
                .judgement
                .reached
                == Some(true)
        };
        assert!(judged(&[1.001, 0.999, 1.0]));
        assert!(!judged(&[1.02, 1.021, 1.02]));
        assert!(!judged(&[0.98, 0.981, 0.98]));
    }

    #[test]
    fn a_pair_between_whose_samples_the_cores_moved_does_not_count() {
        let pairs = comparison(AS_GOOD, &[0.4, 1.0, 1.01, 0.99], &[1.0; 4]).pairs;
        let compared = |apart_ns: [Option<f64>; 2]| {
            let mut pairs = pairs.clone();
            pairs[0].ours.apart_ns = apart_ns;
            Comparison::new(AS_GOOD, None, Stopping::Fixed, pairs).expect("positive")
        };
        for moved in [
            [Some(53.0), Some(320.0)],
            [Some(320.0); 2],
            [Some(30.0), None],
        ] {
            let compared = compared(moved);
            assert_eq!((compared.moved_pairs, compared.figure.pairs), (1, 3));
            assert!(compared.judgement.holds(), "{compared:?}");
            assert!((compared.medians.ours.figure - 10.0).abs() < 1e-9);
            assert_eq!(is_settled(AS_GOOD, &compared.pairs), Ok(true));
        }
        for still in [[Some(61.0), Some(50.0)], [None; 2]] {
            let compared = compared(still);
            assert_eq!((compared.moved_pairs, compared.figure.pairs), (0, 4));
            assert!(!compared.judgement.holds());
        }
    }

    #[test]
    fn it_is_settled_once_the_interval_is_on_one_side_of_the_bound() {
        let settled = |bound, figures: &[f64]| {
            let compared = comparison(bound, figures, &[1.0; 4]);
            is_settled(bound, &compared.pairs).expect("positive")
        };
        assert!(settled(AS_GOOD, &[1.0, 1.01, 1.0, 1.01]));
        assert!(settled(AS_GOOD, &[0.9, 0.91, 0.9, 0.91]));
        assert!(!settled(AS_GOOD, &[0.8, 1.2, 0.9, 1.1]));
        assert!(!settled(AS_GOOD, &[1.0]));
        let agree = Bound::Agree(0.01);
        assert!(settled(agree, &[1.0, 1.001, 1.0, 1.001]));
        assert!(settled(agree, &[1.1, 1.101, 1.1, 1.101]));
        assert!(!settled(agree, &[1.01, 1.0, 1.02, 1.0]));
        assert!(settled(Bound::Shown, &[0.8, 1.2]));
    }

    #[test]
    fn cpu_is_higher_only_beyond_noise_and_the_goal_is_told() {
        let cpu = |cpu: &[f64; 3]| comparison(AS_GOOD, &[1.0; 3], cpu).judgement;
        assert!(!cpu(&[1.05, 1.06, 1.05]).holds());
        assert!(cpu(&[0.9, 1.2, 1.1]).holds());
        assert_eq!(
            cpu(&[0.8, 0.81, 0.8]).cpu,
            Some([Cpu::Goal, Cpu::NotHigher])
        );
    }

    #[test]
    fn cpu_of_less_than_ten_seconds_is_not_judged() {
        let few = comparison(AS_GOOD, &[1.0; 2], &[1.5, 1.51]).judgement;
        assert_eq!(few.cpu, None);
        assert!(few.holds());
    }

    #[test]
    fn a_window_without_cpu_counts_for_the_figure_alone() {
        let mut pairs = comparison(AS_GOOD, &[1.0, 1.1, 1.2], &[1.0; 3]).pairs;
        pairs[1].ours.receiver_cpu = 0.0;
        let of_pairs =
            |window, pairs| Comparison::new(AS_GOOD, Some(window), Stopping::Fixed, pairs);
        let judged = of_pairs(4.0, pairs.clone()).expect("two with CPU");
        assert_eq!(judged.pairs_without_cpu, 1);
        let of = |ratio: &PairedRatio| ratio.pairs;
        assert_eq!((of(&judged.figure), of(&judged.receiver_cpu)), (3, 2));
        assert_eq!(judged.judgement.cpu, None, "8 s of CPU");
        for pair in &mut pairs {
            pair.other.sender_cpu = 0.0;
        }
        let judged = of_pairs(20.0, pairs).expect("figures");
        assert_eq!((of(&judged.sender_cpu), judged.judgement.cpu), (0, None));
    }
}
