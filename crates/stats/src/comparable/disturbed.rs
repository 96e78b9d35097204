//! Check for other programs on the hosts' cores in one of the two cells: their CPU time counts as the cell's.

use wirecost_model::effect::RemarkKind;

use super::{Objection, Pair, remark};

/// Difference of the cores that other programs used, means over each cell's samples, above which no
/// verdict is given: twice the threshold that marks a sample.
pub const FOREIGN_CORES_DIFFERENCE: f64 = 0.1;

pub(super) fn check(pair: &Pair<'_>) -> Option<Objection> {
    let (from, to) = (pair.from.foreign_cores()?, pair.to.foreign_cores()?);
    if (from - to).abs() <= FOREIGN_CORES_DIFFERENCE {
        return None;
    }
    let text = format!(
        "other programs used {} cores of this machine",
        pair.figures((from, to))
    );
    let advice = "measure on a quieter machine, or with more rounds";
    Some(Objection::NotComparable(remark(
        RemarkKind::Disturbed,
        text,
        advice,
    )))
}
