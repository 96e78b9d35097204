//! How far apart the lab's cores were: told where that changed within a run, or between two.

use wirecost_model::sample::CoreDistance;
use wirecost_stats::validity::Finding;

use crate::document::{CoreDistanceResult, Document};

/// Of every sample that knows, nanoseconds.
pub(crate) fn of(distances: &[f64]) -> Option<CoreDistanceResult> {
    let mut all = distances.to_vec();
    all.sort_unstable_by(f64::total_cmp);
    Some(CoreDistanceResult {
        nearest_ns: *all.first()?,
        median_ns: all[(all.len() - 1) / 2],
        farthest_ns: *all.last()?,
    })
}

/// Where they moved within a run; nothing where a finding says already what that did.
pub(crate) fn within(doc: &Document) -> Option<String> {
    let apart = doc.cores_apart.as_ref()?;
    let mut findings = doc.findings.iter();
    let told = findings.any(|finding| matches!(finding, Finding::CoreDistance { .. }));
    (!told && CoreDistance::differ([apart.nearest_ns, apart.farthest_ns])).then(|| {
        format!(
            "Core distance: a cache line took {:.0} to {:.0} ns from one core to the other and back, median {:.0}; in \
             a virtual machine the hypervisor moves virtual CPUs, and that can change every figure.",
            apart.nearest_ns, apart.farthest_ns, apart.median_ns
        )
    })
}

/// Where they were elsewhere in one of two runs.
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
