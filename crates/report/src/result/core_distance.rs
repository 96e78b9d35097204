//! Core distance of the lab: within a run, and of two runs compared.

use wirecost_model::sample::CoreDistance;

use crate::result::document::{CoreDistanceResult, Document};

/// Summary of the core distances of the samples that have one, nanoseconds; `None` without any.
pub(crate) fn of(distances: &[f64]) -> Option<CoreDistanceResult> {
    let mut all = distances.to_vec();
    all.sort_unstable_by(f64::total_cmp);
    Some(CoreDistanceResult {
        nearest_ns: *all.first()?,
        median_ns: all[(all.len() - 1) / 2],
        farthest_ns: *all.last()?,
    })
}

/// A caveat where the core distance differs between two runs.
pub(crate) fn between(before: &Document, after: &Document) -> Option<String> {
    let [before, after] = [before.cores_apart?, after.cores_apart?].map(|apart| apart.median_ns);
    CoreDistance::differ([before, after]).then(|| {
        format!(
            "the core distance differs: a cache line took {before:.0} ns from one core to the other and back before, \
             {after:.0} ns after (medians); in a virtual machine the hypervisor places virtual CPUs, and that can \
             change every figure"
        )
    })
}
