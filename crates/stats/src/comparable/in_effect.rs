//! Checks for settings without effect.

use wirecost_model::effect::{Remark, RemarkKind};
use wirecost_model::load::Sending;
use wirecost_model::offload::{Feature, Offload};
use wirecost_model::sample::ZeroCopyCounts;

use super::{Evidence, Objection, Pair, number, remark};

/// Share of zero-copy sends that the kernel copied after all, from which on zero copy was not in effect.
pub const COPIED_SENDS_SHARE: f64 = 0.9;
/// Segments per packet whose ratio is below this are the same.
pub const SAME_SEGMENTS_RATIO: f64 = 1.05;

pub(super) fn zero_copy(pair: &Pair<'_>) -> Option<Objection> {
    if pair.subject.option() != Some("zero_copy") {
        return None;
    }
    let asked = |cell: &Evidence<'_>| cell.load.load.sending == Sending::ZeroCopy;
    let cell = [pair.from, pair.to].into_iter().find(|cell| asked(cell))?;
    let share = copied(&cell.zero_copy?)?;
    (share >= COPIED_SENDS_SHARE).then(|| {
        let text = format!(
            "{:.0}% of the sends were copied: between namespaces pages are copied at delivery, on the receiver",
            share * 100.0
        );
        let advice = "measure it between two machines";
        Objection::NotComparable(remark(RemarkKind::NotInEffect, text, advice))
    })
}

fn copied(counts: &ZeroCopyCounts) -> Option<f64> {
    let over = counts.completed + counts.fallbacks;
    (over > 0).then(|| (counts.copied + counts.fallbacks) as f64 / over as f64)
}

/// Whether a level of `offload` had no effect: the levels differ only in segmentation and
/// aggregation, and both ends see the same packets. For TCP streams only: single requests are not
/// aggregated.
pub(super) fn offload(pair: &Pair<'_>) -> Option<Remark> {
    let workload = pair.from.load.load.workload;
    let offloads = (&pair.from.cell.offload, &pair.to.cell.offload);
    if !pair.subject.is_offload()
        || !workload.is_tcp_stream()
        || !differ_in_segments_only(offloads, pair)
    {
        return None;
    }
    let received = pair.both(|cell| cell.received)?;
    let sent = pair.both(|cell| cell.sent)?;
    let same = |(from, to): (f64, f64)| (to / from).ln().abs() <= SAME_SEGMENTS_RATIO.ln();
    (same(received) && same(sent)).then(|| {
        let text = format!(
            "the setting changed nothing here: {} segments per packet sent and {} received in both",
            number(sent.0),
            number(received.0)
        );
        remark(
            RemarkKind::NotInEffect,
            text,
            "put a switch between the hosts (underlay.hops): behind it packets are aggregated anew",
        )
    })
}

/// Whether the two levels have the same checksum offload, and so differ in segmentation and aggregation only.
fn differ_in_segments_only((from, to): (&Offload, &Offload), pair: &Pair<'_>) -> bool {
    let checksum = |offload: &Offload, cell: &Evidence<'_>| {
        let tunnelled = cell.cell.network.encapsulation.is_tunnel();
        offload.switches(tunnelled)[&Feature::Checksum]
    };
    checksum(from, pair.from) == checksum(to, pair.to)
}
