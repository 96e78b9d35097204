//! OVN over Open vSwitch's kernel datapath, and beside it the one in userspace.

use crate::machine::Machine;
use crate::record::by_open_vswitch;
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
    by_open_vswitch(
        machine,
        "name: tunnels\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: max\n\
         encapsulation: [vxlan, { geneve: { options: ovn } }]\nudp_checksum: on\n\
         datapath: [ovn, ovn-kernel]\noffload: none\nrepeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        4,
    );
    by_open_vswitch(
        machine,
        "name: plain\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: max\nencapsulation: [none, vlan]\n\
         datapath: ovn-kernel\noffload: none\nrepeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        2,
    );
    by_open_vswitch(
        machine,
        "name: logical\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: max\n\
         encapsulation: { geneve: { options: ovn } }\nudp_checksum: on\ndatapath: ovn-kernel\n\
         topology: [switched, routed]\nacl: allow-related\noffload: none\n\
         repeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        2,
    );
    by_open_vswitch(
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
