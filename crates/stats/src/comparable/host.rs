//! Checks of host properties that the cells do not name: the datapath of Open vSwitch, and whether
//! received packets are handled on the host's own cores.

use wirecost_model::effect::RemarkKind;

use super::{Evidence, Objection, Pair, remark};

/// Bars a verdict between cells of which one was switched in the kernel and the other in userspace.
/// Before `ovs-kernel` was a level, `ovs` meant either.
pub(super) fn open_vswitch(pair: &Pair<'_>) -> Option<Objection> {
    let of = |cell: &Evidence<'_>| cell.sums.open_vswitch;
    let (from, to) = pair.both(of)?;
    (from != to).then(|| {
        let figures = pair.texts((&from.to_string(), &to.to_string()));
        let text = format!("Open vSwitch's datapaths differ by more than headers: {figures}");
        let advice = "measure both with `datapath: [ovs, ovs-kernel]` in one run";
        Objection::unless(
            pair.subject.key() == Some("datapath"),
            remark(RemarkKind::NotInEffect, text, advice),
        )
    })
}

/// Bars a verdict between a run that could steer received packets to each host's cores and one that could not.
pub(super) fn steering(pair: &Pair<'_>) -> Option<Objection> {
    let (from, to) = (pair.from.sums.is_not_steered, pair.to.sums.is_not_steered);
    (from != to).then(|| {
        let word = |not_steered| {
            if not_steered {
                "not steered"
            } else {
                "steered"
            }
        };
        let figures = pair.texts((word(from), word(to)));
        let text = format!(
            "what hosts receive is handled on their own cores only where it is steered: {figures}"
        );
        let advice = "run both as root, or both on Linux 6.3 or later";
        Objection::NotComparable(remark(RemarkKind::NotInEffect, text, advice))
    })
}
