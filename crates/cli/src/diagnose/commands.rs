//! The commands that apply a change that helped: now (ethtool, ip, sysctl), and permanently (files of systemd-networkd,
//! udev and netplan, or nmcli).

use super::switch::{At, LARGE, Switch, mask};

/// The commands of one change; `measured` are the devices with the data-plane addresses on host a and host b.
pub(super) fn of(switch: &Switch, measured: [&str; 2]) -> Vec<String> {
    match switch {
        Switch::FourStreams => {
            vec!["# use several connections, where the application can".to_owned()]
        }
        Switch::LargeBuffers => {
            let [receive, send] = [131_072, 16_384].map(|usual| format!("4096 {usual} {LARGE}"));
            vec![
                format!(
                    "sysctl -w net.ipv4.tcp_rmem='{receive}' net.ipv4.tcp_wmem='{send}'   # on a and b"
                ),
                format!(
                    "# for good: /etc/sysctl.d/90-tcp.conf with net.ipv4.tcp_rmem = {receive} and net.ipv4.tcp_wmem = {send}"
                ),
            ]
        }
        Switch::Congestion(name) => vec![
            format!("sysctl -w net.ipv4.tcp_congestion_control={name}   # on a"),
            format!(
                "# for good: /etc/sysctl.d/90-tcp.conf with net.ipv4.tcp_congestion_control = {name}"
            ),
        ],
        Switch::Mtu(mtu) => {
            let hosts = ["a", "b"].into_iter().zip(measured);
            let mut commands: Vec<String> = hosts
                .map(|(host, device)| format!("ip link set {device} mtu {mtu}   # on {host}"))
                .collect();
            commands.push(for_good(&[
                link_option(measured[0], &format!("MTUBytes={mtu}")),
                netplan(measured[0], &format!("mtu: {mtu}")),
                network_manager(&format!("802-3-ethernet.mtu {mtu}")),
            ]));
            commands
        }
        Switch::Offload { at, feature, on } => {
            let state = if *on { "on" } else { "off" };
            let set = format!("ethtool -K {} {} {state}", at.name(), feature.ethtool);
            let mut ways = Vec::new();
            if !feature.link.is_empty() {
                ways.push(link_option(at.name(), &format!("{}={on}", feature.link)));
            }
            ways.push(udev(at, &format!("RUN+=\"/usr/sbin/{set}\"")));
            if !feature.netplan.is_empty() {
                ways.push(netplan(at.name(), &format!("{}: {on}", feature.netplan)));
            }
            ways.push(network_manager(&format!(
                "ethtool.feature-{} {state}",
                feature.ethtool
            )));
            now_and_for_good(at, &set, &ways)
        }
        Switch::Steered { at, cores } => {
            let (device, mask) = (at.name(), mask(*cores));
            let set = format!(
                "sh -c 'for q in /sys/class/net/{device}/queues/rx-*; do echo {mask} >$q/rps_cpus; done'"
            );
            let queues: Vec<String> = (0..at.device.rx_queues.max(1))
                .map(|queue| format!("ATTR{{queues/rx-{queue}/rps_cpus}}=\"{mask}\""))
                .collect();
            now_and_for_good(at, &set, &[udev(at, &queues.join(", "))])
        }
        Switch::Queues { at, number } => {
            let set = format!("ethtool -L {} combined {number}", at.name());
            let ways = [
                link_option(at.name(), &format!("CombinedChannels={number}")),
                udev(at, &format!("RUN+=\"/usr/sbin/{set}\"")),
                network_manager(&format!("ethtool.channels-combined {number}")),
            ];
            now_and_for_good(at, &set, &ways)
        }
    }
}

fn now_and_for_good(at: &At, set: &str, ways: &[String]) -> Vec<String> {
    let prefix = &at.device.prefix;
    let mut commands = vec![format!("{prefix}{set}   # on {}", at.host)];
    if prefix.is_empty() {
        commands.push(for_good(ways));
    } else {
        commands.push("# for good: where that namespace and its devices are made".to_owned());
    }
    commands
}

fn for_good(ways: &[String]) -> String {
    format!("# for good, one of: {}", ways.join("; "))
}

/// An option of a .link file (systemd.link(5)), which udev applies also where systemd-networkd does not run.
fn link_option(device: &str, option: &str) -> String {
    format!(
        "systemd-networkd and udev: {option} in [Link] of /etc/systemd/network/10-{device}.link (with [Match] OriginalName={device})"
    )
}

fn udev(at: &At, action: &str) -> String {
    let device = at.name();
    format!("a udev rule: ACTION==\"add\", SUBSYSTEM==\"net\", KERNEL==\"{device}\", {action}")
}

/// A key of netplan (netplan(5)).
fn netplan(device: &str, key: &str) -> String {
    format!("netplan: `{key}` under {device} (with `match`, as `ethernets` take it)")
}

fn network_manager(setting: &str) -> String {
    format!("NetworkManager: nmcli connection modify CONNECTION {setting}")
}
