//! Checks and their results.

use serde::Serialize;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Available.
    Yes,
    /// Available with a restriction.
    Limited,
    /// Not available.
    No,
    /// Could not be determined.
    Unknown,
}

impl Status {
    /// Word for this status in the output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Limited => "limited",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

/// Section of the output that a check is printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// What `wirecost run` needs for its built-in plan.
    Essentials,
    /// Other devices and encapsulations.
    Encapsulations,
    /// eBPF, kernel types (BTF), AF_XDP, io_uring and userfaultfd.
    Sockets,
    /// Cores, clock, memory, virtualisation, and load that disturbs measurements.
    Machine,
}

impl Group {
    /// Every group, in the order of printing.
    pub const ALL: [Self; 4] = [
        Self::Essentials,
        Self::Encapsulations,
        Self::Sockets,
        Self::Machine,
    ];

    /// Heading of the group in the output.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Essentials => "Essentials",
            Self::Encapsulations => "Encapsulations and devices",
            Self::Sockets => "eBPF and sockets",
            Self::Machine => "Machine",
        }
    }
}

/// One capability of the machine, judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name in kebab case.
    pub id: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Section of the output.
    pub group: Group,
    /// Whether the built-in plan needs the capability. Of the two ways to get namespaces one is enough.
    pub essential: bool,
    /// The result of the check.
    pub status: Status,
    /// What was seen: the kernel's answer, or the value.
    pub seen: String,
    /// What needs the capability, in words.
    pub needed_for: &'static str,
    /// What to do about a missing or limited capability; `None` where there is nothing to do.
    pub advice: Option<String>,
}

/// The machine's kernel and processors. `None` where a value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachineSummary {
    /// `uname -r`.
    pub kernel: String,
    /// The processor's name.
    pub cpu_model: Option<String>,
    /// Whether /proc/cpuinfo has the `hypervisor` flag (x86 only).
    pub virtual_machine: Option<bool>,
    /// Processors that are online, ascending.
    pub online_cpus: Vec<u32>,
    /// Processors that this process may use (sched_getaffinity(2)), ascending.
    pub allowed_cpus: Vec<u32>,
    /// File that the kernel's configuration was read from.
    pub kernel_config: Option<String>,
}

/// Result of an examination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Examination {
    /// Whether this machine can run the built-in plan, in one sentence.
    pub summary: String,
    /// Whether `wirecost run`, started with the same privilege, can build its lab and run the built-in plan.
    pub can_run_labs: bool,
    /// Whether it can with the caller's own privilege; `None` where the caller lacks `CAP_SYS_ADMIN`.
    pub as_root: Option<bool>,
    /// Whether it can in a user namespace, without privilege.
    pub as_plain_user: bool,
    /// The machine's kernel and processors.
    pub machine: MachineSummary,
    /// Every check, by group.
    pub checks: Vec<Check>,
    /// Duration of the examination, seconds.
    pub seconds: f64,
}
