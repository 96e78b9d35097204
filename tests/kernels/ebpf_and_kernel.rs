//! The eBPF datapath with the kernel's own devices at the other end of the tunnel.

use crate::machine::Machine;
use crate::steps::Step;

pub(crate) const STEP: Step = Step {
    name: "eBPF with the kernel's vxlan and geneve",
    looks_at: "`crates/vtep/tests/tunnels.rs`: either IP, with and without checksums and offloads, 1450 and 8900; nothing \
               dropped, no wrong checksum counted by the kernel; clsact where tcx is refused",
    needs: &["ebpf", "vxlan", "geneve", "ipv6"],
    run,
};

fn run(machine: &mut Machine) {
    let told = machine
        .sh(
            200,
            "WIRECOST_REQUIRE_ROOT=1 tunnels --test-threads 1 --nocapture interoperates clsact 2>&1 | tail -n 40",
        )
        .fine();
    for test in [
        "vxlan_interoperates_with_the_kernels",
        "geneve_interoperates_with_the_kernels",
        "clsact_does_where_there_is_no_tcx",
    ] {
        assert!(told.contains(&format!("{test} ... ok")), "{told}");
    }
}
