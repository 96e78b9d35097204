//! How an adaptive run stopped, in words.

use wirecost_model::effect::Verdict;
use wirecost_model::metric::Metric;
use wirecost_model::plan::AwaitedEffects;
use wirecost_model::record::StopReason;
use wirecost_model::units::format_fraction;

use super::words;
use crate::result::document::Document;

/// Why an adaptive run stopped, and how many effects are known, in a sentence or two; `None` for other runs.
pub(crate) fn sentence(doc: &Document) -> Option<String> {
    let until = doc.until.as_ref()?;
    let on = match until.ask {
        AwaitedEffects::All => "",
        AwaitedEffects::Throughput => " on throughput",
        AwaitedEffects::Latency => " on latency",
        AwaitedEffects::Cpu => " on CPU",
    };
    let known = format!(
        "{} of {}{on} known",
        until.known,
        words::count(until.asked as usize, "effect")
    );
    let barred = doc.effects.iter().filter(|effect| {
        until.ask.includes(effect.metric) && effect.verdict == Verdict::NotComparable
    });
    let known = match barred.count() {
        0 => known,
        barred => format!("{known}, {barred} not comparable"),
    };
    let rounds = words::count(doc.rounds_done as usize, "round");
    let rule = format!(
        "an effect is known when its verdict against {} stands three rounds in a row, or its interval is within ±{}",
        format_fraction(doc.repeat.worth),
        format_fraction(until.precision)
    );
    let why = match until.stopped {
        Some(StopReason::Known) if until.asked == 0 && has_sparse(doc, until.ask) => {
            "no effect asked for can become known: samples have too few transactions for a percentile (longer windows, \
             `seconds`, have more)"
                .to_owned()
        }
        Some(StopReason::Known) if until.asked == 0 => {
            "no effect asked for can become known".to_owned()
        }
        Some(StopReason::Known) => "every effect asked for is known".to_owned(),
        Some(StopReason::MaxRounds) => "the plan allows no more rounds".to_owned(),
        Some(StopReason::Budget) => format!(
            "another round did not fit into the budget of {} s",
            until.budget_s
        ),
        None => {
            return Some(format!(
                "Adaptive run: interrupted after {rounds}, before its stopping rule was met; {known}. Its intervals \
                 hold at any stopping time and are wider than those of a run that its rule stops."
            ));
        }
    };
    Some(format!(
        "Adaptive run: stopped after {rounds}, because {why}; {known} ({rule})."
    ))
}

/// Whether a sample has too few transactions for a percentile that the run was to wait for. For p99.9, which is then
/// not compared, no run waits.
fn has_sparse(doc: &Document, ask: AwaitedEffects) -> bool {
    let mut asked = doc
        .figures
        .iter()
        .filter(|figure| ask.includes(figure.metric) && figure.metric != Metric::LatencyP999);
    let observed = &doc.gathered.observed;
    asked.any(|figure| {
        let mut cells = doc.cells.iter();
        cells.any(|cell| observed.is_sparse(cell.cell, figure))
    })
}
