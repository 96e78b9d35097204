//! Open vSwitch's kernel datapath and the one in userspace, one beside the other.

use crate::machine::Machine;
use crate::record::by_open_vswitch;
use crate::steps::Step;

pub(crate) const STEP: Step = Step {
    name: "labs by Open vSwitch",
    looks_at: "`datapath: [ovs, ovs-kernel]`: VXLAN and Geneve with OVN's option over IPv4 by either, none, VLAN and VXLAN over \
               IPv6 by the kernel's, each proven and seen on the underlay; no daemon, device or datapath is left",
    needs: &["openvswitch", "tbf"],
    run,
};

fn run(machine: &mut Machine) {
    by_open_vswitch(
        machine,
        "name: switches\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: max\n\
         encapsulation: [vxlan, { geneve: { options: ovn } }]\nudp_checksum: on\n\
         datapath: [ovs, ovs-kernel]\noffload: none\nrepeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        4,
    );
    by_open_vswitch(
        machine,
        "name: plain\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: max\nencapsulation: [none, vlan]\n\
         datapath: ovs-kernel\noffload: none\nrepeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        2,
    );
    by_open_vswitch(
        machine,
        "name: over-ipv6\nunderlay: { mtu: 9000, rate: 100mbit, ip: ipv6 }\nguest_mtu: max\nencapsulation: vxlan\n\
         udp_checksum: on\ndatapath: ovs-kernel\noffload: none\n\
         repeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        1,
    );
    let left = "ps | grep -v grep | grep -e ovs-vswitchd -e ovsdb-server; ip -o link | grep -e ovs -e vxlan -e genev; true";
    assert_eq!(machine.sh(10, left).fine(), "");
}
