//! Findings about path MTUs that are smaller than required.

use wirecost_audit::{Finding, set_ipv6_mtu};
use wirecost_pmtu::Limit;

use super::{
    add, add_on, checksums, device_of, ends, members, place, route_mtu_workaround, tcp, too_big,
};
use crate::observations::MIN_IPV4_MTU;
use crate::report::{FlowKind, FlowReport, PathReport, RequiredMtu};

pub(super) fn judge(path: &PathReport, back: Option<&PathReport>, found: &mut Vec<Finding>) {
    let failing: Vec<&FlowReport> = path.failing().collect();
    let decided = path
        .flows
        .iter()
        .filter(|flow| flow.kind.is_known())
        .count();
    let Some(narrowest) = failing.iter().min_by_key(|flow| flow.mtu) else {
        own_route(path, found);
        return;
    };
    let carries = carries(&failing);
    if path.bad_checksums >= checksums::BAD_CHECKSUMS && narrowest.kind == FlowKind::BLACK_HOLE {
        checksums::datagrams(path, &carries, found);
        return;
    }
    if failing.len() < decided {
        members::judge(path, &failing, decided as u32, found);
        return;
    }
    let FlowKind::Known(limit) = narrowest.kind else {
        return;
    };
    let wanted = path.required.bytes();
    let raise = format!(
        "# every switch and router on that way to {wanted} or more (Ethernet: often 9216): see share/doc/wirecost/check.md"
    );
    let lower = path
        .advised(back)
        .map(|mtu| route_mtu_workaround(path, mtu));
    let fix: Vec<String> = [raise]
        .into_iter()
        .chain(lower.unwrap_or_default())
        .collect();
    match limit {
        Limit::BlackHole if too_big::too_big_dropped_here(path, &carries, found) => {}
        Limit::BlackHole if tcp::only_datagrams(path, &carries, found) => {}
        Limit::BlackHole => {
            let evidence = format!(
                "{}: {carries} pass, larger packets are dropped without ICMP, and {wanted} are required{}",
                ends(path),
                place(path.loss_location.as_ref())
            );
            add(found, "path-drops-silently", path, evidence, fix);
        }
        Limit::Signalled { by, mtu } if Some(mtu) != narrowest.mtu => {
            let said = if mtu < MIN_IPV4_MTU {
                format!(
                    "{by} reports larger packets as too big with an invalid MTU ({mtu}, as routers did before RFC 1191): senders fall \
                     back to a small size, or lose packets"
                )
            } else if Some(mtu) > narrowest.mtu {
                format!("{by} reports an MTU of {mtu}, which is too large: senders that follow it go on losing packets")
            } else {
                format!("{by} reports an MTU of {mtu}, which is too small: senders that follow it send more packets than needed")
            };
            let look = format!("# the device of {by} that sends it, or what it forwards to");
            let fix = [look].into_iter().chain(fix.into_iter().skip(1)).collect();
            let evidence = format!("{}: {carries} pass and no more, {said}", ends(path));
            add(found, "signal-names-wrong-size", path, evidence, fix);
        }
        // A VXLAN or Geneve device sends its guests a too-big message with the destination's address as source
        // (net/ipv4/ip_tunnel_core.c, `skb_tunnel_check_pmtu`).
        Limit::Signalled { by, mtu } if by == path.to.address => {
            let evidence = format!(
                "{}: {carries} pass, and a tunnel on the way reports {mtu} by ICMP, with the destination's address \
                 as source: path-MTU discovery works as long as that message arrives",
                ends(path)
            );
            let tunnel = format!(
                "# raise that tunnel and its underlay to {wanted} or more, or set this network's devices to {mtu}"
            );
            let fix: Vec<String> = [tunnel].into_iter().chain(fix.into_iter().skip(1)).collect();
            add(found, "path-signals", path, evidence, fix.clone());
            expected(path, &carries, fix, found);
        }
        Limit::Signalled { by, mtu } => {
            let evidence = format!(
                "{}: {carries} pass, and {by} reports {mtu} by ICMP: path-MTU discovery works as long as that \
                 message arrives",
                ends(path)
            );
            add(found, "path-signals", path, evidence, fix.clone());
            expected(path, &carries, fix, found);
        }
        Limit::Fragmented { largest } => add(
            found,
            "path-fragments",
            path,
            format!(
                "{}: {carries} arrive unfragmented; larger packets arrive in fragments of at most {largest}, \
                 although DF is set",
                ends(path)
            ),
            vec![
                "# the router or tunnel end that clears DF (`df_default=false`, `clear-df`, an `ip frag-off set 0` rule)"
                    .into(),
            ],
        ),
        Limit::Device { .. } | Limit::NotSought => expected(path, &carries, fix, found),
    }
}

/// The path MTUs of flows that carry too little, in words.
fn carries(failing: &[&FlowReport]) -> String {
    let sizes = || failing.iter().filter_map(|flow| flow.mtu);
    match (sizes().min(), sizes().max()) {
        (Some(least), Some(most)) if least < most => {
            format!("{least} to {most} bytes, depending on the flow,")
        }
        (Some(mtu), _) => format!("{mtu} bytes"),
        _ => "less".to_owned(),
    }
}

/// Adds the error that the path carries less than the user expects, whatever limits it.
fn expected(path: &PathReport, carries: &str, fix: Vec<String>, found: &mut Vec<Finding>) {
    let RequiredMtu::Expected(wanted) = path.required else {
        return;
    };
    let device = path.failing().find_map(|flow| match flow.kind {
        FlowKind::Known(Limit::Device { mtu }) => Some(mtu),
        _ => None,
    });
    let (why, fix) = match device {
        Some(mtu) => (
            format!(": this host's own device takes {mtu}"),
            vec![format!("ip link set dev {} mtu {wanted}", device_of(path))],
        ),
        None => (String::new(), fix),
    };
    let evidence = format!(
        "{}: {wanted} bytes were expected, {carries} pass{why}",
        ends(path)
    );
    let on = path.leaving.as_ref().filter(|_| device.is_some());
    let on = on.map(|way| way.device.clone());
    add_on(found, ("expected-size-fails", on), path, evidence, fix);
}

/// Adds the error that the path carries what the user expects, but the sender's route or IPv6 MTU lets it send less.
fn own_route(path: &PathReport, found: &mut Vec<Finding>) {
    let (RequiredMtu::Expected(wanted), Some(way)) = (path.required, &path.leaving) else {
        return;
    };
    let Some(mtu) = way.sends_at_most().filter(|&mtu| mtu < wanted) else {
        return;
    };
    let device = &way.device;
    let (what, fix) = if way.mtu.is_some() {
        let change = way.route.iter().map(|route| route.change(None));
        ("this host's route there".to_owned(), change.collect())
    } else {
        let set = set_ipv6_mtu(device, wanted);
        let router = "# and the router that advertises the smaller MTU (radvd: AdvLinkMTU), or it is set again";
        (
            format!("IPv6 on {device} (net.ipv6.conf.{device}.mtu)"),
            vec![set, router.to_owned()],
        )
    };
    let evidence = format!(
        "{}: {wanted} bytes were expected, and pass; but {what} has an MTU of {mtu}, so that it sends no more",
        ends(path)
    );
    let on = Some(way.device.clone());
    add_on(found, ("expected-size-fails", on), path, evidence, fix);
}
