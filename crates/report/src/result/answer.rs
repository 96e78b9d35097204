//! What a run answers: passes the document's effects and cells to crate `answer`, which words the sentences.

use wirecost_answer::{Answer, FigureValue, JudgedEffect, Measured, Question};
use wirecost_model::metric::{Figure, Metric};
use wirecost_stats::Summary;

use crate::result::document::{CellLoad, CellResult, Document, PublishedResult};
use crate::result::loads;

/// Computes the answer from the rest of a document.
pub(crate) fn of(doc: &Document) -> Answer {
    let judged = |effect: &crate::result::document::EffectResult| JudgedEffect {
        effect: effect.effect.clone(),
        verdict: effect.final_verdict(),
        no_ratio: effect.no_ratio.map(crate::result::document::NoRatio::words),
    };
    let workloads = loads::named(doc).into_iter();
    let mut answer = wirecost_answer::answer(&Question {
        factors: doc.factors.clone(),
        worth: doc.repeat.worth,
        cells: doc
            .cells
            .iter()
            .filter(|cell| cell.valid > 0)
            .map(measured)
            .collect(),
        effects: doc.effects.iter().map(judged).collect(),
        workloads: workloads
            .map(|(name, workload)| (name.to_owned(), workload))
            .collect(),
        curves: doc.curves.clone(),
    });
    if let Some(published) = doc.published.as_ref().filter(|one| one.tally.all() > 0) {
        of_study(&mut answer, published);
    }
    answer
}

/// Restricts the answer of a study's plan to the factors that the study compares, without advice.
fn of_study(answer: &mut Answer, published: &PublishedResult) {
    let compares = |key: &String| {
        published.comparisons.iter().any(|one| {
            let [from, to] = &one.cells;
            from.get(key) != to.get(key)
        })
    };
    answer.factors.retain(|factor| compares(&factor.factor));
    answer.to_do.clear();
}

fn measured(cell: &CellResult) -> Measured {
    let share = cell.throughput_gbps.zip(cell.line_limit_gbps);
    Measured {
        levels: cell.levels.clone(),
        figures: cell.loads.iter().flat_map(figures).collect(),
        line_share: share.map(|(throughput, limit)| throughput.median / limit),
    }
}

/// The figures of a load that the answer's sentences name.
fn figures(load: &CellLoad) -> impl Iterator<Item = (Figure, FigureValue)> {
    let of = |summary: Summary| FigureValue {
        median: summary.median,
        interval: summary.low.zip(summary.high).map(<[f64; 2]>::from),
    };
    // A percentile of all samples' latencies together has no interval.
    let pooled = |median| FigureValue {
        median,
        interval: None,
    };
    let latency = load.latency;
    let all = [
        (Metric::Throughput, load.throughput_gbps.map(of)),
        (Metric::Transactions, load.transactions_per_s.map(of)),
        (
            Metric::LatencyMedian,
            latency.map(|latency| pooled(latency.p50_us)),
        ),
        (
            Metric::LatencyP99,
            latency.map(|latency| pooled(latency.p99_us)),
        ),
    ];
    all.into_iter().filter_map(|(metric, reading)| {
        let load = load.name.clone();
        Some((Figure { load, metric }, reading?))
    })
}
