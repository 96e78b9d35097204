//! One direction against the other.

use wirecost_audit::Finding;

use super::{add, ends};
use crate::report::PathReport;

/// What a device takes beyond its MTU when it receives, for a VLAN tag (net/core/dev.c, `__is_skb_forwardable`).
const TAG_BYTES: u32 = 4;

pub(super) fn judge(paths: &[PathReport], found: &mut Vec<Finding>) {
    for (at, there) in paths.iter().enumerate() {
        let back = paths[at + 1..]
            .iter()
            .find(|back| back.from == there.to && back.to == there.from);
        let sizes = back.and_then(|back| Some((there.mtu()?, back.mtu()?)));
        if let Some((one, other)) = sizes.filter(|(one, other)| one.abs_diff(*other) > TAG_BYTES) {
            add(
                found,
                "directions-differ",
                there,
                format!("{}: {one} bytes there, {other} back", ends(there)),
                vec!["# the ports that only one direction goes through: their MTU at ingress and egress".into()],
            );
        }
    }
}
