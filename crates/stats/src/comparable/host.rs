//! What the hosts were beyond what their cells say: which datapath of Open vSwitch, whether receive work kept to its
//! host's cores.

use wirecost_model::effect::RemarkKind;

use super::{Evidence, Objection, Pair, remark};

/// Between cells of which the one was switched in the kernel and the other in userspace. Before `ovs-kernel` was a level,
/// `ovs` meant either.
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

/// Between a run that could steer what hosts receive and one that could not.
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
        Objection::Bars(remark(RemarkKind::NotInEffect, text, advice))
    })
}
