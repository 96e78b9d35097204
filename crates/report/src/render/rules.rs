//! Results of other tools' stopping rules on the same samples, in words.

use wirecost_stats::rules::PbenchOutcome;

use super::cells::Labels;
use super::section::Section;
use super::table::{ColumnHead, NONE, Table};
use super::words;
use crate::result::document::{CellRules, Document};

/// A section with a row for each cell, and an explanation of the rules.
pub(crate) fn section(doc: &Document) -> Section {
    let labels = Labels::of(doc);
    let heads = ["trimmed#", "worst-of#", "pbench", "netperf"].map(ColumnHead::new);
    let mut rules = doc.other_rules.cells.iter();
    let moves = rules.any(|cell| cell.worst_of_move_s.is_some());
    let of_moves = ["trimmed move s#", "worst move s#"].map(ColumnHead::new);
    let of_moves = of_moves.into_iter().filter(|_| moves);
    let heads = labels.heads().into_iter().chain(heads).chain(of_moves);
    let mut table = Table::of("", heads.collect());
    for (result, cell) in doc.cells.iter().zip(&doc.other_rules.cells) {
        let mut fields = labels.fields(result);
        fields.extend([
            figure(cell.trimmed_gbps),
            figure(cell.worst_of_gbps),
            by_pbench(cell),
            by_netperf(cell),
        ]);
        if moves {
            fields.extend([cell.trimmed_move_s, cell.worst_of_move_s].map(figure));
        }
        table.row(Some(cell.cell), fields);
    }
    Section {
        heading: if moves {
            "Rules of other tools on the same samples, Gbit/s and seconds of moves; none decides a verdict"
        } else {
            "Stopping rules of other tools on the same throughput samples, Gbit/s; none decides a verdict"
        }
        .into(),
        tables: vec![table.finish("`other_rules` of `wirecost report RUN_DIR --json`.")],
        meanings: meanings(doc),
        ..Section::default()
    }
}

/// Explains each rule in a sentence.
fn meanings(doc: &Document) -> Vec<String> {
    let rules = &doc.other_rules;
    let (pbench, netperf) = (rules.pbench, rules.netperf);
    let mut meanings = vec![
        format!(
            "pbench: sets of {} samples until one has a population standard deviation within {:.0}% of its mean, {} \
             sets at most; the other sets are discarded.",
            pbench.samples,
            pbench.within * 100.0,
            pbench.sets
        ),
        "trimmed: the mean without the highest and the lowest. worst-of: the lowest; of moves the longest."
            .to_owned(),
        format!(
            "netperf: {} to {} iterations until the 99% interval of the mean is {:.0}% wide in all.",
            netperf.min,
            netperf.max,
            netperf.width * 100.0
        ),
    ];
    meanings.extend(time(doc));
    meanings
}

/// The time that the samples took here, and that pbench's rule would have taken.
fn time(doc: &Document) -> Option<String> {
    let rules = &doc.other_rules;
    let pbench_s = rules.pbench_s?;
    let samples: u32 = rules.cells.iter().map(|cell| cell.samples).sum();
    Some(format!(
        "Time: the cells' samples took {:.0} s here ({}); pbench's rule would have taken {pbench_s:.0} s on average, \
         at the observed spread.",
        rules.ours_s,
        words::count(samples as usize, "valid sample"),
    ))
}

/// pbench's result: `6.20 (1 set)`, `a failure: none of 6 sets settled`, `not settled after 2 sets; no more samples`.
fn by_pbench(cell: &CellRules) -> String {
    let sets = words::count(cell.pbench.sets as usize, "set");
    match cell.pbench.outcome {
        PbenchOutcome::Settled { mean, .. } => format!("{mean:.2} ({sets})"),
        PbenchOutcome::NeverSettled => format!("a failure: none of {sets} settled"),
        PbenchOutcome::RanOut => format!("not settled after {sets}; no more samples"),
    }
}

/// netperf's result: `6.21 (3 iterations)`; where the interval is not narrow enough, also its width.
fn by_netperf(cell: &CellRules) -> String {
    cell.netperf.map_or_else(
        || "too few samples".into(),
        |result| {
            let iterations = words::count(result.iterations as usize, "iteration");
            let (mean, wide) = (result.mean, result.width * 100.0);
            match result.met {
                Some(true) => format!("{mean:.2} ({iterations})"),
                Some(false) => format!("{mean:.2} ({iterations}, not met: {wide:.1}% wide)"),
                None => format!("{mean:.2} ({iterations}, {wide:.1}% wide; no more samples)"),
            }
        },
    )
}

/// A figure with two decimals, or [`NONE`].
fn figure(figure: Option<f64>) -> String {
    figure.map_or_else(|| NONE.into(), |figure| format!("{figure:.2}"))
}
