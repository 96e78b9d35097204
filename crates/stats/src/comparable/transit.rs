//! Remarks on the lab's switches and routers: they run on the hosts' cores and forward single frames.

use wirecost_model::effect::RemarkKind;
use wirecost_model::metric::Metric;

use super::{Evidence, Objection, Pair, remark};

/// Segments per packet at the receiver above which frames were joined.
const JOINED_SEGMENTS: f64 = 2.0;

/// Remarks that the hosts' CPU includes the devices between them, where that share was not measured separately.
pub(super) fn cpu(pair: &Pair<'_>) -> Option<Objection> {
    if !pair.metric.is_cpu() {
        return None;
    }
    let unknown = |cell: &Evidence<'_>| {
        let series = cell.series(pair.metric);
        !cell.cell.network.transit.hops.is_empty()
            && series.is_some_and(|series| series.has_unknown_transit)
    };
    (unknown(pair.from) || unknown(pair.to)).then(|| {
        let text = "what the switches and routers between the hosts cost is part of the hosts' CPU"
            .to_owned();
        Objection::Remarks(remark(RemarkKind::TransitCpu, text, ""))
    })
}

/// Remarks on a tunnel behind a switch or router against none: its headers are removed frame by frame
/// (docs/offloads.md).
pub(super) fn joined_inside(pair: &Pair<'_>) -> Option<Objection> {
    if !matches!(pair.metric, Metric::Throughput | Metric::ReceiverCpu) {
        return None;
    }
    let tunnel = |cell: &Evidence<'_>| cell.cell.network.encapsulation.is_tunnel();
    let joined = |cell: &Evidence<'_>| {
        !cell.cell.network.transit.hops.is_empty()
            && cell.received.is_some_and(|n| n > JOINED_SEGMENTS)
    };
    let differ = tunnel(pair.from) != tunnel(pair.to);
    (differ && joined(pair.from) && joined(pair.to)).then(|| {
        let text = "behind a switch or router the receiving host takes the tunnel's headers off each frame before frames \
                    are joined; a NIC with receive offload for this tunnel does so once for each joined packet"
            .to_owned();
        Objection::Remarks(remark(RemarkKind::JoinedInside, text, ""))
    })
}
