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
    /// The word for it in the output.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Limited => "limited",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }

    /// Whether what needs it can be done.
    pub const fn suffices(self) -> bool {
        matches!(self, Self::Yes | Self::Limited)
    }
}

/// Where a check belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// What `wirecost run` needs.
    Essentials,
    /// Other devices and encapsulations.
    Encapsulations,
    /// eBPF and special sockets (AF_XDP, io_uring).
    Sockets,
    /// Cores, clock, memory, and what disturbs.
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

    /// As a heading.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Essentials => "Essentials",
            Self::Encapsulations => "Encapsulations and devices",
            Self::Sockets => "eBPF and sockets",
            Self::Machine => "Machine",
        }
    }
}

/// One capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name in kebab case.
    pub id: &'static str,
    /// The same for people.
    pub title: &'static str,
    /// Where it belongs.
    pub group: Group,
    /// Whether the built-in plan needs it. Of the two ways to get namespaces one is enough.
    pub essential: bool,
    /// The result of a check.
    pub status: Status,
    /// What was seen: the kernel's answer, or the value.
    pub seen: String,
    /// What needs it.
    pub needed_for: &'static str,
    /// What to do about it; `None` where there is nothing to do.
    pub advice: Option<String>,
}

/// What machine this is. `None` where a value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachineSummary {
    /// `uname -r`.
    pub kernel: String,
    /// The processor's name.
    pub cpu_model: Option<String>,
    /// Whether the processor says it is a hypervisor's (x86 only).
    pub virtual_machine: Option<bool>,
    /// Processors that are online, ascending.
    pub online_cpus: Vec<u32>,
    /// Those that this process may use.
    pub allowed_cpus: Vec<u32>,
    /// Where the kernel's configuration was read from.
    pub kernel_config: Option<String>,
}

/// Everything that was found out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Examination {
    /// In one sentence.
    pub summary: String,
    /// Whether `wirecost run`, started as this was, can build its lab and run the built-in plan.
    pub can_run_labs: bool,
    /// Whether it can with the caller's own privilege; `None` where the caller has none.
    pub as_root: Option<bool>,
    /// Whether it can in a user namespace, without privilege.
    pub as_plain_user: bool,
    /// What machine this is.
    pub machine: MachineSummary,
    /// Every check, by group.
    pub checks: Vec<Check>,
    /// How long it took.
    pub seconds: f64,
}
