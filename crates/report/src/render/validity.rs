//! Findings that cast doubt on a result, in words. No sample is removed because of one.

use wirecost_model::sample::CoreDistance;
use wirecost_stats::Margin;
use wirecost_stats::validity::{Finding, OutlierSample, Trend};

use crate::render::{digits, words};
use crate::result::document::Document;
use crate::result::skipped;

/// Most outliers that are named one by one; all are in the JSON document.
const NAMED: usize = 8;

/// A sentence for every finding that may matter; all outliers together are one sentence.
pub(crate) fn sentences(doc: &Document) -> Vec<String> {
    let mut sentences: Vec<String> = doc
        .findings
        .iter()
        .filter_map(|finding| sentence(doc, finding))
        .collect();
    sentences.extend(within(doc));
    sentences.extend(outliers(doc));
    sentences
}

/// How many samples of the plan were taken and are valid; `None` where all are valid.
pub(crate) fn missing(doc: &Document) -> Option<String> {
    let skipped = skipped::samples(doc);
    let taken = doc.samples - skipped;
    // A record may have more rounds than its plan.
    let planned = doc.samples_planned?.saturating_sub(skipped);
    let valid: u32 = doc.measured().map(|cell| cell.valid).sum();
    (valid < planned).then(|| {
        format!(
            "Of {} in the plan {taken} were taken, and {valid} are valid.",
            words::count(planned as usize, "sample")
        )
    })
}

fn sentence(doc: &Document, finding: &Finding) -> Option<String> {
    match finding {
        Finding::Drift {
            load,
            metric,
            change,
            trend,
        } => Some(format!(
            "Drift: {} {} over the rounds, {} from the first to the last ({}); pairing within rounds removes it.",
            words::measured(doc, load, *metric),
            if *change > 1.0 { "rose" } else { "fell" },
            digits::ratio(*change),
            p(trend)
        )),
        Finding::ForeignLoad {
            load,
            metric,
            least,
            most,
            change,
            trend,
        } => matters(doc, *change).then(|| format!(
            "Foreign load: {} correlates with the CPU that other programs used, {} from {least:.3} to {most:.3} cores \
             ({}); measure on a quieter machine.",
            words::measured(doc, load, *metric),
            digits::ratio(*change),
            p(trend)
        )),
        Finding::CoreDistance {
            load,
            metric,
            nearest_ns,
            farthest_ns,
            change,
            trend,
        } => matters(doc, *change).then(|| format!(
            "Core distance: {} correlates with it, {} from {nearest_ns:.0} to {farthest_ns:.0} ns for a cache line to \
             the other core and back ({}); in a virtual machine the hypervisor moves virtual CPUs.",
            words::measured(doc, load, *metric),
            digits::ratio(*change),
            p(trend)
        )),
        Finding::TwoModes {
            load,
            metric,
            cell,
            ratio,
            modes,
        } => matters(doc, *ratio).then(|| format!(
            "Two modes: {} of {} falls into two groups, {} apart, with {:.0}% of {} in the lower one; its mean \
             depends on the share of each group.",
            words::measured(doc, load, *metric),
            name(doc, *cell),
            digits::ratio(*ratio),
            modes.low_share * 100.0,
            words::count(modes.n as usize, "sample"),
        )),
        Finding::Outliers { .. } => None,
    }
}

fn p(trend: &Trend) -> String {
    if trend.p < 0.001 {
        "p below 0.001".into()
    } else {
        format!("p {:.3}", trend.p)
    }
}

fn outliers(doc: &Document) -> Option<String> {
    let mut named: Vec<(f64, String)> = Vec::new();
    for finding in &doc.findings {
        let Finding::Outliers {
            load,
            metric,
            cell,
            samples,
        } = finding
        else {
            continue;
        };
        let one = |far: &OutlierSample| {
            let (round, ratio) = (far.round + 1, digits::ratio(far.of_median));
            let text = format!(
                "{}, {}, round {round} {ratio}",
                words::measured(doc, load, *metric),
                name(doc, *cell)
            );
            (far.of_median.ln().abs(), text)
        };
        named.extend(
            samples
                .iter()
                .filter(|far| matters(doc, far.of_median))
                .map(one),
        );
    }
    if named.is_empty() {
        return None;
    }
    let count = words::count(named.len(), "figure");
    // By distance from the median, farthest first: an outlier score is also large where a cell hardly varies.
    named.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = named.len().saturating_sub(NAMED);
    let mut texts: Vec<String> = named
        .into_iter()
        .take(NAMED)
        .map(|(_, text)| text)
        .collect();
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    Some(format!(
        "Outliers: {count} far from the others of their cell, as a multiple of the median (they count): {}.",
        texts.join("; ")
    ))
}

/// Whether a ratio is outside the plan's margin. Where a figure hardly varies (CPU behind a line), a test finds
/// differences too small to matter; all are in the JSON document.
fn matters(doc: &Document, ratio: f64) -> bool {
    let margin = Margin::of(doc.repeat.worth);
    !(margin.low..=margin.high).contains(&ratio)
}

fn name(doc: &Document, cell: u32) -> String {
    let name = words::cell_numbered(doc, cell);
    if name.is_empty() {
        format!("cell {cell}")
    } else {
        name
    }
}

/// A sentence where the core distance varied within a run; `None` where a finding already reports its effect.
fn within(doc: &Document) -> Option<String> {
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
