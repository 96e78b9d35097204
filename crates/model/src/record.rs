//! The run directory: its files and their version.
//!
//! `run.json` is written before the first sample, `samples.jsonl` grows by a line per sample, `end.json` is written
//! last. In a directory without `end.json` the run was killed or is still going on.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::cell::Experiment;
use crate::line::LineRelease;
use crate::usage::Wakeups;

/// Version of the record that this program writes. Readers read every older version and refuse newer ones.
///
/// - 1: IPv4 only.
/// - 2: `underlay.ip` and `guest_ip` of the plan and of the cells' networks; absent, they mean IPv4. `repeat.until` of
///   the plan and `until` of the end; absent, they mean a fixed number of rounds. The experiment's `twin`.
/// - 3: any load, and several at once: `loads` of plan, cells and samples, which had one TCP stream in `load` and
///   `stream` before. The plan's `vary` and the cells' `settings`; absent, nothing was set. `steering`; absent, it
///   means one queue and steering to each host's own cores.
/// - 4: the encapsulations `vlan`, `geneve`, `gre`, `gretap` and `ipip`, which older readers do not know. The plan's
///   `udp_checksum` and `datapath` and the cells' `datapath`; absent, the kernel encapsulates.
/// - 5: the mark `cores-moved`, which older readers do not know, and `cores_apart` of samples; absent, the distance was
///   not measured. `lost` counts datagrams sent within the window, no longer numbers read within it. `late` no longer
///   counts repeated responses, which `duplicated` counts.
/// - 6: with a rate, latency counts from when a request was sent, and `lateness` has the time from due to sent.
///   `schedule` and `io` of loads, `saturated` of samples, `wakeups`, `idle_step_s` and `transit_cores` of hosts,
///   `wakeup_cost` and `line` of the environment; all are absent in older records.
pub const VERSION: u32 = 6;

/// Names of the files in a run directory.
pub mod file {
    /// A [`super::RunHead`].
    pub const RUN: &str = "run.json";
    /// One [`crate::sample::Sample`] per line.
    pub const SAMPLES: &str = "samples.jsonl";
    /// A [`super::RunEnd`].
    pub const END: &str = "end.json";
    /// The plan's text as the user wrote it.
    pub const PLAN: &str = "plan.yaml";
    /// The report for people, made from the other files; no reader needs it.
    pub const REPORT: &str = "report.html";
}

/// `run.json`: everything that is known before the first sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    /// Version of the record's format ([`VERSION`]).
    pub record_version: u32,
    /// Version of the program that wrote the record.
    pub program_version: String,
    /// Start of the run in UTC, RFC 3339.
    pub started: String,
    /// Seed of the random order.
    pub seed: u64,
    /// The plan, expanded.
    pub experiment: Experiment,
    /// The machine and hosts of the run.
    pub environment: Environment,
}

/// Properties of machine and hosts that may make two runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// Cores that the run may use.
    pub cpus: Vec<u32>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// Whether the machine is a virtual machine (the `hypervisor` CPU flag).
    pub virtual_machine: bool,
    /// The privilege of the run: `root`, `user namespace`, or on existing hosts `user`, which some older records have
    /// as `root`.
    pub privilege: String,
    /// Sysctls that matter to network measurements, by dotted name, read in the guests' namespace.
    pub sysctls: BTreeMap<String, String>,
    /// The hosts by name.
    pub hosts: BTreeMap<String, HostEnvironment>,
    /// CPU cost of a wake-up, measured before the run; `None` in records of versions before 6, and where other programs
    /// left no quiet moment. The agent sends it, so it is never left out.
    #[serde(default)]
    pub wakeup_cost: Option<WakeupCost>,
    /// How the line releases packets; `None` where no cell has a line, and in records of earlier programs, whose line
    /// was a token bucket. The agent sends it, so it is never left out.
    #[serde(default)]
    pub line: Option<LineRelease>,
}

/// CPU cost of one wake-up on this machine: the time for which a core is busy that wakes up, does nothing and sleeps
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupCost {
    /// Wake-up by the core's own timer, nanoseconds.
    pub timer_ns: u64,
    /// Wake-up by a thread on another core, nanoseconds of both cores together; 0 with one core only.
    pub other_core_ns: u64,
}

impl WakeupCost {
    /// Upper bound on the core time that the interrupts of one host's cores take, seconds, as if each woke its core. A
    /// wake-up from another core counts half, the part of the core that wakes up.
    pub fn seconds(&self, wakeups: &Wakeups) -> f64 {
        let by_others = wakeups.interrupts() - wakeups.timer;
        (wakeups.timer as f64 * self.timer_ns as f64
            + by_others as f64 * self.other_core_ns as f64 / 2.0)
            / 1e9
    }
}

/// One host of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostEnvironment {
    /// Cores that the host's threads are pinned to; for an existing host all its cores.
    pub cpus: Vec<u32>,
    /// `split` where the host has cores of its own, otherwise `shared`.
    pub cores: String,
    /// The existing host as it was found; `None` in a lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing: Option<ExistingHost>,
}

/// An existing host as a run found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExistingHost {
    /// The data-plane address.
    pub address: IpAddr,
    /// The device that has the address.
    pub device: String,
    /// That device's MTU in bytes.
    pub mtu: u32,
    /// Speed of the device's link, bit/s, where it is known and not a constant of the driver, as of a veth.
    pub speed: Option<u64>,
    /// Kernel and CPU of the host.
    #[serde(flatten)]
    pub machine: HostMachine,
}

/// Properties that may make two hosts differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostMachine {
    /// Kernel release (`uname -r`).
    pub kernel: String,
    /// CPU model.
    pub cpu_model: String,
    /// Whether the host is a virtual machine.
    pub virtual_machine: bool,
}

/// `end.json`: how the run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// How the run ended.
    pub outcome: Outcome,
    /// What ended the run early; `None` for a complete run.
    pub reason: Option<String>,
    /// Wall-clock seconds from start to end, building included.
    pub seconds: f64,
    /// Seconds within measured windows.
    pub measured_s: f64,
    /// Why an adaptive run stopped by its rule; absent with a fixed number of rounds, and where something else stopped
    /// the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<AdaptiveEnd>,
}

/// How an adaptive run stopped by its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdaptiveEnd {
    /// Why no further round was begun.
    pub why: StopReason,
    /// The round at which the run would have ended at the latest, as known at the last interim analysis. A later
    /// analysis that uses it comes to the same result.
    pub ends_at: u32,
}

/// Why no further round was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// All effects that the run waited for are known.
    Known,
    /// The plan's largest number of rounds was measured.
    MaxRounds,
    /// Another round would not have fitted into the time budget.
    Budget,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Every round was measured, or as many as the stopping rule needed.
    Complete,
    /// Stopped by Ctrl-C or another signal.
    Interrupted,
    /// Stopped by an error.
    Failed,
}

/// A run as read back from its directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// `run.json`.
    pub head: RunHead,
    /// The samples, in the order of measurement.
    pub samples: Vec<crate::sample::Sample>,
    /// `end.json`; `None` where the run was killed.
    pub end: Option<RunEnd>,
}
