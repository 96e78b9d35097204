//! `wirecost check` on a host with a running OVN: what is right has no finding, and each fault that is put in has its
//! own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{lock_shared, run, signal, succeeds, wirecost};
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
const OF_OVN: [&str; 12] = [
    "geneve-options-not-counted",
    "tunnel-exceeds-underlay",
    "ovn-encap-address-missing",
    "ovn-encap-address-elsewhere",
    "ovn-checksum-one-way",
    "ovn-chassis-missing",
    "ovn-tunnel-missing",
    "ovn-named-chassis-missing",
    "ovn-announced-mtu-exceeds-path",
    "ovn-gateway-mtu-exceeds-path",
    "ovn-gateway-mtu-missing",
    "ovn-gateway-mtu-bypassed",
];

/// Two hosts by OVN's Geneve over 1500, a guest's port on each.
struct Lab {
    hosts: [HeldNetns; 2],
    switches: Vec<Switch>,
    central: Central,
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
            central,
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
        self.vsctl(&format!("set open_vswitch . external-ids:{what}"));
    }

    /// Of the first host's switch.
    fn vsctl(&self, arguments: &str) {
        let socket = self.run_directory().join("db.sock");
        database_tool("ovs-vsctl", &socket, arguments);
    }

    /// Of OVN's northbound database.
    fn nbctl(&self, arguments: &str) -> String {
        database_tool("ovn-nbctl", &self.central.remote(), arguments)
    }

    fn sbctl(&self, arguments: &str) {
        database_tool("ovn-sbctl", &self.central.remote(), arguments);
    }

    /// Findings of this test's kind on the first host, by id and device, with their commands.
    fn found(&self) -> BTreeMap<String, Vec<String>> {
        let mut command = wirecost(["check", "local", "10.9.0.2", "--json"]);
        command.env("OVS_RUNDIR", self.run_directory());
        let ended = self.hosts[0].netns().within(|| run(&mut command));
        let document = ended.expect("entered").document();
        let text = document.to_string();
        assert!(!text.contains("bound database ("), "unread: {text}");
        let findings = document["findings"].as_array().expect("findings");
        let told = findings.iter().filter_map(|finding| {
            let id = finding["id"].as_str().filter(|id| OF_OVN.contains(id))?;
            let device = match &finding["device"] {
                Value::String(device) => format!(" {device}"),
                _ => String::new(),
            };
            let fix = finding["fix"].as_array().expect("commands").iter();
            let fix = fix.filter_map(|line| line.as_str().map(str::to_owned));
            Some((format!("{id}{device}"), fix.collect()))
        });
        told.collect()
    }

    fn expect(&self, wanted: &[&str], when: &str) {
        let found: Vec<String> = self.found().into_keys().collect();
        assert_eq!(found, wanted, "{when}");
    }

    /// There is this finding and no other, and what it says to type ends it.
    fn expect_until_fixed(&self, wanted: &str, when: &str) {
        let found = self.found();
        let ids: Vec<&String> = found.keys().collect();
        assert_eq!(ids, [wanted], "{when}");
        for line in found[wanted].iter().filter(|line| !line.starts_with('#')) {
            assert!(succeeds(Command::new("sh").args(["-c", line])), "{line}");
        }
        self.expect(&[], when);
    }
}

fn database_tool(tool: &str, socket: &Path, arguments: &str) -> String {
    let mut command = Command::new(tool);
    let database = format!("--db=unix:{}", socket.display());
    command.args([&database, "--timeout=10"]);
    let done = command.args(arguments.split(' ')).output().expect(tool);
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{tool} {arguments}: {said}");
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
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
    let _lock = lock_shared();
    let lab = Lab::new();
    lab.expect(&[], "as it should be");
    ip(&lab.hosts[0], "link set guest0 mtu 1450");
    lab.expect(&["geneve-options-not-counted guest0"], "VXLAN's MTU");
    ip(&lab.hosts[0], "link set guest0 mtu 1500");
    lab.expect(&["tunnel-exceeds-underlay guest0"], "the underlay's MTU");
    ip(&lab.hosts[0], "link set guest0 mtu 1442");
    lab.set("ovn-encap-csum=false");
    lab.expect(&["ovn-checksum-one-way ovn-b-0"], "one host's checksum");
    lab.set("ovn-encap-csum=true");
    // It is to go on as it is: it would take up what follows.
    let controller = *lab.switches[0].processes().last().expect("three");
    signal(controller, Signal::SIGSTOP);
    lab.set("ovn-encap-ip=10.9.0.77");
    lab.expect(&["ovn-encap-address-missing"], "another address");
    ip(&lab.hosts[0], "address add 10.9.0.77/32 dev inner0");
    lab.expect(
        &["ovn-encap-address-elsewhere br-underlay"],
        "the address of another device",
    );
    lab.set("ovn-encap-ip=10.9.0.1");
    lab.set("system-id=nobody");
    lab.expect(&["ovn-chassis-missing"], "a host that is not registered");
    signal(controller, Signal::SIGCONT);
}

#[test]
fn each_fault_of_a_logical_network_is_found_and_its_fix_ends_it() {
    if !ovn_can_run() {
        return;
    }
    let _lock = lock_shared();
    let lab = Lab::new();
    let nb = |arguments: &str| lab.nbctl(arguments);
    let announced = "ovn-announced-mtu-exceeds-path switch";
    let options = nb("create DHCP_Options cidr=10.7.0.0/24 options:lease_time=3600");
    nb(&format!("lsp-set-dhcpv4-options a-guest0 {options}"));
    lab.expect_until_fixed(announced, "DHCP options without an MTU");
    nb(&format!("set DHCP_Options {options} options:mtu=1500"));
    lab.expect_until_fixed(announced, "DHCP options with the underlay's MTU");

    nb("lr-add router");
    join(&lab, "switch", "to-guests", "10.7.0.254/24");
    nb("set Logical_Router_Port to-guests ipv6_ra_configs:mtu=1500");
    lab.expect_until_fixed(announced, "router advertisements");
    nb("set Logical_Router_Port to-guests options:gateway_mtu=1500");
    let exceeds = "ovn-gateway-mtu-exceeds-path";
    lab.expect_until_fixed(&format!("{exceeds} to-guests"), "towards the tunnels");

    ip(
        &lab.hosts[0],
        "link add ext0 mtu 1400 type veth peer name ext1 mtu 1400",
    );
    ip(&lab.hosts[0], "link set ext0 up");
    lab.vsctl("add-br br-ex -- set bridge br-ex datapath_type=netdev -- add-port br-ex ext0");
    lab.set("ovn-bridge-mappings=physnet:br-ex");
    nb("ls-add outside");
    nb(
        "lsp-add outside physical -- lsp-set-type physical localnet -- lsp-set-addresses physical unknown",
    );
    nb("lsp-set-options physical network_name=physnet");
    join(&lab, "outside", "to-outside", "10.8.0.254/24");
    lab.expect_until_fixed(
        "ovn-gateway-mtu-missing to-outside",
        "a smaller provider network",
    );
    nb("set Logical_Router_Port to-outside options:gateway_mtu=1500");
    lab.expect_until_fixed(
        &format!("{exceeds} to-outside"),
        "larger than the provider network",
    );
    nb("set Logical_Router_Port to-outside options:gateway_mtu_bypass=tcp");
    lab.expect(&["ovn-gateway-mtu-bypassed to-outside"], "a bypass");
    nb("remove Logical_Router_Port to-outside options gateway_mtu_bypass");

    nb("lsp-add switch vm9 -- lsp-set-options vm9 requested-chassis=c");
    lab.expect(&["ovn-named-chassis-missing"], "a host that never joined");
    nb("lsp-del vm9");
    // It would make the tunnel.
    let controller = *lab.switches[0].processes().last().expect("three");
    signal(controller, Signal::SIGSTOP);
    lab.sbctl("chassis-add c geneve 10.9.0.3");
    lab.expect(&["ovn-tunnel-missing"], "a host without a tunnel from here");
    signal(controller, Signal::SIGCONT);
}

/// Joins a switch to the router by a port of that name.
fn join(lab: &Lab, switch: &str, port: &str, network: &str) {
    lab.nbctl(&format!(
        "lrp-add router {port} 02:00:00:03:00:01 {network}"
    ));
    lab.nbctl(&format!(
        "lsp-add {switch} {port}-peer -- lsp-set-type {port}-peer router -- lsp-set-addresses {port}-peer router \
         -- lsp-set-options {port}-peer router-port={port}"
    ));
}
