//! What a run answers: the document's effects and cells put to room `answer`, for its sentences.

use wirecost_answer::{Answer, Measured, Question, Reading, Told};
use wirecost_model::metric::{Figure, Metric};
use wirecost_stats::Summary;

use crate::result::document::{CellLoad, CellResult, Document};
use crate::result::loads;

/// Works the answer out of the rest of a document.
pub(crate) fn of(doc: &Document) -> Answer {
    let told = |effect: &crate::result::document::EffectResult| Told {
        effect: effect.effect.clone(),
        verdict: effect.told(),
        no_ratio: effect.no_ratio.map(crate::result::document::NoRatio::words),
    };
    let answer = wirecost_answer::answer(&Question {
        factors: doc.factors.clone(),
        worth: doc.repeat.worth,
        cells: doc
            .cells
            .iter()
            .filter(|cell| cell.valid > 0)
            .map(measured)
            .collect(),
        effects: doc.effects.iter().map(told).collect(),
    });
    in_io(doc, answer)
}

/// With the requests of storage called I/O: the answer's own words are those of all request/response loads.
fn in_io(doc: &Document, mut answer: Answer) -> Answer {
    const WORDS: [(&str, &str); 2] = [
        ("transactions/s", "I/O per second"),
        ("CPU per transaction", "CPU per I/O"),
    ];
    let loads = loads::named(doc);
    let factors = answer.factors.iter_mut().map(|factor| &mut factor.says);
    for text in factors.chain(&mut answer.limits).chain(&mut answer.to_do) {
        for (load, _) in loads.iter().filter(|(_, workload)| workload.is_storage()) {
            // Where there are several loads, a figure or its sentence begins with the name of its load.
            let own = loads.len() == 1 || text.starts_with(&format!("{load}: "));
            let name = if own {
                String::new()
            } else {
                format!("{load} ")
            };
            for (of_all, io) in WORDS {
                *text = text.replace(&format!("{name}{of_all}"), &format!("{name}{io}"));
            }
        }
    }
    answer
}

fn measured(cell: &CellResult) -> Measured {
    let share = cell.throughput_gbps.zip(cell.line_limit_gbps);
    Measured {
        levels: cell.levels.clone(),
        figures: cell.loads.iter().flat_map(figures).collect(),
        line_share: share.map(|(throughput, limit)| throughput.median / limit),
    }
}

/// The figures of a load that sentences name.
fn figures(load: &CellLoad) -> impl Iterator<Item = (Figure, Reading)> {
    let of = |summary: Summary| Reading {
        median: summary.median,
        interval: summary.low.zip(summary.high).map(<[f64; 2]>::from),
    };
    // Of all samples' latencies together, which have no interval.
    let pooled = |median| Reading {
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
