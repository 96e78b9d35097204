//! The commands that apply a change that helped: now (ethtool, ip, sysctl), and permanently (files of systemd-networkd,
//! udev and netplan, or nmcli).

use super::switch::{HostDevice, LARGE, Switch, mask};

/// A device of which a file or a connection profile is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NetDevice<'a> {
    pub(super) name: &'a str,
    /// `IFLA_INFO_KIND`, empty for network cards.
    pub(super) kind: &'a str,
}

/// What is said of a device or host in another network namespace, for which no file of the machine is read.
const IN_NAMESPACE: &str = "# permanent: change what makes that namespace and its devices";

/// The commands of one change; `measured` are the devices with the data-plane addresses on host a and host b, `netns`
/// the hosts' names where they are network namespaces of this machine.
pub(super) fn of(
    switch: &Switch,
    measured: [NetDevice<'_>; 2],
    netns: [Option<&str>; 2],
) -> Vec<String> {
    let enter =
        netns.map(|name| name.map_or_else(String::new, |name| format!("ip netns exec {name} ")));
    match switch {
        Switch::FourStreams => {
            vec!["# use several connections, where the application can".to_owned()]
        }
        Switch::OtherDirection | Switch::SmallMessages => Vec::new(),
        Switch::LargeBuffers => {
            // The kernel doubled what the load asked for (socket(7)); these limits are not doubled.
            let largest = 2 * LARGE;
            let [receive, send] = [131_072, 16_384].map(|usual| format!("4096 {usual} {largest}"));
            let set = format!("net.ipv4.tcp_rmem='{receive}' net.ipv4.tcp_wmem='{send}'");
            let kept = format!("net.ipv4.tcp_rmem = {receive} and net.ipv4.tcp_wmem = {send}");
            let [a, b] = enter.each_ref().map(String::as_str);
            if a.is_empty() && b.is_empty() {
                sysctl(&[("a and b", "")], &set, &kept)
            } else {
                sysctl(&[("a", a), ("b", b)], &set, &kept)
            }
        }
        Switch::Congestion(name) => {
            // A namespace has only what the machine allows (net/ipv4/tcp_cong.c, `tcp_set_default_congestion_control`).
            let allowed = "net.ipv4.tcp_allowed_congestion_control";
            let allow = format!(
                "sysctl -w {allowed}=\"$(sysctl -n {allowed}) {name}\"   # on the machine of a"
            );
            let set = sysctl(
                &[("a", enter[0].as_str())],
                &format!("net.ipv4.tcp_congestion_control={name}"),
                &format!("net.ipv4.tcp_congestion_control = {name}"),
            );
            netns[0].map(|_| allow).into_iter().chain(set).collect()
        }
        Switch::Mtu(mtu) => {
            let hosts = ["a", "b"].into_iter().zip(measured).zip(&enter);
            let (mut commands, kept): (Vec<String>, Vec<String>) = hosts
                .map(|((host, device), enter)| {
                    let set = format!("{enter}ip link set {} mtu {mtu}   # on {host}", device.name);
                    (set, permanent(enter, &mtu_permanent(device, *mtu)))
                })
                .unzip();
            let (on_a, on_b) = (&kept[0], &kept[1]);
            if on_a == on_b {
                commands.push(on_a.clone());
            } else {
                commands.extend([format!("{on_a}   # on a"), format!("{on_b}   # on b")]);
            }
            commands
        }
        Switch::Offload { at, feature, on } => {
            let state = if *on { "on" } else { "off" };
            let set = format!("ethtool -K {} {} {state}", at.name(), feature.ethtool);
            let mut ways = Vec::new();
            if !feature.link.is_empty() {
                ways.push(link_option(named(at), &format!("{}={on}", feature.link)));
            }
            ways.push(udev(at, &format!("RUN+=\"/usr/sbin/{set}\"")));
            // Other sections of netplan have no offloads.
            if !feature.netplan.is_empty() && section(named(at)) == Some(ETHERNETS) {
                ways.extend(netplan(named(at), &format!("{}: {on}", feature.netplan)));
            }
            ways.push(network_manager(&format!(
                "ethtool.feature-{} {state}",
                feature.ethtool
            )));
            now_and_permanent(at, &enter, &set, &ways)
        }
        Switch::Steered { at, cores } => {
            let (device, mask) = (at.name(), mask(cores));
            let set = format!(
                "sh -c 'for q in /sys/class/net/{device}/queues/rx-*; do echo {mask} >$q/rps_cpus; done'"
            );
            let queues: Vec<String> = (0..at.device.rx_queues.max(1))
                .map(|queue| format!("ATTR{{queues/rx-{queue}/rps_cpus}}=\"{mask}\""))
                .collect();
            now_and_permanent(at, &enter, &set, &[udev(at, &queues.join(", "))])
        }
        Switch::Queues { at, number } => {
            let set = format!("ethtool -L {} combined {number}", at.name());
            let ways = [
                link_option(named(at), &format!("CombinedChannels={number}")),
                udev(at, &format!("RUN+=\"/usr/sbin/{set}\"")),
                network_manager(&format!("ethtool.channels-combined {number}")),
            ];
            now_and_permanent(at, &enter, &set, &ways)
        }
    }
}

/// Sets sysctls on hosts, each with the start of a command in its namespace; `kept` is what a file has.
fn sysctl(hosts: &[(&str, &str)], set: &str, kept: &str) -> Vec<String> {
    let mut commands: Vec<String> = hosts
        .iter()
        .map(|(host, enter)| format!("{enter}sysctl -w {set}   # on {host}"))
        .collect();
    if hosts.iter().any(|(_, enter)| enter.is_empty()) {
        commands.push(format!(
            "# permanent: /etc/sysctl.d/90-tcp.conf with {kept}"
        ));
    }
    if hosts.iter().any(|(_, enter)| !enter.is_empty()) {
        commands.push(IN_NAMESPACE.to_owned());
    }
    commands
}

fn now_and_permanent(
    at: &HostDevice,
    enter: &[String; 2],
    set: &str,
    ways: &[String],
) -> Vec<String> {
    let of_host = &enter[usize::from(at.host == 'b')];
    let prefix = if at.device.prefix.is_empty() {
        of_host
    } else {
        &at.device.prefix
    };
    vec![
        format!("{prefix}{set}   # on {}", at.host),
        permanent(prefix, ways),
    ]
}

fn permanent(enter: &str, ways: &[String]) -> String {
    if enter.is_empty() {
        format!("# permanent, one of: {}", ways.join("; "))
    } else {
        IN_NAMESPACE.to_owned()
    }
}

fn named(at: &HostDevice) -> NetDevice<'_> {
    NetDevice {
        name: at.name(),
        kind: &at.device.kind,
    }
}

fn mtu_permanent(device: NetDevice<'_>, mtu: u32) -> Vec<String> {
    let mut ways = vec![link_option(device, &format!("MTUBytes={mtu}"))];
    ways.extend(netplan(device, &format!("mtu: {mtu}")));
    let setting = match device.kind {
        "wireguard" => "wireguard",
        kind if IP_TUNNELS.contains(&kind) => "ip-tunnel",
        _ => "802-3-ethernet",
    };
    ways.push(network_manager(&format!("{setting}.mtu {mtu}")));
    ways
}

/// An option of a .link file (systemd.link(5)), which udev applies also where systemd-networkd does not run. It applies
/// one file alone: the default's names and MAC addresses have to be in the new one, too. `OriginalName` is the kernel's
/// name, which cards rarely keep.
fn link_option(NetDevice { name, kind }: NetDevice<'_>, option: &str) -> String {
    let matching = if kind.is_empty() {
        format!(
            "PermanentMACAddress= (systemd 245 or later) and the address that `ethtool -P {name}` prints"
        )
    } else {
        format!("OriginalName={name}")
    };
    format!(
        "systemd-networkd and udev: {option} in [Link] of /etc/systemd/network/10-{name}.link, made as a copy of the file \
         that `udevadm info /sys/class/net/{name}` has as ID_NET_LINK_FILE, with {matching} as all of [Match]"
    )
}

/// A card that udev renames has its name from the event `move` on.
fn udev(at: &HostDevice, action: &str) -> String {
    let device = at.name();
    format!("a udev rule: ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"{device}\", {action}")
}

/// Section of netplan for network cards.
const ETHERNETS: &str = "ethernets";
/// Kinds of tunnels with an `ip-tunnel` setting in NetworkManager and a mode in netplan's `tunnels`.
const IP_TUNNELS: [&str; 8] = [
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "ipip",
    "ip6tnl",
    "sit",
    "vti",
];

/// The section of netplan(5) that has devices of this kind. A veth has no permanent address, by which `ethernets`
/// match.
fn section(device: NetDevice<'_>) -> Option<&'static str> {
    match device.kind {
        "" => Some(ETHERNETS),
        "vlan" => Some("vlans"),
        "bond" => Some("bonds"),
        "bridge" => Some("bridges"),
        "vxlan" | "wireguard" => Some("tunnels"),
        kind if IP_TUNNELS.contains(&kind) => Some("tunnels"),
        _ => None,
    }
}

/// A key of netplan(5), where it has such devices; only `ethernets` have `match`.
fn netplan(device: NetDevice<'_>, key: &str) -> Option<String> {
    let (name, section) = (device.name, section(device)?);
    let matching = if section == ETHERNETS {
        ", with `match` by `macaddress`"
    } else {
        ""
    };
    Some(format!(
        "netplan: `{key}` under {name} in `{section}`{matching}"
    ))
}

fn network_manager(setting: &str) -> String {
    format!("NetworkManager: nmcli connection modify CONNECTION {setting}")
}

#[cfg(test)]
mod tests {
    use wirecost_control::experiment::PathDevice;

    use super::*;
    use crate::diagnose::switch::TSO;

    fn at(name: &str, kind: &str) -> HostDevice {
        HostDevice {
            host: 'a',
            measured: true,
            device: PathDevice {
                name: name.to_owned(),
                label: name.to_owned(),
                kind: kind.to_owned(),
                prefix: String::new(),
                mtu: 1500,
                beneath_tunnel: false,
                faces_guest: false,
                toggles: [].into(),
                rx_queues: 1,
                queues: None,
            },
        }
    }

    /// The commands that switch TSO off on a device.
    fn without_tso(name: &str, kind: &str) -> String {
        let switch = Switch::Offload {
            at: at(name, kind),
            feature: TSO,
            on: false,
        };
        let none = NetDevice { name: "", kind: "" };
        of(&switch, [none; 2], [None; 2]).join("\n")
    }

    #[test]
    fn a_card_is_matched_by_its_address_since_udev_may_have_renamed_it() {
        let commands = without_tso("ens3", "");
        for words in [
            "ethtool -K ens3 tso off   # on a",
            "TCPSegmentationOffload=false in [Link] of /etc/systemd/network/10-ens3.link",
            "with PermanentMACAddress= ",
            "ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"ens3\"",
            "netplan: `tcp-segmentation-offload: false` under ens3 in `ethernets`, with `match`",
            "ethtool.feature-tso off",
        ] {
            assert!(commands.contains(words), "{words}: {commands}");
        }
        assert!(!commands.contains("OriginalName"), "{commands}");
    }

    #[test]
    fn a_virtual_device_is_matched_by_its_name_and_has_no_offloads_in_netplan() {
        for (name, kind) in [("eth0.7", "vlan"), ("bond0", "bond"), ("vxlan0", "vxlan")] {
            let commands = without_tso(name, kind);
            let by_name = format!("with OriginalName={name} as all of [Match]");
            assert!(commands.contains(&by_name), "{commands}");
            assert!(!commands.contains("netplan"), "{commands}");
        }
    }

    #[test]
    fn commands_for_a_network_namespace_enter_it() {
        let eth0 = NetDevice {
            name: "eth0",
            kind: "veth",
        };
        let tso = Switch::Offload {
            at: at("eth0", "veth"),
            feature: TSO,
            on: false,
        };
        let of = |switch: &Switch| of(switch, [eth0; 2], [Some("blue"), None]);
        assert_eq!(
            of(&tso),
            [
                "ip netns exec blue ethtool -K eth0 tso off   # on a",
                IN_NAMESPACE
            ]
        );
        let mtu = of(&Switch::Mtu(1400));
        assert_eq!(
            mtu[0],
            "ip netns exec blue ip link set eth0 mtu 1400   # on a"
        );
        assert_eq!(mtu[1], "ip link set eth0 mtu 1400   # on b");
        let congestion = of(&Switch::Congestion("bbr".to_owned()));
        assert_eq!(
            congestion,
            [
                "sysctl -w net.ipv4.tcp_allowed_congestion_control=\"$(sysctl -n \
                 net.ipv4.tcp_allowed_congestion_control) bbr\"   # on the machine of a",
                "ip netns exec blue sysctl -w net.ipv4.tcp_congestion_control=bbr   # on a",
                IN_NAMESPACE
            ]
        );
        let buffers = of(&Switch::LargeBuffers);
        assert_eq!(buffers.len(), 4, "{buffers:?}");
        // As large as the buffers that were measured.
        assert!(buffers[1].contains("tcp_rmem='4096 131072 33554432'"));
    }

    #[test]
    fn an_mtu_is_written_for_the_device_of_each_host() {
        let device = |name, kind| NetDevice { name, kind };
        let commands = |a, b| of(&Switch::Mtu(1400), [a, b], [None; 2]);
        let vlan = device("eth0.7", "vlan");
        assert_eq!(commands(vlan, vlan).len(), 3);
        let differ = commands(vlan, device("gre1", "gre"));
        let words: [&[&str]; 4] = [
            &["ip link set eth0.7 mtu 1400   # on a"],
            &["ip link set gre1 mtu 1400   # on b"],
            &["under eth0.7 in `vlans`", "802-3-ethernet.mtu 1400"],
            &["under gre1 in `tunnels`", "ip-tunnel.mtu 1400"],
        ];
        assert_eq!(differ.len(), words.len(), "{differ:?}");
        for (command, words) in differ.iter().zip(words) {
            assert!(words.iter().all(|word| command.contains(word)), "{command}");
        }
        let unknown = mtu_permanent(device("geneve0", "geneve"), 1400).join("\n");
        assert!(!unknown.contains("netplan"), "{unknown}");
    }
}
