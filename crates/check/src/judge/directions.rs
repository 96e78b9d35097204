//! Findings about different path MTUs in the two directions.

use wirecost_audit::Finding;

use super::{TAG_BYTES, add, add_on, ends};
use crate::report::{PathReport, RequiredMtu};

pub(super) fn judge(paths: &[PathReport], found: &mut Vec<Finding>) {
    for (at, there) in paths.iter().enumerate() {
        let back = paths[at + 1..]
            .iter()
            .find(|back| back.from == there.to && back.to == there.from);
        let Some((back, (one, other))) =
            back.and_then(|back| Some((back, (there.mtu()?, back.mtu()?))))
        else {
            continue;
        };
        if one.abs_diff(other) <= TAG_BYTES {
            continue;
        }
        let narrow = if one < other { there } else { back };
        if narrow.failing().next().is_some() {
            let evidence = format!("{}: {one} bytes there, {other} back", ends(there));
            let fix =
                "# the ports that only one direction goes through: their MTU at ingress and egress";
            add(
                found,
                "directions-differ",
                there,
                evidence,
                vec![fix.to_owned()],
            );
        } else if let RequiredMtu::Device(mtu) = narrow.required {
            let wide = if one < other { back } else { there };
            let more = wide.advised(Some(narrow)).unwrap_or(mtu);
            own_device(narrow, mtu, (one.max(other), more), found);
        }
        // A smaller MTU of a route was configured on purpose: no finding.
    }
}

/// Adds the finding of a sender whose own device limits a direction that could carry more, bytes: `other` is the path
/// MTU of the opposite direction, `more` the MTU to set.
fn own_device(narrow: &PathReport, mtu: u32, (other, more): (u32, u32), found: &mut Vec<Finding>) {
    let device = narrow.leaving.as_ref().map(|way| way.device.clone());
    let name = device.as_deref().unwrap_or("its device");
    let evidence = format!(
        "{}: {mtu} bytes there, because {name} sends no more, and {other} back",
        ends(narrow)
    );
    let fix = device
        .iter()
        .map(|device| format!("ip link set dev {device} mtu {more}"))
        .collect();
    add_on(found, ("directions-differ", device), narrow, evidence, fix);
}
