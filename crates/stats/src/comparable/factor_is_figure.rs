//! Checks for a factor that sets the figure itself: a load that is offered twice the rate reaches twice the rate.

use wirecost_model::effect::RemarkKind;
use wirecost_model::load::{Load, Rate};
use wirecost_model::metric::Metric;

use super::{Evidence, Objection, Pair, remark};

/// A figure of at least this share of the offered rate, or of the line's rate, is limited by it.
pub const LIMITED_RATE_SHARE: f64 = 0.95;
/// Offered rates whose ratio is below this are the same.
const SAME_RATE_RATIO: f64 = 1.01;

pub(super) fn check(pair: &Pair<'_>) -> Option<Objection> {
    offered_rate(pair)
        .or_else(|| pauses(pair))
        .or_else(|| line_rate(pair))
}

/// CPU at different offered rates: what a load that pauses costs is how often its cores sleep and
/// wake, which the rate decides.
fn pauses(pair: &Pair<'_>) -> Option<Objection> {
    const OFFERS: [&str; 3] = ["rate", "total_rate", "think_time"];
    let offers = pair.subject.option().filter(|key| OFFERS.contains(key));
    (pair.metric.is_cpu() && offers.is_some()).then(|| {
        let text = "the offered rate sets the number of wake-ups, which dominate this figure";
        let advice = "compare other factors at one rate";
        Objection::NotComparable(remark(RemarkKind::FactorIsFigure, text.into(), advice))
    })
}

fn offered_rate(pair: &Pair<'_>) -> Option<Objection> {
    pair.subject.key()?;
    let metric = pair.metric;
    let of = |cell: &Evidence<'_>| offered(&cell.load.load, metric);
    let offers = (of(pair.from), of(pair.to));
    let same = match offers {
        (Some(from), Some(to)) => (to / from).ln().abs() <= SAME_RATE_RATIO.ln(),
        (None, None) => true,
        _ => false,
    };
    let got = |cell: &Evidence<'_>| Some(cell.mean(metric)? >= of(cell)? * LIMITED_RATE_SHARE);
    let reached = [pair.from, pair.to]
        .into_iter()
        .any(|cell| got(cell) == Some(true));
    if same || !reached {
        return None;
    }
    let (unit, scale) = metric.unit();
    let text = |offer: Option<f64>| {
        offer.map_or_else(
            || "no limit".into(),
            |offer| format!("{} {unit}", number(offer * scale)),
        )
    };
    let text = format!(
        "it is what was offered: {}",
        pair.texts((&text(offers.0), &text(offers.1)))
    );
    Some(Objection::NotComparable(remark(
        RemarkKind::FactorIsFigure,
        text,
        ADVICE,
    )))
}

const ADVICE: &str = "look at latency and loss";

/// Offered rate of all flows together, in the metric's own unit. `None` where the load sets no such limit.
fn offered(load: &Load, metric: Metric) -> Option<f64> {
    let streams = f64::from(load.streams);
    if let (Some(most), Metric::Transactions) = (load.most_per_second, metric) {
        return Some(most * streams);
    }
    match (load.rate?, metric) {
        (Rate::BitsPerSecond(bits), Metric::Throughput) => Some(bits as f64 * streams),
        (Rate::BitsPerSecond(bits), Metric::Datagrams) => {
            Some(bits as f64 * streams / (f64::from(load.request) * 8.0))
        }
        (Rate::RequestsPerSecond(requests), Metric::Transactions) => Some(requests * streams),
        _ => None,
    }
}

fn line_rate(pair: &Pair<'_>) -> Option<Objection> {
    let speed = matches!(pair.metric, Metric::Throughput | Metric::Datagrams);
    let line = matches!(pair.subject.key(), Some("underlay.rate" | "underlay.links"));
    if !line || !speed {
        return None;
    }
    let full =
        |cell: &Evidence<'_>| share_of_line(cell).is_some_and(|share| share >= LIMITED_RATE_SHARE);
    if !full(pair.from) && !full(pair.to) {
        return None;
    }
    let of = |cell: &Evidence<'_>| {
        share_of_line(cell).map_or_else(
            || "no line".into(),
            |share| format!("{:.0}% of it", share * 100.0),
        )
    };
    let text = format!(
        "it is the line's rate: the load filled {}",
        pair.texts((&of(pair.from), &of(pair.to)))
    );
    Some(Objection::NotComparable(remark(
        RemarkKind::FactorIsFigure,
        text,
        ADVICE,
    )))
}

/// Share of the line's rate that full-size frames with this payload take (preamble, Ethernet
/// header, FCS and gap: 38 bytes per frame). `None` without a line.
fn share_of_line(cell: &Evidence<'_>) -> Option<f64> {
    const FRAMING: u32 = 38;
    let network = &cell.cell.network;
    let load = &cell.load.load;
    let ip = network.guest_ip.header_bytes();
    let (packet, payload) = if load.workload.is_udp() {
        (load.request + ip + 8, load.request)
    } else {
        // The TCP header has the timestamp option, as by default on Linux: 32 bytes.
        (
            cell.cell.guest_mtu,
            cell.cell.guest_mtu.saturating_sub(ip + 32),
        )
    };
    let frame = packet + network.line_overhead_bytes(packet) + FRAMING;
    let bits = cell.mean(Metric::Throughput)? * f64::from(frame) / f64::from(payload.max(1));
    Some(bits / network.total_rate()? as f64)
}

/// Formats a figure: no decimals from 100 on, three at most below.
fn number(value: f64) -> String {
    if value >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{}", (value * 1000.0).round() / 1000.0)
    }
}
