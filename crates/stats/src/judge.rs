//! Judges every figure of two runs against each other: verdicts for each figure alone and as a family.

use serde::Serialize;
use wirecost_model::effect::Verdict;
use wirecost_model::metric::Direction;

use crate::compare::{Unpaired, compare_by_welch};
use crate::family::{Corrected, FamilyMember, Ps, adjust};
use crate::sequential::Stopping;
use crate::verdict::verdict;

/// One figure's samples in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureSamples {
    /// Samples of the run compared with.
    pub from: Vec<f64>,
    /// Samples of the run compared.
    pub to: Vec<f64>,
    /// Direction in which the figure is better.
    pub better: Direction,
}

/// The comparison and verdict of one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FigureVerdict {
    /// The ratio of the two runs.
    #[serde(flatten)]
    pub unpaired: Unpaired,
    /// The verdict of Welch's interval, as if this were the only figure.
    pub verdict: Verdict,
    /// The verdict of the rank interval; absent without one.
    pub rank_verdict: Option<Verdict>,
    /// p-values and verdict after correction for the number of figures compared (Holm), as
    /// [`correct`](crate::correct) does for the effects within a run.
    pub corrected: Corrected,
}

/// Compares every figure by [`compare`](crate::compare) and corrects the verdicts for their number.
/// `worth` is the margin, a fraction from 0.
pub fn judge(figures: &[FigureSamples], worth: f64) -> Vec<FigureVerdict> {
    let margin = worth.ln_1p();
    let (weighed, claims): (Vec<Unpaired>, Vec<FamilyMember>) = figures
        .iter()
        .map(|FigureSamples { from, to, better }| {
            let (unpaired, welch) = compare_by_welch(from, to);
            let claim = FamilyMember {
                ps: welch.map(|welch| Ps::at(welch.difference, welch.error, welch.freedom, margin)),
                up: unpaired.ratio.is_some_and(|ratio| ratio > 1.0),
                better: *better,
                raw: verdict(unpaired.interval, *better, worth),
            };
            (unpaired, claim)
        })
        .unzip();
    let corrected = adjust(&claims, Stopping::Fixed.alpha());
    weighed
        .into_iter()
        .zip(claims)
        .zip(corrected)
        .map(|((unpaired, claim), corrected)| FigureVerdict {
            unpaired,
            verdict: claim.raw,
            rank_verdict: unpaired
                .rank_interval
                .map(|interval| verdict(Some(interval), claim.better, worth)),
            corrected,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sides(from: &[f64], to: &[f64], better: Direction) -> FigureSamples {
        FigureSamples {
            from: from.into(),
            to: to.into(),
            better,
        }
    }

    #[test]
    fn less_throughput_costs_and_less_cpu_pays() {
        let (from, to) = ([10.0, 10.1, 9.9, 10.0], [8.0, 8.1, 7.9, 8.0]);
        let judged = judge(
            &[
                sides(&from, &to, Direction::Higher),
                sides(&from, &to, Direction::Lower),
            ],
            0.05,
        );
        assert_eq!(judged[0].verdict, Verdict::Costs);
        assert_eq!(judged[0].corrected.verdict, Verdict::Costs);
        assert_eq!(judged[1].verdict, Verdict::Pays);
    }

    #[test]
    fn a_weak_verdict_does_not_stand_among_many() {
        // Alone it costs, by a hair.
        let from = [10.0, 10.3, 9.7, 10.1, 9.9, 10.0];
        let weak = from.map(|value| value * 0.92);
        let wild = [10.0, 14.0, 7.0, 12.0, 8.0, 10.5];
        let noise = sides(&wild, &wild, Direction::Higher);
        let weak = sides(&from, &weak, Direction::Higher);
        let alone = judge(std::slice::from_ref(&weak), 0.05);
        assert_eq!(alone[0].verdict, Verdict::Costs);
        assert_eq!(alone[0].corrected.verdict, Verdict::Costs);
        let mut family = vec![noise; 7];
        family.push(weak);
        let among = judge(&family, 0.05).pop().expect("the last");
        assert_eq!(among.verdict, Verdict::Costs);
        assert_eq!(among.unpaired, alone[0].unpaired);
        assert_eq!(among.corrected.verdict, Verdict::Loses);
    }

    #[test]
    fn one_sample_gives_no_verdict_and_is_not_counted() {
        let from = [10.0, 10.1, 9.9, 10.0];
        let to = from.map(|value| value * 0.8);
        let single = sides(&[10.0], &[5.0], Direction::Higher);
        let judged = judge(&[single, sides(&from, &to, Direction::Higher)], 0.05);
        assert_eq!(judged[0].verdict, Verdict::CannotTellYet);
        let ratio = judged[0].unpaired.ratio.expect("a ratio");
        assert!((ratio - 0.5).abs() < 1e-12);
        let corrected = judged[1].corrected;
        assert_eq!(corrected.p, corrected.adjusted_p);
    }

    proptest! {
        #[test]
        fn a_family_of_one_keeps_its_verdict(
            from in proptest::collection::vec(0.8f64..1.2, 2..10),
            to in proptest::collection::vec(0.8f64..1.2, 2..10), worth in 0.01f64..0.2,
        ) {
            let judged = judge(&[sides(&from, &to, Direction::Higher)], worth);
            prop_assert_eq!(judged[0].verdict, judged[0].corrected.verdict);
        }
    }
}
