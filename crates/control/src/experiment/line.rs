//! Forecasts what will emulate the rate-limited lines of a run, without building anything.

use std::fs;

use wirecost_model::cell::Experiment;
use wirecost_model::line::{LineQdisc, LineRelease};

use super::datapath::Drivers;

/// Bits of `CapEff` (include/uapi/linux/capability.h), either of which lets eBPF programs be loaded.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;
/// Fields of /proc/self/uid_map in the initial user namespace, which maps all users (user_namespaces(7)).
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

/// How lines will most likely release packets; `None` where the plan has no line, or where that is unknown.
pub(crate) fn forecast(experiment: &Experiment) -> Option<LineRelease> {
    let step_us = experiment.plan.underlay.release_us?;
    let has_fq = Drivers::read().has(" fq_enqueue", "/sch_fq.ko")?;
    let several = experiment
        .plan
        .underlay
        .links
        .iter()
        .any(|links| *links > 1);
    Some(if !has_fq {
        let release = LineRelease::one_by_one("this kernel has no fq (CONFIG_NET_SCH_FQ)".into());
        let by = if several && may_load_programs() {
            LineQdisc::Htb
        } else {
            release.by
        };
        LineRelease { by, ..release }
    } else if may_load_programs() {
        LineRelease::in_steps(step_us)
    } else {
        LineRelease::one_by_one("departure times are set by eBPF, which needs root".into())
    })
}

fn may_load_programs() -> bool {
    let text = |path| fs::read_to_string(path).unwrap_or_default();
    let users = text("/proc/self/uid_map");
    let status = text("/proc/self/status");
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    let has = |bit: u32| effective.is_some_and(|bits| bits >> bit & 1 == 1);
    users.split_whitespace().eq(ALL_USERS) && (has(CAP_SYS_ADMIN) || has(CAP_BPF))
}
