//! Labs that the kernel of this machine cannot build.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::machine::Machine;

/// The cells and samples of a run in the machine, which must have completed.
#[track_caller]
fn measured(machine: &mut Machine, plan: &str, seconds: u32) -> (Vec<Value>, Vec<Value>) {
    let run = format!(
        "rm -rf /tmp/run; cat >/tmp/plan.yaml <<'END'\n{plan}END\n\
         wirecost run /tmp/plan.yaml --out /tmp/run --seed 1 >/tmp/shown || {{ tail -n 40 /tmp/shown; exit 1; }}"
    );
    machine.sh(seconds, &run).fine();
    let head = machine.sh(10, "cat /tmp/run/run.json").fine();
    let head: Value = serde_json::from_str(&head).expect("run.json");
    let lines = machine.sh(10, "cat /tmp/run/samples.jsonl").fine();
    let samples = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("a sample"))
        .collect();
    let cells = head["experiment"]["cells"].as_array().expect("cells");
    (cells.clone(), samples)
}

/// Every cell is valid, carried its load, and was proven from either side by a frame that was seen on the underlay as
/// large as it was computed to be. Returns the bytes of that frame's outer IP packet by the cell's levels.
#[track_caller]
fn proven_on_the_wire(cells: &[Value], samples: &[Value]) -> BTreeMap<String, u64> {
    assert_eq!(samples.len(), cells.len());
    let mut sizes = BTreeMap::new();
    for sample in samples {
        let cell = &cells[sample["cell"].as_u64().expect("cell") as usize];
        let levels = cell["levels"].to_string();
        assert!(
            sample["invalid"].is_null(),
            "{levels}: {}",
            sample["invalid"]
        );
        let bytes = sample["loads"][0]["flows"][0]["bytes"].as_u64();
        assert!(bytes.is_some_and(|bytes| bytes > 0), "{levels}: {sample}");
        let proofs = sample["proofs"].as_array().expect("proofs");
        let mut seen_from = BTreeSet::new();
        for proof in proofs {
            assert_eq!(proof["proven"], true, "{levels}: {proof}");
            let seen = &proof["seen"];
            if seen.is_null() {
                continue;
            }
            assert_eq!(
                seen["frame_bytes"], seen["expected_frame_bytes"],
                "{levels}"
            );
            assert_eq!(
                seen["outer_ip_bytes"], seen["expected_outer_ip_bytes"],
                "{levels}"
            );
            assert_eq!(seen["fragment"], false, "{levels}");
            seen_from.insert(proof["from"].as_str().expect("a side").to_owned());
            sizes.insert(
                levels.clone(),
                seen["outer_ip_bytes"].as_u64().expect("bytes"),
            );
        }
        assert_eq!(
            seen_from,
            ["a", "b"].map(str::to_owned).into(),
            "{levels}: {proofs:?}"
        );
    }
    sizes
}

/// Both IP versions outside and inside; a driver that is missing here makes a cell that is not valid, and that fails.
pub(crate) fn by_the_kernel(machine: &mut Machine) {
    let (cells, samples) = measured(
        machine,
        "name: drivers\nunderlay: { mtu: 9000, rate: 100mbit, ip: [ipv4, ipv6] }\nguest_ip: [ipv4, ipv6]\nguest_mtu: max\n\
         encapsulation: [none, vlan, vxlan, geneve, gre, gretap, ipip, wireguard]\ndatapath: kernel\noffload: none\n\
         repeat: { rounds: 1, seconds: 0.1, warmup: 0.1 }\n",
        240,
    );
    // None and a tag are the same over either IP.
    assert_eq!(cells.len(), 2 * 2 + 2 * 2 * 6);
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

/// By clsact on 6.1, by tcx since 6.6.
pub(crate) fn by_ebpf(machine: &mut Machine) {
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

/// The room's own tests, with the kernel's devices at the other end.
pub(crate) fn beside_the_kernel(machine: &mut Machine) {
    let told = machine
        .sh(
            200,
            "WIRECOST_REQUIRE_ROOT=1 tunnels --test-threads 1 --nocapture interoperates clsact 2>&1 | tail -n 40",
        )
        .fine();
    assert!(
        told.contains("vxlan_interoperates_with_the_kernels ... ok"),
        "{told}"
    );
    assert!(
        told.contains("geneve_interoperates_with_the_kernels ... ok"),
        "{told}"
    );
    assert!(
        told.contains("clsact_does_where_there_is_no_tcx ... ok"),
        "{told}"
    );
}

/// A plain user's lab. Before Linux 6.3 there is no `rps_default_mask`, and hosts on cores of their own need root: that
/// is said, with the way out, which works.
pub(crate) fn without_root(machine: &mut Machine) {
    let mut run = |cores: &str| {
        let script = format!(
            "rm -rf /tmp/rootless; cat >/tmp/rootless.yaml <<'END'\n\
             name: rootless\ncores: {cores}\nunderlay: {{ mtu: 9000, rate: 100mbit }}\nguest_mtu: [1500, 8000]\n\
             encapsulation: [none, vxlan]\noffload: none\nrepeat: {{ rounds: 2, seconds: 0.2, warmup: 0.1 }}\nEND\n\
             setpriv --reuid 65534 --regid 65534 --clear-groups wirecost run /tmp/rootless.yaml --out /tmp/rootless --seed 1"
        );
        machine.sh(120, &script)
    };
    let split = run("split");
    let shown = if split.code == 0 {
        split.stdout
    } else {
        let told = split.expect_code(3).stderr;
        assert!(told.contains("rps_default_mask"), "{told}");
        assert!(told.contains("`cores: shared`"), "{told}");
        run("shared").fine()
    };
    assert!(shown.contains("In short"), "{shown}");
    let there = machine
        .sh(10, "test -e /proc/sys/net/core/rps_default_mask")
        .code
        == 0;
    println!("{}: rps_default_mask: {there}", machine.release);
}

/// The controller, an agent, both: by SIGKILL, in a run that has begun to measure.
pub(crate) fn killed(machine: &mut Machine) {
    machine.sh(120, ". /scripts/killed.sh").fine();
}
