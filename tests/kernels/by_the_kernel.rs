//! Labs by the kernel's devices, which the kernel of the tests' own machine may lack.

use crate::is_of;
use crate::machine::Machine;
use crate::record::{measured, proven_on_the_wire};
use crate::steps::Step;

pub(crate) const STEP: Step = Step {
    name: "labs by the kernel's devices",
    looks_at: "none, VLAN, VXLAN, Geneve, GRE, gretap, IP in IP, WireGuard over IPv4 and IPv6, inside IPv4 on 6.1 and IPv6 on \
               later kernels: 14 cells, each proven from both sides by a frame of exactly 9000 bytes that was seen on the \
               underlay; WireGuard's padding",
    needs: &[
        "vlan",
        "vxlan",
        "geneve",
        "gre",
        "ipip",
        "wireguard",
        "ipv6",
        "tbf",
    ],
    run,
};

/// A driver that is missing makes a cell that is not valid, and that fails.
fn run(machine: &mut Machine) {
    let oldest = is_of(&machine.release, "6.1");
    let guest_ip = if oldest { "ipv4" } else { "ipv6" };
    let plan = format!(
        "name: drivers\nunderlay: {{ mtu: 9000, rate: 100mbit, ip: [ipv4, ipv6] }}\nguest_ip: {guest_ip}\nguest_mtu: max\n\
         encapsulation: [none, vlan, vxlan, geneve, gre, gretap, ipip, wireguard]\ndatapath: kernel\noffload: none\n\
         repeat: {{ rounds: 1, seconds: 0.1, warmup: 0.1 }}\n"
    );
    let (cells, samples) = measured(machine, &plan, 240);
    // None and a tag are the same over either IP.
    assert_eq!(cells.len(), 2 + 2 * 6);
    let sizes = proven_on_the_wire(&cells, &samples);
    assert_eq!(sizes.len(), cells.len());
    // Guests have all that the underlay leaves them.
    for (levels, bytes) in sizes {
        assert_eq!(bytes, 9000, "{levels}");
    }
    let (cells, samples) = measured(
        machine,
        "name: padded\nunderlay: { mtu: 9000, rate: 100mbit }\nencapsulation: { wireguard: { port: 51821 } }\n\
         guest_mtu: 1500\ndatapath: kernel\noffload: tunnel\nrepeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        60,
    );
    // 1500 padded to a multiple of 16, and 60.
    let sizes: Vec<u64> = proven_on_the_wire(&cells, &samples).into_values().collect();
    assert_eq!(sizes, [1504 + 60]);
}
