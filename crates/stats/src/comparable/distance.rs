//! Check of the distance between the cores: in a virtual machine the hypervisor may move them.

use wirecost_model::effect::RemarkKind;

use super::evidence::geometric;
use super::{Objection, Pair, remark};

/// Ratio of the two cells' cache-line round trip times in one round above which their cores were at
/// different distances.
pub const DISTANCE_RATIO: f64 = 1.5;
/// Share of the rounds, net of those in the opposite direction, in which the same cell's cores were
/// farther apart: above this the distance decides the figure. Cores that move only now and then
/// make the rounds differ, and the interval wider.
pub const DISTANT_ROUNDS_SHARE: f64 = 0.5;

pub(super) fn check(pair: &Pair<'_>) -> Option<Objection> {
    let (from, to) = (pair.from.core_distance(), pair.to.core_distance());
    let rounds: Vec<(f64, f64)> = from
        .iter()
        .filter_map(|(round, from)| Some((*from, *to.get(round)?)))
        .collect();
    let signs = rounds.iter().map(|(from, to)| {
        let core_distance = (to / from).ln();
        f64::from(u8::from(core_distance.abs() > DISTANCE_RATIO.ln())).copysign(core_distance)
    });
    let one_way = signs.sum::<f64>().abs() / rounds.len() as f64;
    if rounds.is_empty() || one_way <= DISTANT_ROUNDS_SHARE {
        return None;
    }
    let core_distance = (
        geometric(rounds.iter().map(|round| round.0))?,
        geometric(rounds.iter().map(|round| round.1))?,
    );
    let text = format!(
        "a cache line to the other core and back took {} ns",
        pair.figures(core_distance)
    );
    let advice = "measure again with more rounds, over which the distance averages out";
    Some(Objection::NotComparable(remark(
        RemarkKind::CoreDistance,
        text,
        advice,
    )))
}
