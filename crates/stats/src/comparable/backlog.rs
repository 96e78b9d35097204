//! Check for packets dropped from a core's backlog: they slow TCP down, whatever the factor.

use wirecost_model::effect::RemarkKind;

use super::{Objection, Pair, number, remark};

/// Share of a cell's packets (0..=1) dropped from backlogs above which the loss decides a stream's
/// speed. A full receiving core drops up to 0.12 % in labs where nothing is offloaded, which
/// follows from the cell; a backlog of 16 packets drops 0.7 % and quarters a stream.
pub const BARRING_DROP_SHARE: f64 = 3e-3;
/// Share of dropped packets (0..=1) from which on it is reported with the verdict.
pub const REPORTED_DROP_SHARE: f64 = 1e-4;
/// Largest ratio of the smaller share to the larger one at which the cells differ; above it both drop alike.
pub const DIFFERENT_DROPS_RATIO: f64 = 0.1;

pub(super) fn check(pair: &Pair<'_>) -> Option<Objection> {
    let (from, to) = pair.both(|cell| cell.dropped)?;
    let (less, more) = (from.min(to), from.max(to));
    if more < REPORTED_DROP_SHARE || less > more * DIFFERENT_DROPS_RATIO {
        return None;
    }
    let percent = |share: f64| format!("{}%", number(share * 100.0));
    let text = format!(
        "a core's backlog dropped {} of the packets",
        pair.texts((&percent(from), &percent(to)))
    );
    let several = [pair.from, pair.to].map(|cell| cell.load.load.streams > 1);
    let advice = if several.contains(&true) {
        "raise net.core.netdev_max_backlog, or use fewer streams"
    } else {
        "raise net.core.netdev_max_backlog"
    };
    Some(Objection::unless(
        more < BARRING_DROP_SHARE || pair.subject.is_about_backlog(),
        remark(RemarkKind::BacklogDrops, text, advice),
    ))
}
