//! Records of runs in a machine.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::machine::Machine;

/// The cells and samples of a run in the machine, which must have completed.
#[track_caller]
pub(crate) fn measured(
    machine: &mut Machine,
    plan: &str,
    seconds: u32,
) -> (Vec<Value>, Vec<Value>) {
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
pub(crate) fn proven_on_the_wire(cells: &[Value], samples: &[Value]) -> BTreeMap<String, u64> {
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

/// A plan of that many cells whose guests' MTU is the largest over 9000 bytes: each cell is proven, by the datapath of
/// its level, or the kernel's where the plan names one; by OVN, which version is told.
#[track_caller]
pub(crate) fn by_open_vswitch(machine: &mut Machine, plan: &str, number: usize) {
    let (cells, samples) = measured(machine, plan, 400);
    assert_eq!(cells.len(), number);
    let sizes = proven_on_the_wire(&cells, &samples);
    assert!(sizes.values().all(|bytes| *bytes == 9000), "{sizes:?}");
    for sample in &samples {
        let cell = &cells[sample["cell"].as_u64().expect("cell") as usize];
        let datapath = cell["network"]["datapath"].as_str().expect("a datapath");
        let (by, wanted) = match datapath.strip_suffix("-kernel") {
            Some(by) => (by, "kernel"),
            None => (datapath, "userspace"),
        };
        let switch = &sample["open_vswitch"];
        assert_eq!(switch["datapath"], wanted, "{datapath}: {switch}");
        assert_eq!(switch["ovn"].is_string(), by == "ovn", "{switch}");
    }
}
