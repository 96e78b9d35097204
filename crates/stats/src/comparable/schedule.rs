//! Checks of request schedules: whether they were kept, and how late requests left.

use wirecost_model::effect::RemarkKind;
use wirecost_model::sample::MissedSchedule;

use super::{Evidence, Objection, Pair, remark};

/// Ratio of lateness to latency above which the lateness is reported.
pub const LATENESS_RATIO: f64 = 0.2;

/// Bars a verdict on latency where a load fell behind its schedule: it measured its own backlog.
pub(super) fn missed(pair: &Pair<'_>) -> Option<Objection> {
    if !pair.metric.is_latency() || (pair.from.behind.is_none() && pair.to.behind.is_none()) {
        return None;
    }
    let share = |cell: &Evidence<'_>| {
        cell.behind.map_or_else(
            || "all".to_owned(),
            |(samples, least)| {
                format!(
                    "{:.1}% at least (behind in {samples} of {} windows)",
                    least * 100.0,
                    cell.count()
                )
            },
        )
    };
    let text = format!(
        "the load did not keep its schedule: of the requests due were over {}",
        pair.texts((&share(pair.from), &share(pair.to)))
    );
    Some(Objection::NotComparable(remark(
        RemarkKind::Schedule,
        text,
        MissedSchedule::ADVICE,
    )))
}

/// Remarks on requests that left late: they meet another path than those of a punctual load.
pub(super) fn late(pair: &Pair<'_>) -> Option<Objection> {
    if !pair.metric.is_latency() {
        return None;
    }
    let worst = |percent: f64| {
        let of = |cell: &Evidence<'_>| {
            let us = |of: &wirecost_model::latency::Latency| {
                Some(of.percentile(percent)?.as_secs_f64() * 1e6)
            };
            cell.has_lateness()
                .then(|| Some((us(cell.lateness())?, us(cell.latency())?)))?
        };
        let cells = [
            (pair.from, pair.subject.with_from()),
            (pair.to, pair.subject.with_to()),
        ];
        let told = cells
            .into_iter()
            .filter_map(|(cell, with)| Some((of(cell)?, with)));
        told.filter(|((late, took), _)| *late > took * LATENESS_RATIO)
            .max_by(|a, b| f64::total_cmp(&(a.0.0 / a.0.1), &(b.0.0 / b.0.1)))
    };
    let (name, ((late, took), with)) = [("median", 50.0), ("p99", 99.0)]
        .into_iter()
        .find_map(|(name, percent)| Some((name, worst(percent)?)))?;
    let text = format!(
        "requests left late: {} us at the {name} {with}, where the path took {} us",
        super::number(late),
        super::number(took)
    );
    Some(Objection::Remarks(remark(RemarkKind::Schedule, text, "")))
}
