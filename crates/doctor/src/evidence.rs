//! Evidence that the checks are judged from: outcomes of trials, and facts about the machine.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use wirecost_model::plan::Description;
use wirecost_model::record::WakeupCost;

use crate::kernel_config::KernelConfig;

/// Something that a probe tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Trial {
    Namespaces,
    Veth,
    Bridge,
    RateLimit,
    Netem,
    Fq,
    Vxlan,
    Offloads,
    Steering,
    Congestion,
    Capture,
    Ipv6,
    /// Devices of one encapsulation driver, named by the first kind that the driver makes.
    Encapsulation(EncapsulationKind),
    Tap,
    OpenVswitch,
    Ovn,
    Ifb,
    BridgeNetfilter,
    Ebpf,
    Tcx,
    AfXdp,
    IoUring,
    Userfaultfd,
    Kvm,
    Qemu,
}

/// A kind of encapsulation, by its word in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct EncapsulationKind(pub(crate) &'static str);

impl<'de> Deserialize<'de> for EncapsulationKind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        let kind = Description::by_word(&word).map(|kind| Self(kind.word));
        kind.ok_or_else(|| D::Error::custom(format!("no encapsulation is called {word}")))
    }
}

impl EncapsulationKind {
    /// All kinds whose devices the driver of this kind makes.
    pub(crate) fn of_driver(self) -> Vec<&'static Description> {
        let driver = |kind: &Description| kind.drivers.first().map(|driver| driver.module);
        let own = Description::by_word(self.0).and_then(driver);
        let mut all = Description::ALL.to_vec();
        all.retain(|kind| own.is_some() && driver(kind) == own);
        all
    }
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    /// Succeeded, and settings were read back where that is possible. Holds what was seen.
    Works(String),
    /// Succeeded in part. Holds what was seen.
    Partly(String),
    /// The kernel refused, or another value was read back.
    Refused {
        /// Error number (errno(3)); `None` where there was none.
        code: Option<i32>,
        /// The error message.
        words: String,
    },
    /// A prerequisite failed. Holds which one.
    NotTried(String),
}

impl Outcome {
    pub(crate) const fn works(&self) -> bool {
        matches!(self, Self::Works(_) | Self::Partly(_))
    }
}

/// Everything one probe tried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProbeResults {
    /// User that the probe ran as: "root", "a plain user (uid 65534)".
    pub(crate) who: String,
    pub(crate) outcomes: BTreeMap<Trial, Outcome>,
    /// Why the probe ended before its last trial; `None` where it did not.
    pub(crate) cut_short: Option<String>,
}

/// Privileges of the process that examines the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallerPrivileges {
    pub(crate) uid: u32,
    /// Whether `CAP_SYS_ADMIN` is effective, in whichever user namespace the process is.
    pub(crate) may_make_namespaces: bool,
}

/// Load of the machine over a window in which this program idles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    pub(crate) seconds: f64,
    /// Share of all online cores' time, 0 to 1, that the hypervisor gave to other guests (steal).
    pub(crate) steal: f64,
    /// Number of cores that other processes kept busy; `None` where the kernel does not report it.
    pub(crate) foreign_cores: Option<f64>,
    /// Resolution of busy time, seconds.
    pub(crate) idle_step_s: f64,
}

/// The kernel's clock source, and what reading the clock costs.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Clock {
    pub(crate) source: String,
    pub(crate) available: Vec<String>,
    /// Time that one reading takes, nanoseconds.
    pub(crate) reading_ns: f64,
}

/// Facts that are read about the machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct MachineFacts {
    /// `uname -r`.
    pub(crate) release: String,
    /// `ID` of /etc/os-release.
    pub(crate) distribution: Option<String>,
    pub(crate) cpu_model: Option<String>,
    /// Whether /proc/cpuinfo has the `hypervisor` flag.
    pub(crate) is_guest: Option<bool>,
    /// `vmx` or `svm` among the processor's flags.
    pub(crate) virtualisation: Option<String>,
    pub(crate) online: Vec<u32>,
    pub(crate) allowed: Vec<u32>,
    /// The allowed processors by physical core, SMT siblings together.
    pub(crate) physical: Vec<Vec<u32>>,
    /// Frequency governors of the allowed processors, each once; empty where sysfs shows none.
    pub(crate) governors: Vec<String>,
    pub(crate) clock: Clock,
    /// Cores whose time control groups allow; `None` without a quota.
    pub(crate) cpu_quota: Option<f64>,
    /// Bytes that the machine has left.
    pub(crate) memory_available: Option<u64>,
    /// Bytes that control groups leave; `None` without a limit.
    pub(crate) memory_left: Option<u64>,
    /// `RLIMIT_NOFILE`, soft and hard.
    pub(crate) descriptors: Option<(u64, u64)>,
    /// Size of /sys/kernel/btf/vmlinux in bytes, or why it cannot be used.
    pub(crate) btf: Option<Result<u64, String>>,
    /// Sysctls that decide what is permitted, by name; only those that exist.
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) window: Option<Window>,
    /// Cost of a wake-up; `None` where other programs left no quiet moment to measure it.
    pub(crate) wakeup: Option<WakeupCost>,
    pub(crate) config: Option<KernelConfig>,
    /// Modules that advice may name and /lib/modules has for this kernel; `None` without its modules.dep.
    pub(crate) modules: Option<Vec<String>>,
}

/// All evidence of an examination.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Evidence {
    pub(crate) caller: CallerPrivileges,
    /// Trials with the caller's own privilege.
    pub(crate) own: ProbeResults,
    /// Trials as a plain user, in a user namespace.
    pub(crate) plain: ProbeResults,
    pub(crate) machine: MachineFacts,
}
