//! The run directory: what is written where, and its version.
//!
//! `run.json` is written before the first sample, `samples.jsonl` grows by a line per sample,
//! `end.json` is written last. A directory without `end.json` is a run that was killed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::cell::Experiment;
use crate::line::LineRelease;
use crate::usage::Wakeups;

/// Version of the record that this program writes. Readers read every older one and refuse a newer one.
///
/// 1: IPv4 only. 2: the plan's `underlay.ip` and `guest_ip`, and with them the networks of the cells,
/// whose absence means IPv4; `repeat.until` of the plan and `until` of the end, whose absence means a fixed
/// number of rounds; the experiment's `twin`. 3: any load and several at once: `loads` of plan, cells and samples,
/// which had one TCP stream in `load` and `stream` before; the plan's `vary` and the cells' `settings`, whose absence
/// means that nothing was set; `steering`, whose absence means one queue and steering to each host's own cores. 4: the
/// encapsulations `vlan`, `geneve`, `gre`, `gretap` and `ipip`, which older readers do not know; the plan's `udp_checksum` and `datapath` and the
/// cells' `datapath`, whose absence means that the kernel encapsulates. 5: the mark `cores-moved`, which older readers do not
/// know, and `cores_apart` of samples, whose absence means that nobody looked; `lost` datagrams are of those sent within the
/// window and not of the numbers read within it, and `late` responses no longer those that came again, which have `duplicated`.
/// 6: a latency with a rate counts from when its request was sent, and `lateness` has the time from due to sent; `schedule` and
/// `io` of loads, `saturated` of samples, `wakeups`, `idle_step_s` and `transit_cores` of hosts, `wakeup_cost` and `line` of the environment;
/// the verdict `not_comparable`. All are absent in older records.
pub const VERSION: u32 = 6;

/// File names within a run directory.
pub mod file {
    /// [`super::RunHead`].
    pub const RUN: &str = "run.json";
    /// One [`crate::sample::Sample`] a line.
    pub const SAMPLES: &str = "samples.jsonl";
    /// [`super::RunEnd`].
    pub const END: &str = "end.json";
    /// The plan's text as the user wrote it.
    pub const PLAN: &str = "plan.yaml";
    /// The result for people, made from the others; no reader needs it.
    pub const REPORT: &str = "report.html";
}

/// `run.json`: everything that was known before the first sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    /// [`VERSION`].
    pub record_version: u32,
    /// Version of the program.
    pub program_version: String,
    /// Start in UTC, RFC 3339.
    pub started: String,
    /// Seed of the random order.
    pub seed: u64,
    /// The plan, expanded.
    pub experiment: Experiment,
    /// Where it ran.
    pub environment: Environment,
}

/// What may make two runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// `uname -r`.
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// Cores this run may use.
    pub cpus: Vec<u32>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// Whether a hypervisor is beneath (the `hypervisor` CPU flag).
    pub virtual_machine: bool,
    /// `root`, or `user namespace`.
    pub privilege: String,
    /// Sysctls that matter to a network measurement, by dotted name, as read in the guests' namespace.
    pub sysctls: BTreeMap<String, String>,
    /// The hosts by name.
    pub hosts: BTreeMap<String, HostEnvironment>,
    /// What it costs a core to be woken, measured before the run; `None` in records of versions before 6, and where other
    /// programs left no quiet moment. It travels from the agent, so it is never left out.
    #[serde(default)]
    pub wakeup_cost: Option<WakeupCost>,
    /// How the line lets packets out; `None` where no cell has one, and in records of earlier programs, whose line was a
    /// token bucket. It travels from the agent, so it is never left out.
    #[serde(default)]
    pub line: Option<LineRelease>,
}

/// Core time that one wake-up costs on this machine, nanoseconds: what a core that wakes, does nothing and sleeps again is
/// busy for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupCost {
    /// By a timer of its own.
    pub timer_ns: u64,
    /// By a thread on another core: both cores together; 0 where there is one core only.
    pub other_core_ns: u64,
}

impl WakeupCost {
    /// Seconds of core time that interrupts of one host's cores take at most: as if each woke its core. Of what another core
    /// causes it is the half that is woken.
    pub fn seconds(&self, wakeups: &Wakeups) -> f64 {
        let by_others = wakeups.interrupts() - wakeups.timer;
        (wakeups.timer as f64 * self.timer_ns as f64
            + by_others as f64 * self.other_core_ns as f64 / 2.0)
            / 1e9
    }
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEnvironment {
    /// Cores its threads are pinned to; of an existing host all of its cores.
    pub cpus: Vec<u32>,
    /// `split` (cores of its own) or `shared`.
    pub cores: String,
    /// An existing host; `None` in a lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<ExistingHost>,
}

/// An existing host as a run found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExistingHost {
    /// The address that was measured.
    pub address: IpAddr,
    /// The device that has it.
    pub device: String,
    /// That device's MTU in bytes.
    pub mtu: u32,
    /// Speed of its link in bit/s, where its driver knows.
    pub speed: Option<u64>,
    /// What the host is.
    #[serde(flatten)]
    pub machine: HostMachine,
}

/// What may make two hosts differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMachine {
    /// `uname -r`.
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// Whether a hypervisor is beneath.
    pub virtual_machine: bool,
}

/// `end.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// What ended it early.
    pub reason: Option<String>,
    /// Wall-clock seconds from start to end, building included.
    pub seconds: f64,
    /// Of these, within measured windows.
    pub measured_s: f64,
    /// Why an adaptive run stopped by its rule; absent in one with a fixed
    /// number of rounds, and where something else stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UntilEnd>,
}

/// How an adaptive run stopped by its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntilEnd {
    /// Why no further round was begun.
    pub why: Why,
    /// The round at which it would have ended whatever was known, as it looked at the last look: whoever
    /// looks again with it comes to the same.
    pub ends_at: u32,
}

/// Why no further round was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Every effect that was waited for is known.
    Known,
    /// The most rounds of the plan were measured.
    MaxRounds,
    /// Another round would not have fitted into the budget.
    Budget,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every round was measured, or as many as the plan's rule asked for.
    Complete,
    /// Ctrl-C or another signal.
    Interrupted,
    /// It could not go on.
    Failed,
}

/// A run as read back from its directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// `run.json`.
    pub head: RunHead,
    /// The samples, in the order in which they were taken.
    pub samples: Vec<crate::sample::Sample>,
    /// `end.json`; `None` after a kill.
    pub end: Option<RunEnd>,
}
