//! Adaptive runs: how they stopped, and which intervals are right then.

use wirecost_model::effect::Verdict;
use wirecost_model::plan::Ask;
use wirecost_model::record::{RunEnd, RunHead, Why};
use wirecost_model::units::format_fraction;
use wirecost_stats::sequential::{Aim, standing};
use wirecost_stats::{Contrast, Stopping, asked};

use crate::document::{Document, Intervals, UntilResult};
use crate::words;

/// From what the effects of a run are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Basis {
    /// The run ended as its plan says.
    Ended(Stopping),
    /// An adaptive run that something else stopped: only what hold at any stopping time is right.
    Looking { aim: Aim, ends_at: u32 },
}

/// How an adaptive run stopped, `rounds` of which were measured whole and whose last sample ended `elapsed_s` after its
/// begin, and from what its effects are judged.
pub(crate) fn judge(
    head: &RunHead,
    end: Option<&RunEnd>,
    contrasts: &[Contrast],
    rounds: u32,
    elapsed_s: f64,
) -> (Option<UntilResult>, Basis) {
    let repeat = &head.experiment.plan.repeat;
    let (Some(until), Some(aim)) = (repeat.until, Aim::of(repeat)) else {
        return (None, Basis::Ended(Stopping::Fixed));
    };
    let end = end.and_then(|end| end.until);
    let ends_at = end.map_or_else(
        || aim.ends_at(Some(until.budget_s), elapsed_s, rounds),
        |end| end.ends_at,
    );
    let logs = asked(contrasts, until.ask).map(|contrast| &contrast.logs[..]);
    let standing = standing(logs, &aim, ends_at);
    let (intervals, basis) = if end.is_some() {
        (Intervals::Reported, Basis::Ended(Stopping::Sequential))
    } else {
        (Intervals::Lasting, Basis::Looking { aim, ends_at })
    };
    let result = UntilResult {
        precision: until.precision,
        min_rounds: until.min_rounds,
        max_rounds: repeat.rounds,
        budget_s: until.budget_s,
        ask: until.ask,
        stopped: end.map(|end| end.why),
        ends_at,
        asked: standing.looks.len() as u32,
        known: standing.settled as u32,
        intervals,
    };
    (Some(result), basis)
}

/// How an adaptive run went, in a sentence or two.
pub(crate) fn sentence(doc: &Document) -> Option<String> {
    let until = doc.until.as_ref()?;
    let on = match until.ask {
        Ask::All => "",
        Ask::Throughput => " on throughput",
        Ask::Latency => " on latency",
        Ask::Cpu => " on CPU",
    };
    let known = format!(
        "{} of {}{on} known",
        until.known,
        words::count(until.asked as usize, "effect")
    );
    let barred = doc
        .effects
        .iter()
        .filter(|effect| until.ask.asks(effect.metric) && effect.verdict == Verdict::NotComparable);
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
        Some(Why::Known) => "every effect asked for is known".to_owned(),
        Some(Why::MaxRounds) => "the plan allows no more rounds".to_owned(),
        Some(Why::Budget) => format!(
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
