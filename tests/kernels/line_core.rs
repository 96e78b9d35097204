//! A line on a core that neither host has, in a machine with four: where its work is done is read from the kernel's
//! trace.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::machine::{Kernel, Machine};
use crate::record::measured;
use crate::steps::OwnMachineStep;
use crate::{boot_with, steps};

pub(crate) const STEP: OwnMachineStep = OwnMachineStep {
    name: "a line on a core of its own",
    looks_at: "a machine of four processors, hosts on 0 and on 1 and 2: what the line sends and its timers are on 3 alone, \
               what hosts send is on theirs; plain, VXLAN, eBPF's VXLAN, and no line in between; as root by fq and as a \
               plain user by tbf",
    needs: &["fq", "tbf", "ebpf", "vxlan"],
    needs_root: false,
    by_name: false,
    run,
};

const PLAN: &str = "name: apart\nunderlay: { mtu: 9000, rate: 100mbit, release: 1ms }\nguest_mtu: 1500\n\
                    encapsulation: [none, vxlan]\ndatapath: DATAPATH\noffload: [none, tunnel]\ncores: split\n\
                    repeat: { rounds: 1, seconds: 0.4, warmup: 0.2 }\n";

/// Begins a trace of what devices send, and of the timers of queueing disciplines, on each processor.
const TRACE: &str = "cd /sys/kernel/tracing; [ -e trace ] || { mount -t tracefs tracefs . && cd /sys/kernel/tracing; }\n\
    echo 0 >tracing_on; echo 8192 >buffer_size_kb; echo >trace\n\
    echo 'name == \"far\" || name == \"underlay\"' >events/net/net_dev_xmit/filter; echo 1 >events/net/net_dev_xmit/enable\n\
    echo 1 >events/timer/hrtimer_expire_entry/enable; echo 1 >tracing_on";

/// `  wirecost-123  [003] ..s1.  12.3: net_dev_xmit: dev=far ...` as `far 3`; `qdisc_watchdog 3`. Each once, with how
/// often.
const TRACED: &str = "cd /sys/kernel/tracing; echo 0 >tracing_on; echo 0 >events/enable\n\
    sed -n -e 's/.*\\[0*\\([0-9][0-9]*\\)\\].* net_dev_xmit: dev=\\([a-z]*\\) .*/\\2 \\1/p' \
    -e 's/.*\\[0*\\([0-9][0-9]*\\)\\].* function=qdisc_watchdog .*/qdisc_watchdog \\1/p' trace | sort | uniq -c";

fn run(kernel: &Kernel) {
    let mut machine = boot_with(kernel, &["-smp", "4"]);
    let steers = steps::has_default_mask(&mut machine);
    for datapath in ["kernel", "ebpf"] {
        machine.sh(20, TRACE).fine();
        let plan = PLAN.replace("DATAPATH", datapath);
        let (cells, samples) = measured(&mut machine, &plan, 240);
        let traced = machine.sh(60, TRACED).fine();
        assert_eq!(samples.len(), cells.len());
        for sample in &samples {
            assert!(sample["invalid"].is_null(), "{sample}");
        }
        assert_eq!(line(&mut machine)["core"], 3);
        println!("{}: {datapath}: {traced}", machine.release);
        on_its_core(&traced);
    }
    // A plain user may not load programs; nor steer, before Linux 6.3.
    let plain = "cat >/tmp/plain.yaml <<'END'\nname: plain\nunderlay: { mtu: 9000, rate: 100mbit }\nguest_mtu: 1500\n\
                 encapsulation: [none, vxlan]\ndatapath: kernel\noffload: tunnel\nrepeat: { rounds: 1, seconds: 0.2, warmup: 0.1 }\nEND\n\
                 rm -rf /tmp/run; setpriv --reuid 65534 --regid 65534 --clear-groups \
                 wirecost run /tmp/plain.yaml --out /tmp/run --seed 1 --full";
    let shown = machine.sh(120, plain).fine();
    let line = line(&mut machine);
    assert_eq!(line["by"], "tbf", "{line}");
    assert_eq!(line["core"].as_u64(), steers.then_some(3), "{line}");
    assert_eq!(
        shown.contains("on core 3, which neither host uses"),
        steers,
        "{shown}"
    );
    let dry = machine
        .sh(30, "wirecost run /tmp/plan.yaml --dry-run")
        .fine();
    assert!(dry.contains("on core 3, which neither"), "{dry}");
}

fn line(machine: &mut Machine) -> Value {
    let head = machine.sh(10, "cat /tmp/run/run.json").fine();
    let head: Value = serde_json::from_str(&head).expect("run.json");
    head["environment"]["line"].clone()
}

/// The processors of each thing that was traced. A few frames of the hosts, of the kernel's own neighbour discovery,
/// may leave by the line's core: fewer than one in a hundred.
fn on_its_core(traced: &str) {
    let mut by: BTreeMap<&str, BTreeMap<u32, u64>> = BTreeMap::new();
    for line in traced.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [count, what, core] = words[..] else {
            panic!("{line}");
        };
        let number = |word: &str| word.parse::<u64>().expect("a number");
        let core = u32::try_from(number(core)).expect("a processor");
        by.entry(what).or_default().insert(core, number(count));
    }
    let on = |what: &str| by.get(what).cloned().unwrap_or_default();
    for of_the_line in ["far", "qdisc_watchdog"] {
        let cores: Vec<u32> = on(of_the_line).into_keys().collect();
        assert_eq!(cores, [3], "{of_the_line}: {traced}");
    }
    let hosts = on("underlay");
    let stray = hosts.get(&3).copied().unwrap_or_default();
    let all: u64 = hosts.values().sum();
    assert!(all > 0 && stray * 100 < all, "{traced}");
}

#[test]
fn work_of_the_line_on_another_core_is_seen() {
    on_its_core("  9 far 3\n 9 qdisc_watchdog 3\n 4 underlay 0\n 4 underlay 1\n");
    for traced in [
        "  9 far 3\n 1 far 0\n 9 qdisc_watchdog 3\n 4 underlay 0\n",
        "  9 far 3\n 9 qdisc_watchdog 0\n 4 underlay 0\n",
        "  9 far 3\n 9 qdisc_watchdog 3\n 4 underlay 3\n",
        "  9 underlay 3\n",
    ] {
        assert!(
            std::panic::catch_unwind(|| on_its_core(traced)).is_err(),
            "{traced}"
        );
    }
}
