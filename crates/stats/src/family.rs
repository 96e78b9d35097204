//! Correction for many effects at once: the verdicts that remain when the whole family, not each
//! effect, may be wrong once in twenty times.

use serde::Serialize;
use wirecost_model::effect::Verdict;
use wirecost_model::metric::Direction;

use crate::interval::{moments, t_tail};
use crate::ratio::PairedRatio;
use crate::sequential::Stopping;
use crate::verdict::verdict;

/// An effect's p-values, and its verdict after correction for the family.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Corrected {
    /// Two-sided p of Student's t that there is no effect; absent below two pairs.
    pub p: Option<f64>,
    /// `p` adjusted by Holm's method over the family.
    pub adjusted_p: Option<f64>,
    /// p of the claim about the margin that the figures support most: beyond the margin on either side, or within it.
    pub claim_p: Option<f64>,
    /// `claim_p` adjusted by Holm's method over the family.
    pub adjusted_claim_p: Option<f64>,
    /// The verdict that remains after correction.
    pub verdict: Verdict,
}

/// Adjusts p-values by Holm's step-down method ("A simple sequentially rejective multiple test
/// procedure", Scand. J. Statist. 6 (1979) 65), for any dependence between them. `None` stays
/// `None` and does not count.
pub fn holm(p: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = p
        .iter()
        .enumerate()
        .filter_map(|(i, p)| Some((i, (*p)?)))
        .collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut adjusted = vec![None; p.len()];
    let (count, mut most) = (order.len(), 0.0f64);
    for (rank, (i, p)) in order.into_iter().enumerate() {
        most = most.max(p * (count - rank) as f64).min(1.0);
        adjusted[i] = Some(most);
    }
    adjusted
}

/// Corrects the verdicts of a family, given the log ratios of every effect and which direction is
/// better. `worth` is the margin, a fraction.
///
/// Per effect the margin asks three questions of which only one can be answered yes - above, below,
/// within - so they need no correction among themselves (Goeman, Solari and Stijnen, "Three-sided
/// hypothesis testing", Stat. Med. 29 (2010) 2117). Over the effects Holm's method is applied to
/// the answer with the smallest p (directional decisions with Holm: Shaffer, "Control of
/// directional errors with stagewise multiple test procedures", Ann. Statist. 8 (1980) 1342).
/// A verdict whose adjusted p is above alpha falls back to gains or loses if its sign stands after
/// correction, and else to cannot tell yet.
pub fn correct(effects: &[(&[f64], Direction)], worth: f64, stopping: Stopping) -> Vec<Corrected> {
    let margin = worth.ln_1p();
    let claims: Vec<FamilyMember> = effects
        .iter()
        .map(|&(logs, better)| {
            let ratio = PairedRatio::of_logs(logs, stopping);
            FamilyMember {
                ps: Ps::of(logs, margin),
                up: ratio.ratio.is_some_and(|ratio| ratio > 1.0),
                better,
                raw: verdict(ratio.interval(), better, worth),
            }
        })
        .collect();
    adjust(&claims, stopping.alpha())
}

/// One effect of a family before correction.
pub(crate) struct FamilyMember {
    pub(crate) ps: Option<Ps>,
    /// Whether the ratio is above 1.
    pub(crate) up: bool,
    pub(crate) better: Direction,
    pub(crate) raw: Verdict,
}

/// The corrected verdict of every claim at `alpha`, see [`correct`].
pub(crate) fn adjust(claims: &[FamilyMember], alpha: f64) -> Vec<Corrected> {
    let zero: Vec<_> = claims.iter().map(|c| c.ps.map(|ps| ps.zero)).collect();
    let claim: Vec<_> = claims.iter().map(|c| c.ps.map(|ps| ps.claim)).collect();
    let (adjusted_zero, adjusted_claim) = (holm(&zero), holm(&claim));
    let stands = |p: Option<f64>| p.is_some_and(|p| p <= alpha);
    claims
        .iter()
        .enumerate()
        .map(|(i, claim_of)| {
            let verdict = match claim_of.raw {
                raw @ (Verdict::Pays | Verdict::Costs | Verdict::MakesNoDifference)
                    if stands(adjusted_claim[i]) =>
                {
                    raw
                }
                Verdict::CannotTellYet => Verdict::CannotTellYet,
                _ if stands(adjusted_zero[i]) => {
                    if claim_of.up == (claim_of.better == Direction::Higher) {
                        Verdict::Gains
                    } else {
                        Verdict::Loses
                    }
                }
                _ => Verdict::CannotTellYet,
            };
            Corrected {
                p: zero[i],
                adjusted_p: adjusted_zero[i],
                claim_p: claim[i],
                adjusted_claim_p: adjusted_claim[i],
                verdict,
            }
        })
        .collect()
}

#[derive(Clone, Copy)]
pub(crate) struct Ps {
    zero: f64,
    claim: f64,
}

impl Ps {
    fn of(logs: &[f64], margin: f64) -> Option<Self> {
        let (mean, Some(sd)) = moments(logs)? else {
            return None;
        };
        let error = sd / (logs.len() as f64).sqrt();
        Some(Self::at(mean, error, (logs.len() - 1) as f64, margin))
    }

    /// p-values from a mean log ratio, its standard error and degrees of freedom.
    pub(crate) fn at(mean: f64, error: f64, freedom: f64, margin: f64) -> Self {
        // Twice the tail: each side is judged at alpha / 2, as the interval's ends are.
        let p = |distance: f64| {
            if error > 0.0 {
                (2.0 * t_tail(distance / error, freedom)).min(1.0)
            } else if distance > 0.0 {
                0.0
            } else {
                1.0
            }
        };
        Self {
            zero: p(mean.abs()),
            claim: p(mean.abs() - margin).min(p(margin - mean.abs())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn absent_ones_are_not_counted() {
        assert_eq!(
            holm(&[Some(0.02), None, Some(0.03)]),
            [Some(0.04), None, Some(0.04)]
        );
        assert_eq!(holm(&[]), []);
    }

    #[test]
    fn one_weak_verdict_among_many_falls_back() {
        // Alone it pays, by a hair.
        let weak: Vec<f64> = [0.02, -0.02, 0.03, -0.03, 0.01, -0.01]
            .map(|e| 0.075 + e)
            .into();
        let noise: Vec<f64> = vec![0.2, -0.2, 0.15, -0.15, 0.1, -0.1];
        let alone = correct(&[(&weak, Direction::Higher)], 0.05, Stopping::Fixed);
        assert_eq!(alone[0].verdict, Verdict::Pays);
        let mut family: Vec<(&[f64], Direction)> = vec![(&weak, Direction::Higher)];
        family.extend((0..5).map(|_| (&noise[..], Direction::Higher)));
        let among = correct(&family, 0.05, Stopping::Fixed);
        assert_eq!(among[0].verdict, Verdict::Gains);
        assert!(
            among[1..]
                .iter()
                .all(|c| c.verdict == Verdict::CannotTellYet)
        );
        let lower = correct(&[(&weak, Direction::Lower)], 0.05, Stopping::Fixed);
        assert_eq!(lower[0].verdict, Verdict::Costs);
    }

    proptest! {
        #[test]
        fn adjusted_ps_are_never_smaller_and_keep_their_order(
            p in proptest::collection::vec(0.0f64..1.0, 1..20),
        ) {
            let given: Vec<_> = p.iter().copied().map(Some).collect();
            let adjusted: Vec<f64> = holm(&given).into_iter().map(|p| p.expect("given")).collect();
            for (i, a) in p.iter().enumerate() {
                prop_assert!(adjusted[i] >= *a && adjusted[i] <= 1.0);
                for (j, b) in p.iter().enumerate() {
                    prop_assert!(a > b || adjusted[i] <= adjusted[j]);
                }
            }
        }

        #[test]
        fn a_family_of_one_keeps_its_verdict(
            logs in proptest::collection::vec(-0.2f64..0.2, 2..12), worth in 0.01f64..0.2,
        ) {
            let alone = correct(&[(&logs, Direction::Higher)], worth, Stopping::Fixed);
            let raw = PairedRatio::of_logs(&logs, Stopping::Fixed).interval();
            prop_assert_eq!(alone[0].verdict, verdict(raw, Direction::Higher, worth));
        }
    }
}
