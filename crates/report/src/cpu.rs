//! Processors' time of a cell's samples, as far as its counter tells it.

use wirecost_model::metric::Metric;
use wirecost_model::sample::Sample;
use wirecost_stats::{CpuFigures, cpu_figures};

/// Figures of a load's core time over valid samples in the order of rounds; `None` where the metric is none of theirs.
pub(crate) fn figures<'a>(
    metric: Metric,
    load: &str,
    samples: impl Iterator<Item = &'a Sample>,
) -> Option<CpuFigures> {
    let parts: Vec<_> = samples
        .filter_map(|sample| metric.cpu_parts(sample, load))
        .collect();
    cpu_figures(&parts)
}
