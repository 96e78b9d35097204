//! OVN over Open vSwitch's kernel datapath, and beside it the one in userspace.

use serde_json::Value;

use crate::machine::Machine;
use crate::record::{measured, proven_on_the_wire};
use crate::steps::Step;

pub(crate) const STEP: Step = Step {
    name: "labs by OVN",
    looks_at: "`datapath: [ovn, ovn-kernel]`: OVN's Geneve and VXLAN by either; by the kernel's without a tunnel, routed, with an \
               ACL that tracks connections, and over IPv6; each proven and seen on the underlay; no daemon, device or datapath is \
               left",
    needs: &["openvswitch", "tbf"],
    run,
};

fn run(machine: &mut Machine) {
    by_its_own(
        machine,
        "name: tunnels\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: max\n\
         encapsulation: [vxlan, { geneve: { options: ovn } }]\nudp_checksum: on\n\
         datapath: [ovn, ovn-kernel]\noffload: none\nrepeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        4,
    );
    by_its_own(
        machine,
        "name: plain\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: max\nencapsulation: [none, vlan]\n\
         datapath: ovn-kernel\noffload: none\nrepeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        2,
    );
    by_its_own(
        machine,
        "name: logical\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: max\n\
         encapsulation: { geneve: { options: ovn } }\nudp_checksum: on\ndatapath: ovn-kernel\n\
         topology: [switched, routed]\nacl: allow-related\noffload: none\n\
         repeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        2,
    );
    by_its_own(
        machine,
        "name: over-ipv6\nunderlay: { mtu: 9000, rate: 100mbit, ip: ipv6 }\nguest_mtu: max\n\
         encapsulation: { geneve: { options: ovn } }\nudp_checksum: on\ndatapath: ovn-kernel\noffload: none\n\
         repeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        1,
    );
    let left = "ps | grep -v grep | grep -e ovn- -e ovs-vswitchd -e ovsdb-server; \
                ip -o link | grep -e ovs -e vxlan -e genev; true";
    assert_eq!(machine.sh(10, left).fine(), "");
}

/// Each cell by the datapath of its level, which its sample names together with OVN's version.
fn by_its_own(machine: &mut Machine, plan: &str, number: usize) {
    let (cells, samples) = measured(machine, plan, 400);
    assert_eq!(cells.len(), number);
    let sizes = proven_on_the_wire(&cells, &samples);
    assert!(sizes.values().all(|bytes| *bytes == 9000), "{sizes:?}");
    for sample in &samples {
        let cell = &cells[sample["cell"].as_u64().expect("cell") as usize];
        // A plan that names one does not vary it.
        let wanted = match cell["levels"]["datapath"].as_str() {
            Some("ovn") => "userspace",
            Some("ovn-kernel") | None => "kernel",
            other => panic!("{other:?}"),
        };
        let switch: &Value = &sample["open_vswitch"];
        assert_eq!(switch["datapath"], wanted, "{}", cell["levels"]);
        assert!(switch["ovn"].is_string(), "{switch}");
    }
}
