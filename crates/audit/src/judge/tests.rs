//! Recorded hosts: every file of `fixtures/` is a host, what is to be found on it, and nothing else may be.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use super::judge;
use crate::finding::{FINDINGS, Severity};
use crate::snapshot::{Chassis, HostStack, Northbound, Ovs, OvsInterface, VERSION};

/// A file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    /// What it is, and where it comes from.
    about: String,
    /// `id device`, or `id` where it is the host's.
    expect: BTreeSet<String>,
    stack: HostStack,
}

fn fixtures() -> Vec<(PathBuf, Fixture)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut files: Vec<_> = fs::read_dir(directory)
        .expect("fixtures")
        .map(|entry| entry.expect("entry").path())
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("text");
            let fixture = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path, fixture)
        })
        .collect()
}

#[test]
fn every_recorded_fault_is_found_and_nothing_else() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= 20, "{} fixtures", fixtures.len());
    for (path, fixture) in fixtures {
        let name = path.display();
        assert!(fixture.about.len() > 20, "{name}: say what it is");
        assert_eq!(fixture.stack.version, VERSION, "{name}");
        let findings = judge(&fixture.stack);
        let found: BTreeSet<String> = findings
            .iter()
            .map(|finding| match &finding.device {
                Some(device) => format!("{} {device}", finding.id),
                None => finding.id.to_owned(),
            })
            .collect();
        assert_eq!(found, fixture.expect, "{name}: {findings:#?}");
        assert_eq!(
            found.len(),
            findings.len(),
            "{name}: something is told twice: {findings:#?}"
        );
        for finding in &findings {
            assert!(finding.evidence.len() > 30, "{name}: {finding:?}");
            // Only what needs no deed has no command.
            let needs = finding.severity != Severity::Info;
            assert!(!needs || !finding.fix.is_empty(), "{name}: {finding:?}");
        }
        let worst_first = findings.is_sorted_by_key(|finding| std::cmp::Reverse(finding.severity));
        assert!(worst_first, "{name}: {findings:#?}");
    }
}

#[test]
fn every_kind_of_finding_is_in_a_recorded_host() {
    let expected: BTreeSet<String> = fixtures()
        .into_iter()
        .flat_map(|(_, fixture)| fixture.expect)
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect();
    let known: BTreeSet<String> = FINDINGS.iter().map(|kind| kind.id.to_owned()).collect();
    assert_eq!(expected, known);
}

#[test]
fn a_recorded_host_reads_back_as_it_was() {
    for (path, fixture) in fixtures() {
        let text = serde_json::to_string(&fixture.stack).expect("written");
        let back: HostStack = serde_json::from_str(&text).expect("read");
        assert_eq!(back, fixture.stack, "{}", path.display());
    }
}

#[test]
fn after_the_commands_were_typed_the_fault_is_gone() {
    // `ip link set dev DEVICE mtu N` is carried out on the record.
    for (path, mut fixture) in fixtures() {
        // Once: commands that lead to the next finding are not enough.
        let commands: Vec<String> = judge(&fixture.stack)
            .into_iter()
            .filter(|finding| finding.severity == Severity::Error)
            .flat_map(|finding| finding.fix)
            .filter(|command| !command.starts_with('#'))
            .collect();
        for command in commands {
            type_in(&command, &mut fixture.stack);
        }
        let left: Vec<_> = judge(&fixture.stack)
            .into_iter()
            .filter(|finding| finding.severity == Severity::Error)
            .collect();
        assert!(left.is_empty(), "{}: {left:#?}", path.display());
    }
}

fn type_in(command: &str, stack: &mut HostStack) {
    let words: Vec<&str> = command.split_whitespace().collect();
    let after = |word: &str| {
        let at = words.iter().position(|found| *found == word)?;
        words.get(at + 1).copied()
    };
    if let (Some(device), Some(mtu)) = (after("dev"), after("mtu")) {
        let mtu = mtu.parse().expect("a number");
        let entered = match (after("-n").filter(|_| words[0] == "ip"), after("-t")) {
            (Some(name), _) => crate::snapshot::NetnsEntry::Named(name.into()),
            (_, Some(pid)) => crate::snapshot::NetnsEntry::Process(pid.parse().expect("a number")),
            _ => crate::snapshot::NetnsEntry::Here,
        };
        for namespace in stack
            .namespaces
            .iter_mut()
            .filter(|namespace| namespace.enter == entered)
        {
            for found in namespace
                .devices
                .iter_mut()
                .filter(|found| found.name == device)
            {
                found.mtu = mtu;
            }
        }
    } else if words.contains(&"lro") {
        let device = after("-K").expect("a device");
        for namespace in &mut stack.namespaces {
            for found in namespace
                .devices
                .iter_mut()
                .filter(|found| found.name == device)
            {
                found.features.remove("rx-lro");
            }
        }
    } else if command == "systemctl restart ovn-controller" {
        restart_controller(stack.ovs.as_mut().expect("an Open vSwitch"));
    } else if words[0] == "ovn-nbctl" {
        let ovs = stack.ovs.as_mut().expect("an Open vSwitch");
        let north = ovs.northbound.as_mut().expect("a northbound database");
        set_logical(&words, north);
    } else if words[..3] == ["ovs-vsctl", "set", "open_vswitch"] {
        let set = words[4]
            .strip_prefix("external-ids:")
            .expect("external-ids");
        let (key, value) = set.split_once('=').expect("a value");
        let ovs = stack.ovs.as_mut().expect("an Open vSwitch");
        ovs.external_ids.insert(key.into(), value.into());
    } else if words[0] == "ovs-vsctl" && words[1] == "set" {
        let mtu = words[4].strip_prefix("mtu_request=").expect("mtu_request");
        for bridge in stack.ovs.iter_mut().flat_map(|ovs| &mut ovs.bridges) {
            for interface in bridge
                .interfaces
                .iter_mut()
                .filter(|found| found.name == words[3])
            {
                interface.mtu = mtu.parse().ok();
            }
        }
    } else {
        panic!("`{command}` is not understood");
    }
}

/// ovn-controller joins and makes a tunnel to every other host.
fn restart_controller(ovs: &mut Ovs) {
    let own = ovs.external_ids.get("system-id").cloned().expect("a name");
    let hosts = ovs.chassis.get_or_insert_default();
    if !hosts.iter().any(|host| host.name == own) {
        hosts.push(Chassis {
            name: own,
            ..Chassis::default()
        });
    }
    let tunnels = hosts.iter().flat_map(|host| &host.addresses);
    let tunnels = tunnels.map(|address| OvsInterface {
        name: format!("ovn-{address}"),
        kind: "geneve".to_owned(),
        options: [("remote_ip", address.to_string()), ("csum", "true".into())]
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
        ..OvsInterface::default()
    });
    ovs.bridges[0].interfaces.extend(tunnels);
}

/// `ovn-nbctl set TABLE ROW COLUMN:KEY=MTU`.
fn set_logical(words: &[&str], north: &mut Northbound) {
    let [.., "set", table, row, set] = words else {
        panic!("{words:?}");
    };
    let (key, mtu) = set.split_once('=').expect("a value");
    let mtu = Some(mtu.parse().expect("a number"));
    let mut dhcp = north.switches.iter_mut().flat_map(|it| &mut it.dhcp);
    let mut ports = north.routers.iter_mut().flat_map(|it| &mut it.ports);
    let mut port = || ports.find(|port| port.name == *row).expect("a port");
    match (*table, key) {
        ("DHCP_Options", "options:mtu") => {
            dhcp.find(|it| it.uuid == *row).expect("a row").mtu = mtu;
        }
        ("Logical_Router_Port", "options:gateway_mtu") => port().gateway_mtu = mtu,
        ("Logical_Router_Port", "ipv6_ra_configs:mtu") => port().advertised_mtu = mtu,
        _ => panic!("{words:?}"),
    }
}

#[test]
fn beside_lost_packets_what_tcp_makes_of_them_is_told() {
    let own = crate::snapshot::Namespace {
        label: "host".into(),
        sysctls: [("ipv4.tcp_mtu_probing".to_owned(), "0".to_owned())].into(),
        ..crate::snapshot::Namespace::default()
    };
    let stack = HostStack {
        version: VERSION,
        host: "a".into(),
        namespaces: vec![own],
        ..HostStack::default()
    };
    assert!(judge(&stack).is_empty());
    let beside = super::judge_with_probes(
        &stack,
        &super::ProbeEvidence {
            lossy: true,
            ..super::ProbeEvidence::default()
        },
    );
    assert_eq!(beside.len(), 1);
    assert_eq!(beside[0].id, "tcp-mtu-probing-off");
}

#[test]
fn devices_too_small_for_ipv6_are_told_of_at_once() {
    let device = |index: u32, name: &str, mtu: u32| crate::snapshot::Device {
        name: name.into(),
        index,
        mtu,
        up: true,
        addresses: vec![std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).into()],
        ..crate::snapshot::Device::default()
    };
    let own = crate::snapshot::Namespace {
        label: "host".into(),
        devices: vec![
            device(2, "br0", 1200),
            device(3, "eth0", 1500),
            device(4, "veth1", 1200),
        ],
        ..crate::snapshot::Namespace::default()
    };
    let stack = HostStack {
        version: VERSION,
        host: "a".into(),
        namespaces: vec![own],
        ..HostStack::default()
    };
    let findings = judge(&stack);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].device, None);
    assert!(
        findings[0]
            .evidence
            .starts_with("br0 has an MTU of 1200, veth1 has an MTU of 1200:")
    );
    assert_eq!(
        findings[0].fix,
        [
            "ip link set dev br0 mtu 1280",
            "ip link set dev veth1 mtu 1280"
        ]
    );
}

#[test]
fn a_mask_of_many_cores_is_one_that_the_kernel_takes() {
    for (cpus, mask) in [
        (8, "ff"),
        (32, "ffffffff"),
        (33, "1,ffffffff"),
        (64, "ffffffff,ffffffff"),
        (160, "ffffffff,ffffffff,ffffffff,ffffffff,ffffffff"),
    ] {
        let card = crate::snapshot::Device {
            name: "eth0".into(),
            index: 2,
            mtu: 1500,
            up: true,
            physical: true,
            queues: crate::snapshot::Queues {
                rx: 1,
                ..crate::snapshot::Queues::default()
            },
            ..crate::snapshot::Device::default()
        };
        let stack = HostStack {
            version: VERSION,
            host: "a".into(),
            namespaces: vec![crate::snapshot::Namespace {
                label: "host".into(),
                devices: vec![card],
                ..crate::snapshot::Namespace::default()
            }],
            cpus,
            ..HostStack::default()
        };
        let findings = judge(&stack);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        let wanted = format!("echo {mask} > /sys/class/net/eth0/queues/rx-0/rps_cpus");
        assert!(findings[0].fix[1].ends_with(&wanted), "{findings:#?}");
    }
}

#[test]
fn an_exception_is_forgotten_when_the_hosts_setting_says() {
    let (_, fixture) = fixtures()
        .into_iter()
        .find(|(path, _)| path.ends_with("too-big-was-heard.json"))
        .expect("the fixture");
    let evidence = |sysctls: &[(&str, &str)], destination: &str, proven: Option<u32>| {
        let mut stack = fixture.stack.clone();
        let own = &mut stack.namespaces[0];
        for (name, value) in sysctls {
            own.sysctls.insert((*name).into(), (*value).into());
        }
        own.exceptions[0].destination = destination.parse().expect("an address");
        own.exceptions[0].proven = proven;
        let findings = judge(&stack).into_iter();
        let found = findings.filter(|finding| finding.id == "cached-exception");
        found.map(|finding| finding.evidence).collect::<String>()
    };
    let set = [
        ("ipv4.route.mtu_expires", "30"),
        ("ipv6.route.mtu_expires", "90"),
    ];
    for (sysctls, destination, proven, wanted) in [
        (&set[..], "10.0.0.2", None, "expires 30 s after the last"),
        (&set[..], "fd00::2", None, "expires 90 s after the last"),
        (&set[..], "10.0.0.2", Some(1500), "30 s after the last"),
        (&[], "10.0.0.2", None, "expires 600 s after the last"),
    ] {
        let evidence = evidence(sysctls, destination, proven);
        assert!(evidence.contains(wanted), "{evidence}");
    }
}
