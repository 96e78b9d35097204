//! Labs by eBPF: attached by clsact on 6.1, by tcx since 6.6.

use crate::machine::Machine;
use crate::record::{measured, proven_on_the_wire};
use crate::steps::Step;

pub(crate) const STEP: Step = Step {
    name: "labs by eBPF",
    looks_at: "none, VLAN, VXLAN, Geneve with OVN's option, over IPv4 and IPv6, with and without an outer checksum; by \
               clsact where there is no tcx",
    needs: &["ebpf", "ipv6", "tbf"],
    run,
};

fn run(machine: &mut Machine) {
    let (cells, samples) = measured(
        machine,
        "name: programs\nunderlay: { mtu: 9000, rate: 100mbit, ip: [ipv4, ipv6] }\nguest_mtu: max\n\
         encapsulation: [none, vlan, vxlan, { geneve: { options: ovn } }]\nudp_checksum: [off, on]\ndatapath: ebpf\n\
         offload: none\nrepeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        240,
    );
    assert_eq!(cells.len(), 2 + 2 * 2 * 2);
    assert_eq!(proven_on_the_wire(&cells, &samples).len(), cells.len());
}
