//! Findings about the sender itself: too-big messages that its own firewall drops, packets that it fragments.

use wirecost_audit::Finding;

use super::{add, add_on, ends};
use crate::observations::MIN_IPV4_MTU;
use crate::report::PathReport;

/// Adds the finding that a router's ICMP too-big message arrives at the sender's device and its own firewall drops it;
/// whether that is the case.
pub(crate) fn too_big_dropped_here(
    path: &PathReport,
    carries: &str,
    found: &mut Vec<Finding>,
) -> bool {
    let Some((by, mtu)) = path.observations.too_big else {
        return false;
    };
    let says = if mtu < MIN_IPV4_MTU {
        String::new()
    } else {
        format!(" ({mtu})")
    };
    let evidence = format!(
        "{}: {carries} pass, and {by} reports it by ICMP{says}: the message arrives at this host's device, and this host's own \
         filter drops it, so that path-MTU discovery fails for every program here",
        ends(path)
    );
    let accept = if by.is_ipv6() {
        "ip6tables -I INPUT -p icmpv6 --icmpv6-type packet-too-big -j ACCEPT"
    } else {
        "iptables -I INPUT -p icmp --icmp-type fragmentation-needed -j ACCEPT"
    };
    add(
        found,
        "too-big-dropped-here",
        path,
        evidence,
        vec![accept.to_owned()],
    );
    true
}

/// Adds the finding that the sender fragments the packets that encapsulate its own.
pub(super) fn sender_fragmentation(path: &PathReport, found: &mut Vec<Finding>) {
    let Some(fragmentation) = path.sender_fragmentation else {
        return;
    };
    let device = path.leaving.as_ref().map(|way| way.device.clone());
    let name = device.as_deref().unwrap_or("the tunnel");
    let whole = fragmentation.unfragmented.map_or_else(String::new, |mtu| {
        format!("; packets of {mtu} bytes are not fragmented")
    });
    let evidence = format!(
        "{}: this host fragments the packets that encapsulate them: for {} packets of full size it created {} fragments \
         (IpFragCreates){whole}. The MTU of {name} is larger than its underlay allows",
        ends(path),
        fragmentation.sent,
        fragmentation.fragments
    );
    let lower = fragmentation
        .unfragmented
        .map(|mtu| format!("ip link set dev {name} mtu {mtu}"));
    let other =
        "# on both hosts; or raise the device that the tunnel's packets leave through".to_owned();
    let fix = lower.into_iter().chain([other]).collect();
    add_on(found, ("host-fragments", device), path, evidence, fix);
}
