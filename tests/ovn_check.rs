//! `wirecost check` on a host with a running OVN: what is right has no finding, and each fault that is put in has its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{beside_others, run, signal, succeeds, wirecost};
use crate::ovn::ovn_can_run;
use nix::sys::signal::Signal;
use serde_json::Value;
use wirecost_model::logical::Acl;
use wirecost_model::plan::{Encapsulation, Geneve, GeneveOptions};
use wirecost_model::switch::OvsDatapath;
use wirecost_ovs::ovn::{Central, Chassis, LogicalNetwork, LogicalPort, port_key, port_name};
use wirecost_ovs::{Switch, SwitchSpec, UNDERLAY_BRIDGE};
use wirecost_sys::namespace::HeldNetns;

/// What this test puts in; other findings are about this machine.
const OF_OVN: [&str; 6] = [
    "geneve-options-not-counted",
    "tunnel-exceeds-underlay",
    "ovn-encap-address-missing",
    "ovn-encap-address-elsewhere",
    "ovn-checksum-one-way",
    "ovn-chassis-missing",
];

/// Two hosts by OVN's Geneve over 1500, a guest's port on each.
struct Lab {
    hosts: [HeldNetns; 2],
    switches: Vec<Switch>,
    _central: Central,
}

impl Lab {
    fn new() -> Self {
        let hosts = ["a", "b"].map(|name| HeldNetns::create(name).expect("a namespace"));
        let tid = hosts[1].tid();
        ip(
            &hosts[0],
            &format!("link add under0 mtu 1500 type veth peer name under0 mtu 1500 netns {tid}"),
        );
        let port = |host: usize| LogicalPort {
            name: port_name(["a", "b"][host], 0),
            key: port_key(host as u32, 0),
            mac: [2, 0, 0, 1, 0, host as u8 + 1],
            address: [10, 7, 0, host as u8 + 1].into(),
        };
        let wanted = LogicalNetwork {
            guests: [vec![port(0)], vec![port(1)]],
            key: 42,
            router: None,
            acl: Acl::None,
            to_underlay: false,
            tag: None,
        };
        let mut central = Central::start(&wanted, "test").unwrap_or_else(|error| panic!("{error}"));
        let mut switches = Vec::new();
        for (number, host) in (1_u8..).zip(&hosts) {
            for command in [
                format!("link set under0 address 02:00:00:02:09:0{number} up"),
                "link add guest0 mtu 1442 type veth peer name inner0 mtu 1442".to_owned(),
                "link set guest0 up".to_owned(),
            ] {
                ip(host, &command);
            }
            let name = ["a", "b"][usize::from(number) - 1];
            let wanted = SwitchSpec {
                encapsulation: Encapsulation::Geneve(Geneve {
                    options: GeneveOptions::Ovn,
                    udp_checksum: true,
                    ..Geneve::default()
                }),
                underlay: "under0".to_owned(),
                underlay_mtu: 1500,
                guests: vec!["guest0".to_owned()],
                local: [10, 9, 0, number].into(),
                peer: [10, 9, 0, 3 - number].into(),
                mac: [2, 0, 0, 0, 9, number],
                ovn: Some(Chassis {
                    name: name.to_owned(),
                    remote: central.remote(),
                    ports: vec![port_name(name, 0)],
                }),
            };
            let started = host
                .netns()
                .within(|| Switch::start(wanted, OvsDatapath::Userspace, "test"));
            let switch = started.expect("entered");
            switches.push(switch.unwrap_or_else(|error| panic!("{error}")));
            ip(
                host,
                &format!("address add 10.9.0.{number}/24 dev {UNDERLAY_BRIDGE}"),
            );
            ip(host, &format!("link set {UNDERLAY_BRIDGE} up"));
        }
        for (switch, other) in switches.iter_mut().zip([2, 1]) {
            let ready = switch.wait_for_ovn();
            ready.unwrap_or_else(|error| panic!("{error}"));
            let reached = switch.reach([10, 9, 0, other].into(), [2, 0, 0, 0, 9, other]);
            reached.unwrap_or_else(|error| panic!("{error}"));
        }
        let ready = central.wait_for_hosts(2);
        ready.unwrap_or_else(|error| panic!("{error}"));
        Self {
            hosts,
            switches,
            _central: central,
        }
    }

    /// Where the first host's database listens, for other processes.
    fn run_directory(&self) -> PathBuf {
        let own = self.switches[0].run_directory();
        let below = own.strip_prefix("/proc/self").expect("a descriptor's path");
        Path::new("/proc")
            .join(std::process::id().to_string())
            .join(below)
    }

    fn set(&self, what: &str) {
        let socket = self.run_directory().join("db.sock");
        let mut command = Command::new("ovs-vsctl");
        command
            .arg(format!("--db=unix:{}", socket.display()))
            .args(["--no-wait", "set", "open_vswitch", "."])
            .arg(format!("external-ids:{what}"));
        assert!(succeeds(&mut command), "{what}");
    }

    /// Findings of this test's kind on the first host, by id and device, and what could not be read.
    fn found(&self) -> BTreeSet<String> {
        let mut command = wirecost(["check", "local", "10.9.0.2", "--json"]);
        command.env("OVS_RUNDIR", self.run_directory());
        let ended = self.hosts[0].netns().within(|| run(&mut command));
        let document = ended.expect("entered").document();
        let text = document.to_string();
        assert!(!text.contains("southbound database ("), "unread: {text}");
        let findings = document["findings"].as_array().expect("findings");
        let told = findings.iter().filter_map(|finding| {
            let id = finding["id"].as_str().filter(|id| OF_OVN.contains(id))?;
            let device = match &finding["device"] {
                Value::String(device) => format!(" {device}"),
                _ => String::new(),
            };
            Some(format!("{id}{device}"))
        });
        told.collect()
    }
}

fn ip(host: &HeldNetns, arguments: &str) {
    let mut command = Command::new("ip");
    command.args(arguments.split(' '));
    let done = host.netns().within(|| succeeds(&mut command));
    assert!(done.expect("entered"), "ip {arguments}");
}

#[test]
fn each_fault_of_a_running_ovn_is_found_and_none_where_there_is_none() {
    if !ovn_can_run() {
        return;
    }
    let _turn = beside_others();
    let lab = Lab::new();
    let expect = |wanted: &[&str], when: &str| {
        let found = lab.found();
        let wanted: BTreeSet<String> = wanted.iter().map(|one| (*one).to_owned()).collect();
        assert_eq!(found, wanted, "{when}");
    };
    expect(&[], "as it should be");
    ip(&lab.hosts[0], "link set guest0 mtu 1450");
    expect(&["geneve-options-not-counted guest0"], "VXLAN's MTU");
    ip(&lab.hosts[0], "link set guest0 mtu 1500");
    expect(&["tunnel-exceeds-underlay guest0"], "the underlay's MTU");
    ip(&lab.hosts[0], "link set guest0 mtu 1442");
    lab.set("ovn-encap-csum=false");
    expect(&["ovn-checksum-one-way ovn-b-0"], "one host's checksum");
    lab.set("ovn-encap-csum=true");
    // It is to go on as it is: it would take up what follows.
    let controller = *lab.switches[0].processes().last().expect("three");
    signal(controller, Signal::SIGSTOP);
    lab.set("ovn-encap-ip=10.9.0.77");
    expect(&["ovn-encap-address-missing"], "another address");
    ip(&lab.hosts[0], "address add 10.9.0.77/32 dev inner0");
    expect(
        &["ovn-encap-address-elsewhere br-underlay"],
        "the address of another device",
    );
    lab.set("ovn-encap-ip=10.9.0.1");
    lab.set("system-id=nobody");
    expect(&["ovn-chassis-missing"], "a host that is not registered");
    signal(controller, Signal::SIGCONT);
}
