//! The evidence, before it is judged.

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
    /// The devices of one driver of those that a plan may ask for.
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

/// A kind of encapsulation, by its word.
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
    /// All kinds whose devices are of the driver of this one.
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
    /// Done, and read back where there is something to read.
    Works(String),
    /// Done in part.
    Partly(String),
    /// The kernel refused, or another value was read back.
    Refused {
        /// Its error number, if it was one.
        code: Option<i32>,
        /// The error message.
        words: String,
    },
    /// A prerequisite failed.
    NotTried(String),
}

impl Outcome {
    pub(crate) const fn works(&self) -> bool {
        matches!(self, Self::Works(_) | Self::Partly(_))
    }
}

/// Everything one probe tried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tried {
    /// As whom: "root", "a plain user (uid 65534)".
    pub(crate) who: String,
    pub(crate) outcomes: BTreeMap<Trial, Outcome>,
    /// Why it did not get to its end.
    pub(crate) cut_short: Option<String>,
}

/// What the process that was asked may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallerPrivileges {
    pub(crate) uid: u32,
    /// `CAP_SYS_ADMIN`, in whichever user namespace it is in.
    pub(crate) may_make_namespaces: bool,
}

/// The load while nothing of ours ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Window {
    pub(crate) seconds: f64,
    /// Share of all cores' time that the hypervisor gave to somebody else.
    pub(crate) steal: f64,
    /// Cores' worth of work by other processes; `None` where the kernel does not report it.
    pub(crate) foreign_cores: Option<f64>,
    /// Resolution of busy time, seconds.
    pub(crate) idle_step_s: f64,
}

/// How fast and by what the time is told.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Clock {
    pub(crate) source: String,
    pub(crate) available: Vec<String>,
    /// Nanoseconds that one reading takes.
    pub(crate) reading_ns: f64,
}

/// What can be read about the machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct MachineFacts {
    /// `uname -r`.
    pub(crate) release: String,
    /// `ID` of /etc/os-release.
    pub(crate) distribution: Option<String>,
    pub(crate) cpu_model: Option<String>,
    /// Whether the processor says it is a hypervisor's.
    pub(crate) is_guest: Option<bool>,
    /// `vmx` or `svm` among the processor's flags.
    pub(crate) virtualisation: Option<String>,
    pub(crate) online: Vec<u32>,
    pub(crate) allowed: Vec<u32>,
    /// The physical cores that the allowed processors are of, as sets of siblings.
    pub(crate) physical: Vec<Vec<u32>>,
    /// Frequency governors of the allowed processors, each once; empty where none can be seen.
    pub(crate) governors: Vec<String>,
    pub(crate) clock: Clock,
    pub(crate) memory_available: Option<u64>,
    /// `RLIMIT_NOFILE`, soft and hard.
    pub(crate) descriptors: Option<(u64, u64)>,
    /// Bytes of /sys/kernel/btf/vmlinux, or why not.
    pub(crate) btf: Option<Result<u64, String>>,
    /// Kernel settings that bear on what may be done, those that exist.
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) window: Option<Window>,
    /// `None` where it could not be distinguished from what else ran.
    pub(crate) wakeup: Option<WakeupCost>,
    pub(crate) config: Option<KernelConfig>,
    /// Modules that lie in /lib/modules for this kernel; `None` where nothing lies there.
    pub(crate) modules: Option<Vec<String>>,
}

/// All evidence of an examination.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Evidence {
    pub(crate) caller: CallerPrivileges,
    /// With the caller's own privilege.
    pub(crate) own: Tried,
    /// As a plain user, in a user namespace.
    pub(crate) plain: Tried,
    pub(crate) machine: MachineFacts,
}
