//! What holds for a whole namespace: routes, what too-big messages left behind, and the settings that decide what
//! becomes of a fault.

use super::Findings;
use crate::snapshot::{Device, HostStack, Namespace, RouteMtu, RouteWords};

/// The kernel's default of `net.ipv4.route.min_pmtu`, bytes.
const DEFAULT_MIN_PMTU: i64 = 552;

/// `lossy`: whether packets are lost here by what others found.
pub(super) fn judge(stack: &HostStack, lossy: bool, found: &mut Findings<'_>) {
    let lossy = lossy || found.has_errors();
    for namespace in &stack.namespaces {
        routes(namespace, found);
        exceptions(namespace, found);
        discovery(namespace, found);
        clamps(namespace, lossy, found);
    }
    // Of the host's own namespace: those of guests are theirs to set.
    if let Some(own) = stack.namespaces.first()
        && lossy
        && own.number("ipv4.tcp_mtu_probing") == Some(0)
    {
        found.add(
            "tcp-mtu-probing-off",
            Some(own),
            None,
            "net.ipv4.tcp_mtu_probing is 0: where large segments vanish, a TCP connection stalls until it is given up; \
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
                vec![namespace.enter.command(&words(route, device).change(Some(route.mtu)))],
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
                    namespace.enter.command(&words(route, device).change(None))
                )],
            );
        }
    }
}

/// The route, or as much of it as was recorded.
fn words(route: &RouteMtu, device: &Device) -> RouteWords {
    route.words.clone().unwrap_or_else(|| RouteWords {
        six: route.destination.contains(':'),
        destination: route.destination.clone(),
        hops: format!("dev {}", device.name),
        ..RouteWords::default()
    })
}

fn exceptions(namespace: &Namespace, found: &mut Findings<'_>) {
    for exception in &namespace.exceptions {
        let device = exception.device.and_then(|index| namespace.device(index));
        let Some(device) = device.filter(|device| exception.mtu < device.mtu) else {
            continue;
        };
        let six = if exception.destination.is_ipv6() {
            "-6 "
        } else {
            ""
        };
        found.add(
            "cached-exception",
            Some(namespace),
            Some(&device.name),
            format!(
                "a too-big message set the MTU to {} to {} bytes, {} takes {}: something on the way carries less; it is \
                 forgotten after ten minutes without one",
                exception.destination, exception.mtu, device.name, device.mtu
            ),
            vec![
                namespace
                    .enter
                    .command(&format!("ip {six}route get {}", exception.destination)),
                format!(
                    "# once the path carries more: {}",
                    namespace.enter.command(&format!("ip {six}route flush cache"))
                ),
            ],
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
            _ => {
                "only too-big messages that quote a packet of ours are believed, and those of few protocols"
            }
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
                "net.ipv4.route.min_pmtu is {least}, and {} has an MTU of {}: a path that carries as little is never \
                 believed, and packets to it are fragmented at {least}",
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

fn clamps(namespace: &Namespace, lossy: bool, found: &mut Findings<'_>) {
    let tunnels = namespace.devices.iter().filter(|device| {
        device
            .tunnel
            .as_ref()
            .is_some_and(|tunnel| !tunnel.external)
    });
    let smallest = tunnels.min_by_key(|device| device.mtu);
    for clamp in namespace.mss_clamps.iter().flatten() {
        // IPv4 and TCP headers; over IPv6 it would be 20 more.
        if let (Some(mss), Some(tunnel)) = (clamp.mss, smallest)
            && mss + 40 > tunnel.mtu
        {
            found.add(
                "mss-clamp-too-large",
                Some(namespace),
                Some(&tunnel.name),
                format!(
                    "a rule ({}) sets the MSS to {mss}: segments of {} bytes, and {} takes {}: `{}`",
                    clamp.from,
                    mss + 40,
                    tunnel.name,
                    tunnel.mtu,
                    clamp.rule
                ),
                vec![format!(
                    "# in that rule: {} (or --clamp-mss-to-pmtu, `rt mtu`)",
                    tunnel.mtu - 40
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
