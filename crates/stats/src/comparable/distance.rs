//! How far apart the cores were: in a virtual machine the hypervisor moves them.

use wirecost_model::effect::RemarkKind;

use super::evidence::geometric;
use super::{Pair, Says, remark};

/// A cache line took so many times as long in one cell as in the other, on average over the rounds.
pub const FARTHER: f64 = 1.5;

pub(super) fn check(pair: &Pair<'_>) -> Option<Says> {
    let (from, to) = (pair.from.apart(), pair.to.apart());
    let rounds: Vec<u32> = from
        .keys()
        .copied()
        .filter(|round| to.contains_key(round))
        .collect();
    let mean =
        |of: &std::collections::BTreeMap<u32, f64>| geometric(rounds.iter().map(|round| of[round]));
    let apart = (mean(&from)?, mean(&to)?);
    if (apart.1 / apart.0).ln().abs() <= FARTHER.ln() {
        return None;
    }
    let text = format!(
        "a cache line to the other core and back took {} ns",
        pair.figures(apart)
    );
    let advice = "measure again, with more rounds: they mix where the cores are";
    Some(Says::Bars(remark(RemarkKind::CoreDistance, text, advice)))
}
