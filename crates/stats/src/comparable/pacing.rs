//! Check for congestion control that paces: between hosts microseconds apart it measures its own timers.

use wirecost_model::effect::RemarkKind;

use super::{Evidence, Objection, Pair, remark};

/// Round trip below which there is no network between the hosts, microseconds.
pub const MIN_NETWORK_RTT_US: u32 = 1_000;

pub(super) fn check(pair: &Pair<'_>) -> Option<Objection> {
    let paces = |cell: &Evidence<'_>| {
        let congestion = cell.load.load.congestion.as_deref();
        congestion.is_some_and(|name| name.starts_with("bbr"))
    };
    let near = |cell: &Evidence<'_>| {
        let unlimited = cell.cell.network.rate.is_none();
        unlimited && cell.min_rtt_us.is_some_and(|rtt| rtt < MIN_NETWORK_RTT_US)
    };
    let one = [pair.from, pair.to]
        .into_iter()
        .find(|cell| paces(cell) && near(cell))?;
    let name = one.load.load.congestion.as_deref().unwrap_or_default();
    let text = format!(
        "{name} paces by a round trip of {} us, without a line or a delay between the hosts",
        one.min_rtt_us.unwrap_or_default()
    );
    let advice = "give the underlay a rate and a delay as the network has";
    Some(Objection::unless(
        paces(pair.from) == paces(pair.to),
        remark(RemarkKind::Pacing, text, advice),
    ))
}
