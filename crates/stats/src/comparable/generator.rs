//! Check for generator-bound loads.

use wirecost_model::effect::RemarkKind;
use wirecost_model::sample::GENERATOR_BOUND_ADVICE;

use super::{Evidence, Objection, Pair, remark};

/// Share of a cell's samples (0..=1) from which on the load's threads count as its bottleneck.
pub const BOTTLENECK_SAMPLES_SHARE: f64 = 0.5;

pub(super) fn check(pair: &Pair<'_>) -> Option<Objection> {
    if pair.metric.is_latency() {
        return None;
    }
    let bound = |cell: &Evidence<'_>| {
        cell.count() > 0
            && cell.generator_bound as f64 >= cell.count() as f64 * BOTTLENECK_SAMPLES_SHARE
    };
    if !bound(pair.from) && !bound(pair.to) {
        return None;
    }
    let of = |cell: &Evidence<'_>| format!("{} of {} samples", cell.generator_bound, cell.count());
    let text = format!(
        "the load's own threads were the limit in {}",
        pair.texts((&of(pair.from), &of(pair.to)))
    );
    // A thread of a paced load is idle while it waits.
    let is_paced = |cell: &Evidence<'_>| {
        let load = &cell.load.load;
        load.rate.is_some() || load.most_per_second.is_some()
    };
    let paced = is_paced(pair.from) || is_paced(pair.to);
    let about = pair.subject.is_about_generator() && !paced;
    Some(Objection::unless(
        about,
        remark(RemarkKind::Generator, text, GENERATOR_BOUND_ADVICE),
    ))
}
