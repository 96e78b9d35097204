//! Judges cores, clock, memory and load that disturbs measurements: values against thresholds.

use std::fmt::Write as _;

use wirecost_model::usage::{FOREIGN_CORES_THRESHOLD, STEAL_THRESHOLD};

use crate::check::{Check, Group, Status};
use crate::evidence::{Evidence, MachineFacts, Outcome, Trial};
use crate::judge::kernel_feature::ENOENT;
use crate::kernel_config::OptionState;

/// Longest reading of a fast clock, nanoseconds: far above a processor's own counter (26 ns measured for tsc), below a
/// device register.
const SLOW_READING_NS: f64 = 500.0;
/// Available memory that suffices, bytes, for the programs of a run and its kernel buffers: each of 64
/// streams, the most a plan may have, can hold tcp_wmem's and tcp_rmem's 4 and 6 MiB.
const MEMORY_BYTES: u64 = 768 << 20;
/// Open files that suffice for 64 streams, with room for files, pipes and the standard library.
const DESCRIPTORS: u64 = 256;

/// Status, what was seen, advice.
type Answer = (Status, String, Option<String>);

pub(super) fn checks(evidence: &Evidence) -> Vec<Check> {
    let machine = &evidence.machine;
    let check = |id, title, group, needed_for, (status, seen, advice): Answer| Check {
        id,
        title,
        group,
        essential: false,
        status,
        seen,
        needed_for,
        advice,
    };
    let of_machine =
        |id, title, needed_for, answer| check(id, title, Group::Machine, needed_for, answer);
    vec![
        check(
            "btf",
            "Kernel types (BTF)",
            Group::Sockets,
            "eBPF programs that fit any kernel; no plan of this version has them",
            btf(machine),
        ),
        of_machine(
            "cores",
            "Cores for two hosts",
            "separating sender CPU from receiver CPU",
            cores(machine),
        ),
        of_machine(
            "clock",
            "Fast clock",
            "every duration; loads that take the time for each message",
            clock(machine),
        ),
        of_machine(
            "wakeups",
            "Cost of a wake-up",
            "separating the CPU cost of frames from that of wake-ups",
            wakeups(machine),
        ),
        of_machine(
            "steal",
            "Undisturbed by other guests (steal)",
            "samples without marks",
            steal(machine),
        ),
        of_machine(
            "foreign-load",
            "Undisturbed by other processes",
            "samples without marks",
            foreign_load(machine),
        ),
        of_machine(
            "cpu-frequency",
            "Steady CPU frequency",
            "samples that differ little",
            frequency(machine),
        ),
        of_machine(
            "memory",
            "Memory",
            "plans with many streams",
            memory(machine),
        ),
        of_machine(
            "descriptors",
            "Open files",
            "plans with many streams",
            descriptors(machine),
        ),
        of_machine(
            "bridge-netfilter",
            "Bridges without firewall hooks",
            "bridged frames at their own cost",
            bridge_netfilter(evidence),
        ),
    ]
}

fn yes(seen: String) -> Answer {
    (Status::Yes, seen, None)
}

fn limited(seen: String, advice: &str) -> Answer {
    (Status::Limited, seen, Some(advice.to_owned()))
}

fn unknown(seen: &str) -> Answer {
    (Status::Unknown, seen.to_owned(), None)
}

fn btf(machine: &MachineFacts) -> Answer {
    match &machine.btf {
        Some(Ok(bytes)) => yes(format!("{:.1} MB", *bytes as f64 / 1e6)),
        Some(Err(why)) => {
            let advice =
                "boot a kernel built with CONFIG_DEBUG_INFO_BTF, as Debian's stock kernel is";
            (Status::No, why.clone(), Some(advice.into()))
        }
        None => unknown("not read"),
    }
}

fn cores(machine: &MachineFacts) -> Answer {
    let (allowed, online) = (machine.allowed.len(), machine.online.len());
    let mut seen = format!("{allowed} of {online} may be used");
    let physical = machine.physical.len();
    if physical < allowed {
        seen = format!("{seen}, siblings on {physical} physical");
    }
    let quota = machine.cpu_quota.filter(|quota| *quota < allowed as f64);
    if let Some(quota) = quota {
        seen = format!("{seen}, for the time of {quota:.2} (control group)");
    }
    match (allowed, physical) {
        (0, _) => unknown("the processors that may be used cannot be read"),
        (1, _) if online > 1 => limited(
            seen,
            "both hosts share the one core, and their CPU cannot be separated: allow two \
             (`taskset`, the container's cpuset)",
        ),
        (1, _) => limited(
            seen,
            "both hosts share the one core, and their CPU cannot be separated: use a machine \
             with two",
        ),
        (_, 1) => limited(
            seen,
            "the hosts slow each other down inside the one physical core: allow processors of two, \
             or switch SMT off (`echo off > /sys/devices/system/cpu/smt/control` as root)",
        ),
        _ if quota.is_some() => limited(
            seen,
            "the kernel stops the hosts for the rest of each period once its time is used: raise \
             the quota (`cpu.max` of the control group, the container's `--cpus`)",
        ),
        _ => yes(seen),
    }
}

fn clock(machine: &MachineFacts) -> Answer {
    let clock = &machine.clock;
    let name = if clock.source.is_empty() {
        "unknown source"
    } else {
        &clock.source
    };
    let seen = format!("{name}, {:.0} ns a reading", clock.reading_ns);
    if clock.reading_ns <= SLOW_READING_NS {
        return yes(seen);
    }
    let fast = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"]
        .into_iter()
        .find(|fast| clock.source != *fast && clock.available.iter().any(|there| there == fast));
    match fast {
        Some(fast) => limited(
            seen,
            &format!(
                "`echo {fast} > /sys/devices/system/clocksource/clocksource0/current_clocksource` as root"
            ),
        ),
        None => limited(
            seen,
            "the kernel found no faster one; `dmesg | grep -i -e tsc -e clocksource` says why",
        ),
    }
}

/// Never a fault: verdicts on CPU come from windows in which no core waits for a line.
fn wakeups(machine: &MachineFacts) -> Answer {
    let Some(cost) = machine.wakeup else {
        return unknown("other programs left no quiet moment to measure it in");
    };
    let us = |ns: u64| ns as f64 / 1e3;
    let mut seen = format!("{:.1} us of a core by a timer", us(cost.timer_ns));
    if cost.other_core_ns > 0 {
        let _ = write!(
            seen,
            ", {:.1} us of two by another core",
            us(cost.other_core_ns)
        );
    }
    if let Some(window) = &machine.window {
        let step = if window.idle_step_s < 0.01 {
            "microseconds"
        } else {
            "steps of 10 ms"
        };
        let _ = write!(seen, "; busy time is counted in {step}");
    }
    yes(seen)
}

fn steal(machine: &MachineFacts) -> Answer {
    let Some(window) = &machine.window else {
        return unknown("/proc/stat cannot be read");
    };
    let (percent, seconds) = (window.steal * 100.0, window.seconds);
    let seen = format!("{percent:.1} % of all cores' time over {seconds:.1} s");
    if window.steal <= STEAL_THRESHOLD {
        return yes(seen);
    }
    limited(
        seen,
        "the hypervisor gives these cores to others, and samples are marked: dedicated cores, a \
         quieter time, or another machine",
    )
}

fn foreign_load(machine: &MachineFacts) -> Answer {
    let window = machine.window.as_ref();
    let Some((window, cores)) = window.and_then(|window| Some((window, window.foreign_cores?)))
    else {
        return unknown("the kernel keeps no run time per task (CONFIG_SCHED_INFO)");
    };
    let seen = format!(
        "other processes kept {cores:.2} cores busy over {:.1} s",
        window.seconds
    );
    if cores <= FOREIGN_CORES_THRESHOLD {
        return yes(seen);
    }
    limited(
        seen,
        "samples are marked: stop what `top` shows first, or measure at a quieter time",
    )
}

fn frequency(machine: &MachineFacts) -> Answer {
    match machine.governors.as_slice() {
        [] => unknown("not shown: the hypervisor or the firmware decides"),
        [one] if one == "performance" => yes("governor performance".into()),
        several => limited(
            format!("governor {}", several.join(", ")),
            "while measuring: `cpupower frequency-set -g performance` as root",
        ),
    }
}

fn memory(machine: &MachineFacts) -> Answer {
    let Some(available) = machine.memory_available else {
        return unknown("/proc/meminfo does not say");
    };
    let left = machine.memory_left.filter(|left| *left < available);
    let bytes = left.unwrap_or(available);
    let mut seen = format!("{:.1} GiB available", bytes as f64 / f64::from(1 << 30));
    if left.is_some() {
        seen.push_str(" (control group)");
    }
    if bytes >= MEMORY_BYTES {
        return yes(seen);
    }
    let mib = MEMORY_BYTES >> 20;
    let more = match left {
        Some(_) => {
            "raise the limit (`memory.max` of the control group, the container's `--memory`)"
        }
        None => "stop what `top -o %MEM` shows first",
    };
    limited(
        seen,
        &format!("64 streams may need {mib} MiB: plan fewer, or {more}"),
    )
}

fn descriptors(machine: &MachineFacts) -> Answer {
    let Some((soft, hard)) = machine.descriptors else {
        return unknown("the limit cannot be read");
    };
    let seen = format!("{soft} at once");
    if soft >= DESCRIPTORS {
        return yes(seen);
    }
    let root = if hard < DESCRIPTORS { " as root" } else { "" };
    limited(
        seen,
        &format!("64 streams may need {DESCRIPTORS}: `ulimit -n 1024`{root}"),
    )
}

/// Judges `bridge-nf-call-iptables` of a new namespace, which is what a lab gets.
fn bridge_netfilter(evidence: &Evidence) -> Answer {
    let of = |outcomes: &std::collections::BTreeMap<_, _>| {
        outcomes.get(&Trial::BridgeNetfilter).cloned()
    };
    let told = [of(&evidence.own.outcomes), of(&evidence.plain.outcomes)];
    let answer = told
        .into_iter()
        .flatten()
        .find(|outcome| !matches!(outcome, Outcome::NotTried(_)));
    match answer {
        Some(Outcome::Refused {
            code: Some(ENOENT), ..
        }) => yes("br_netfilter is not loaded".into()),
        Some(Outcome::Works(value)) if value == "0" => {
            yes("br_netfilter is loaded, and off in new namespaces".into())
        }
        Some(Outcome::Works(_)) => {
            let config = evidence.machine.config.as_ref();
            let built_in = config
                .is_some_and(|config| config.of("CONFIG_BRIDGE_NETFILTER") == OptionState::In);
            let what = "every bridged frame of a lab also passes the netfilter hooks, as on this \
                        machine's own bridges";
            limited(
                "br_netfilter is on in new namespaces".into(),
                &if built_in {
                    format!(
                        "{what}; it is built into this kernel, so take it as the cost of this one"
                    )
                } else {
                    format!(
                        "{what}; `modprobe -r br_netfilter` as root where no container engine needs it"
                    )
                },
            )
        }
        Some(Outcome::Refused { words, .. }) => unknown(&words),
        _ => unknown("no namespace to look into"),
    }
}
