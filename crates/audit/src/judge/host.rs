//! Judges a namespace as a whole: routes, exceptions learned from ICMP too-big messages, and the settings that decide
//! the effect of an MTU fault.

use super::{Findings, ProbeEvidence};
use crate::judge::PathMtu;
use crate::snapshot::{Device, HostStack, IpRoute, MssClamp, Namespace, RouteMtu};

/// The kernel's default of `net.ipv4.route.min_pmtu`, bytes.
const DEFAULT_MIN_PMTU: i64 = 552;
/// The kernel's default of `net.ipv4.route.mtu_expires` and `net.ipv6.route.mtu_expires`, seconds.
const DEFAULT_MTU_EXPIRES: i64 = 600;

/// `probes`: what probes showed, where they were sent.
pub(super) fn judge(stack: &HostStack, probes: Option<&ProbeEvidence>, found: &mut Findings<'_>) {
    let errors = found.has_errors();
    let lossy = probes.map_or(errors, |probes| probes.lossy);
    for namespace in &stack.namespaces {
        routes(namespace, found);
        ipv6_mtus(namespace, found);
        exceptions(namespace, found);
        discovery(namespace, found);
        let carries = probes.and_then(|probes| probes.carries);
        clamps(namespace, (lossy || errors, carries), found);
    }
    // Only the host's own namespace: settings of guests are up to the guests.
    if let Some(own) = stack.namespaces.first()
        && lossy
        && own.number("ipv4.tcp_mtu_probing") == Some(0)
    {
        found.add(
            "tcp-mtu-probing-off",
            Some(own),
            None,
            "net.ipv4.tcp_mtu_probing is 0: where large segments are lost, a TCP connection stalls until it times out; \
             with 1 it finds a size that passes after some seconds"
                .into(),
            vec![own.enter.command("sysctl -w net.ipv4.tcp_mtu_probing=1")],
        );
    }
}

fn routes(namespace: &Namespace, found: &mut Findings<'_>) {
    for route in &namespace.route_mtus {
        let device = route.device.and_then(|index| namespace.device(index));
        let Some(device) = device else { continue };
        if route.locked {
            found.add(
                "route-mtu-locked",
                Some(namespace),
                Some(&device.name),
                format!(
                    "the route to {} has `mtu lock {}`: packets to it may be fragmented on the way, and too-big messages \
                     are ignored",
                    route.destination, route.mtu
                ),
                vec![namespace.enter.command(&ip_route(route, device).change(Some(route.mtu)))],
            );
        } else if route.mtu < device.mtu {
            found.add(
                "route-mtu-smaller",
                Some(namespace),
                Some(&device.name),
                format!(
                    "the route to {} has an MTU of {}, its device {} one of {}",
                    route.destination, route.mtu, device.name, device.mtu
                ),
                vec![format!(
                    "# if that is not wanted: {}",
                    namespace
                        .enter
                        .command(&ip_route(route, device).change(None))
                )],
            );
        }
    }
}

/// IPv6 MTUs that are smaller than their devices'.
fn ipv6_mtus(namespace: &Namespace, found: &mut Findings<'_>) {
    for device in &namespace.devices {
        let speaks = device.addresses.iter().any(std::net::IpAddr::is_ipv6);
        let (Some(six), true, true) = (device.ipv6_mtu, speaks, device.up) else {
            continue;
        };
        found.add(
            "ipv6-mtu-smaller",
            Some(namespace),
            Some(&device.name),
            format!(
                "IPv6 has an MTU of {six} on {}, which takes {}: a router advertisement set it, or the sysctl \
                 net.ipv6.conf.{}.mtu",
                device.name, device.mtu, device.name
            ),
            vec![format!(
                "# if that is not wanted, and the router no longer advertises it: {}",
                namespace.enter.command(&set_ipv6_mtu(&device.name, device.mtu))
            )],
        );
    }
}

/// The command that sets the IPv6 MTU of a device, bytes. Slashes, because a device's name may contain dots
/// (sysctl(8)).
pub fn set_ipv6_mtu(device: &str, mtu: u32) -> String {
    format!("sysctl -w net/ipv6/conf/{device}/mtu={mtu}")
}

/// The route as recorded, or rebuilt from its destination and device.
fn ip_route(route: &RouteMtu, device: &Device) -> IpRoute {
    route.route.clone().unwrap_or_else(|| IpRoute {
        six: route.destination.contains(':'),
        destination: route.destination.clone(),
        hops: format!("dev {}", device.name),
        ..IpRoute::default()
    })
}

fn exceptions(namespace: &Namespace, found: &mut Findings<'_>) {
    for exception in &namespace.exceptions {
        let device = exception.device.and_then(|index| namespace.device(index));
        let Some(device) = device.filter(|device| exception.mtu < device.mtu) else {
            continue;
        };
        let (six, expires) = if exception.destination.is_ipv6() {
            ("-6 ", "ipv6.route.mtu_expires")
        } else {
            ("", "ipv4.route.mtu_expires")
        };
        let expires = namespace.number(expires).unwrap_or(DEFAULT_MTU_EXPIRES);
        let forget = namespace
            .enter
            .command(&format!("ip {six}route flush cache"));
        let told = format!(
            "after a too-big message the MTU for packets to {} is {} bytes, that of {} is {}",
            exception.destination, exception.mtu, device.name, device.mtu
        );
        let (why, fix) = match exception.proven {
            Some(proven) => (
                format!(
                    "it is stale, the path carries {proven}; until it expires, {expires} s after the last such message, TCP \
                     sends no more than that"
                ),
                vec![forget],
            ),
            None => (
                format!(
                    "something on the way carries less; it expires {expires} s after the last message"
                ),
                vec![
                    namespace
                        .enter
                        .command(&format!("ip {six}route get {}", exception.destination)),
                    format!("# once the path carries more: {forget}"),
                ],
            ),
        };
        found.add(
            "cached-exception",
            Some(namespace),
            Some(&device.name),
            format!("{told}: {why}"),
            fix,
        );
    }
}

fn discovery(namespace: &Namespace, found: &mut Findings<'_>) {
    if let Some(mode) = namespace.number("ipv4.ip_no_pmtu_disc")
        && mode != 0
    {
        let what = match mode {
            1 => "packets leave without DF, and too-big messages set the MTU to min_pmtu",
            2 => "too-big messages are dropped",
            _ => "too-big messages are accepted only for protocols that verify the quoted packet",
        };
        found.add(
            "pmtu-discovery-off",
            Some(namespace),
            None,
            format!("net.ipv4.ip_no_pmtu_disc is {mode}: {what}"),
            vec![
                namespace
                    .enter
                    .command("sysctl -w net.ipv4.ip_no_pmtu_disc=0"),
            ],
        );
    }
    let smallest = namespace
        .devices
        .iter()
        .filter(|device| device.up && !device.loopback)
        .min_by_key(|device| device.mtu);
    if let (Some(least), Some(device)) = (namespace.number("ipv4.route.min_pmtu"), smallest)
        && least > DEFAULT_MIN_PMTU
        && least > i64::from(device.mtu)
    {
        found.add(
            "min-pmtu-above-device",
            Some(namespace),
            Some(&device.name),
            format!(
                "net.ipv4.route.min_pmtu is {least}, and {} has an MTU of {}: after a too-big message with an MTU below \
                 {least}, packets to that destination are sent without DF, in fragments of {least} bytes or their \
                 device's MTU, whichever is smaller",
                device.name, device.mtu
            ),
            vec![
                namespace
                    .enter
                    .command(&format!("sysctl -w net.ipv4.route.min_pmtu={DEFAULT_MIN_PMTU}")),
            ],
        );
    }
}

/// Whether a rule is about IPv6, and the size of IP and TCP headers, bytes. A rule for both versions counts as one for
/// the path's.
fn headers(clamp: &MssClamp, path_is_six: bool) -> (bool, u32) {
    let six = match clamp.from.as_str() {
        "ip6tables" => true,
        "iptables" => false,
        _ if clamp.rule.starts_with("ip6 ") => true,
        _ if clamp.rule.starts_with("ip ") => false,
        _ => path_is_six,
    };
    (six, if six { 60 } else { 40 })
}

fn clamps(
    namespace: &Namespace,
    (lossy, carries): (bool, Option<PathMtu>),
    found: &mut Findings<'_>,
) {
    // The GRE and IP-in-IP modules create a device in every namespace; it is down and not used.
    let up = namespace.devices.iter().filter(|device| device.up);
    let tunnels = up.filter(|device| {
        device
            .tunnel
            .as_ref()
            .is_some_and(|tunnel| !tunnel.external)
    });
    let smallest = tunnels.min_by_key(|device| device.mtu);
    for clamp in namespace.mss_clamps.iter().flatten() {
        let (six, headers) = headers(clamp, carries.is_some_and(|carries| carries.six));
        let path = carries.filter(|carries| carries.six == six);
        let path = path.map(|carries| (carries.mtu, "the path".to_owned(), None));
        let tunnel = smallest.map(|it| (it.mtu, it.name.clone(), Some(it.name.as_str())));
        let least = path.into_iter().chain(tunnel).min_by_key(|(mtu, ..)| *mtu);
        let too_large = clamp.mss.zip(least);
        if let Some((mss, (mtu, what, device))) =
            too_large.filter(|(mss, (mtu, ..))| mss + headers > *mtu)
        {
            found.add(
                "mss-clamp-too-large",
                Some(namespace),
                device,
                format!(
                    "a rule ({}) sets the MSS to {mss}: segments of {} bytes, and {what} takes {mtu}: `{}`",
                    clamp.from,
                    mss + headers,
                    clamp.rule
                ),
                vec![format!(
                    "# in that rule set an MSS of {}, or that of the route (--clamp-mss-to-pmtu, `rt mtu`)",
                    mtu - headers
                )],
            );
        } else if lossy {
            found.add(
                "mss-clamp-hides",
                Some(namespace),
                None,
                format!(
                    "a rule ({}) changes TCP's MSS: `{}`. TCP may get through where UDP, QUIC and tunnels do not",
                    clamp.from, clamp.rule
                ),
                vec![],
            );
        }
    }
}
