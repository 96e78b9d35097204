//! Findings about flows with a smaller path MTU: one of several equal-cost paths is narrow.

use wirecost_audit::Finding;
use wirecost_pmtu::{FailingShare, flows_to_cover_one};

use super::{add, ends, place, ports, route_mtu_workaround};
use crate::report::{FlowReport, PathReport};

pub(super) fn judge(
    path: &PathReport,
    failing: &[&FlowReport],
    decided: u32,
    found: &mut Vec<Finding>,
) {
    let Some(share) = FailingShare::new(failing.len() as u32, decided) else {
        return;
    };
    let narrow = failing.iter().filter_map(|flow| flow.mtu).min();
    let carries = narrow.map_or_else(|| "less".to_owned(), |mtu| format!("{mtu}"));
    let members = match share.one_in {
        Some(n) if n > 1 => format!("one bad member of about {n}"),
        _ if share.between.0 > 0.5 => "more than half of the members are bad".to_owned(),
        _ => "so few flows do not tell how many members are bad".to_owned(),
    };
    let mut fix = vec![
        "# the one link or member of a bundle that is narrower: look at each, as `cat /proc/net/bonding/bond0` or \
         the switch's `show port-channel`"
            .to_owned(),
    ];
    fix.extend(
        narrow
            .into_iter()
            .flat_map(|mtu| route_mtu_workaround(path, mtu)),
    );
    add(
        found,
        "one-path-of-several",
        path,
        format!(
            "{}: {} of {} flows carry {carries}, the others {}: {members} ({:.0} % of the flows, 95 % interval {:.0} to \
             {:.0}). Source ports {}{}",
            ends(path),
            share.failing,
            share.of,
            path.required.bytes(),
            share.share * 100.0,
            share.between.0 * 100.0,
            share.between.1 * 100.0,
            ports(failing),
            place(path.loss_location.as_ref())
        ),
        fix,
    );
    let needed = flows_to_cover_one(share.one_in.unwrap_or(2), 0.99);
    if needed > decided {
        add(
            found,
            "few-flows",
            path,
            format!(
                "{}: {decided} flows meet each of {} equal paths at 99 %; other members may be bad without having been met",
                ends(path),
                path.paths_met.1
            ),
            vec![format!("# probe again with --flows {needed} or more")],
        );
    }
}
