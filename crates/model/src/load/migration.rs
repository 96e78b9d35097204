//! Options of a migration load: machines whose memory is moved while they go on writing to it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Bytes of a page, the unit that is tracked, sent and counted.
pub const PAGE: u64 = 4096;
/// Smallest memory of a machine, bytes.
pub const MIN_MEMORY: u64 = 1 << 20;
/// Smallest memory of a virtual machine, bytes: its guest fills what is above the first megabyte.
pub const MIN_VIRTUAL_MEMORY: u64 = 8 << 20;
/// Most virtual machines of a load: each is a process at both ends.
pub const MAX_VIRTUAL: u32 = 32;
/// Largest memory of a machine, bytes.
pub const MAX_MEMORY: u64 = 2 << 30;
/// Most connections of a machine.
pub const MAX_CHANNELS: u32 = 64;
/// Most pre-copy rounds of a machine.
pub const MAX_ROUNDS: u32 = 1000;
/// Largest value of [`Migration::max_downtime`].
pub const MAX_DOWNTIME: Duration = Duration::from_mins(1);
/// Longest pause before the machines move.
pub const MAX_PAUSE: Duration = Duration::from_mins(10);
/// Most machines that are watched: each is sent two datagrams per millisecond.
pub const MAX_WATCHED: u32 = 16;
/// Pre-copy counts as not converging once a machine's memory has been sent this many times over, as in Xen
/// (`DEF_MAX_FACTOR` of tools/libxc/xc_domain_save.c).
pub const MAX_SENT_FACTOR: u64 = 3;

/// Order in which a machine writes to the pages of its working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DirtyOrder {
    /// One page after the other, then again from the first.
    Sequential,
    /// Pages at random: some are written several times before others once.
    Random,
}

impl DirtyOrder {
    /// The names of all orders.
    pub const NAMES: [&'static str; 2] = ["sequential", "random"];

    /// The name in plans, commands and records.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The order of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Sequential, Self::Random]
            .into_iter()
            .find(|order| order.name() == name)
    }
}

/// What to do with a machine whose pre-copy does not converge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    /// Give the move up: the machine stays at its source.
    GiveUp,
    /// Stop the machine and copy the rest, however long the downtime.
    Stop,
    /// Slow the machine down step by step while it is copied (QEMU's auto-converge), and give up where that does not
    /// help.
    Throttle,
}

impl Fallback {
    /// The names of all fallbacks.
    pub const NAMES: [&'static str; 3] = ["give-up", "stop", "throttle"];

    /// The name in plans, commands and records.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The fallback of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::GiveUp, Self::Stop, Self::Throttle]
            .into_iter()
            .find(|fallback| fallback.name() == name)
    }
}

/// The engine that moves machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoveEngine {
    /// The load itself: machines are memory of its process, and threads that write to it.
    #[default]
    Memory,
    /// QEMU: machines are virtual machines.
    Qemu,
}

impl MoveEngine {
    /// The names of all engines.
    pub const NAMES: [&'static str; 2] = ["memory", "qemu"];

    /// The name in plans, commands and records.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The engine of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Memory, Self::Qemu]
            .into_iter()
            .find(|engine| engine.name() == name)
    }
}

/// Options of a migration load besides those that every load has. The number of machines is [`super::Load::streams`].
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the plan")]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Migration {
    /// The engine that moves the machines.
    #[serde(default)]
    pub engine: MoveEngine,
    /// Bytes of each machine's memory, a multiple of [`PAGE`].
    pub memory: u64,
    /// Connections of each machine. Each page always uses the same connection.
    pub channels: u32,
    /// Number of machines that move at the same time; `None` for all.
    pub at_once: Option<u32>,
    /// Rate at which each machine writes to its memory, bit/s, each write counted as a page; 0 for none.
    pub dirty_rate: u64,
    /// Percent of the memory that is not zero which the machine writes to, 1 to 100.
    pub working_set: u8,
    /// Order of the machine's writes.
    pub dirty_order: DirtyOrder,
    /// Percent of the memory that is zero and stays zero, 0 to 99.
    pub zero_pages: u8,
    /// Bound on the downtime: a machine is stopped once sending the rest takes no longer. Seconds in records.
    #[serde(with = "super::seconds")]
    pub max_downtime: Duration,
    /// Rounds after which pre-copy counts as not converging.
    pub max_rounds: u32,
    /// What to do where pre-copy does not converge.
    pub fallback: Fallback,
    /// Whether a machine is moved again at other dirty rates, until the highest rate that converges is known to a
    /// tenth.
    pub find_limit: bool,
    /// Whether an observer sends each machine a request every millisecond, and measures for how long no answer comes.
    #[serde(default)]
    pub watch: bool,
    /// Time for which the machines stay idle at their source before they move. Seconds in records.
    #[serde(with = "super::seconds", default)]
    pub pause: Duration,
    /// Whether every second round moves the machines in the opposite direction.
    #[serde(default)]
    pub back_and_forth: bool,
    /// Bandwidth, bit/s, that QEMU assumes for the rest once a machine is stopped (`avail-switchover-bandwidth`);
    /// `None` for its own estimate.
    #[serde(default)]
    pub switchover_bandwidth: Option<u64>,
    /// Whether the machine resumes at its destination after one round, and pages that are missing there follow
    /// (post-copy).
    #[serde(default)]
    pub post_copy: bool,
}

impl Migration {
    /// The default options.
    pub const USUAL: Self = Self {
        engine: MoveEngine::Memory,
        memory: 64 << 20,
        channels: 1,
        at_once: None,
        dirty_rate: 100_000_000,
        working_set: 25,
        dirty_order: DirtyOrder::Random,
        zero_pages: 0,
        // The default of QEMU and libvirt.
        max_downtime: Duration::from_millis(300),
        max_rounds: 30,
        fallback: Fallback::GiveUp,
        find_limit: false,
        watch: false,
        pause: Duration::ZERO,
        back_and_forth: false,
        switchover_bandwidth: None,
        post_copy: false,
    };

    /// Number of pages of a machine.
    pub const fn pages(&self) -> u64 {
        self.memory / PAGE
    }

    /// Number of pages that are zero, the last ones of the memory.
    pub const fn zero(&self) -> u64 {
        self.pages() * self.zero_pages as u64 / 100
    }

    /// Number of pages that the machine writes to, the first ones of the memory: at least 1.
    pub const fn written(&self) -> u64 {
        let share = (self.pages() - self.zero()) * self.working_set as u64 / 100;
        if share == 0 { 1 } else { share }
    }

    /// Page writes per second that the dirty rate asks for.
    pub fn writes_per_second(&self) -> f64 {
        self.dirty_rate as f64 / 8.0 / PAGE as f64
    }

    /// The first invalid option and what is wrong with it; `None` where the options are valid for this many machines.
    pub(super) fn fault(&self, machines: u32) -> Option<(&'static str, String)> {
        let fits = (MIN_MEMORY..=MAX_MEMORY).contains(&self.memory);
        if !fits || !self.memory.is_multiple_of(PAGE) {
            let words = format!(
                "a memory of {} bytes: a multiple of {PAGE}, {MIN_MEMORY} to {MAX_MEMORY}",
                self.memory
            );
            return Some(("memory", words));
        }
        let within = |option, number: u64, least: u64, most: u64| {
            let fits = (least..=most).contains(&number);
            (!fits).then(|| (option, format!("{option} is {number}: {least} to {most}")))
        };
        let (channels, rounds) = (u64::from(self.channels), u64::from(self.max_rounds));
        let connections = u64::from(machines) * channels;
        within("channels", channels, 1, MAX_CHANNELS.into())
            .or_else(|| self.engine_fault(machines))
            .or_else(|| {
                let fits = connections <= u64::from(super::MAX_STREAMS);
                let words = format!(
                    "{machines} machines with {channels} channels have {connections} connections: {} at most",
                    super::MAX_STREAMS
                );
                (!fits).then_some(("channels", words))
            })
            .or_else(|| {
                let most = u64::from(machines.max(1));
                within("at_once", self.at_once?.into(), 1, most)
            })
            .or_else(|| within("working_set", self.working_set.into(), 1, 100))
            .or_else(|| within("zero_pages", self.zero_pages.into(), 0, 99))
            .or_else(|| within("max_rounds", rounds, 1, MAX_ROUNDS.into()))
            .or_else(|| {
                let words = if machines > 1 {
                    format!("find_limit is for one machine, and here are {machines}: they would slow each other down")
                } else if self.fallback != Fallback::GiveUp {
                    format!("find_limit needs `fallback: give-up`, not `{}`", self.fallback.name())
                } else if self.dirty_rate == 0 {
                    "find_limit starts from the dirty rate, and there is none".to_owned()
                } else {
                    return None;
                };
                self.find_limit.then_some(("find_limit", words))
            })
            .or_else(|| {
                let words = if machines > MAX_WATCHED {
                    format!("watch is for {MAX_WATCHED} machines at most, and here are {machines}")
                } else if self.find_limit {
                    "watch sees one move, and find_limit makes several".to_owned()
                } else {
                    return None;
                };
                self.watch.then_some(("watch", words))
            })
            .or_else(|| {
                let words = format!(
                    "pause is {} s: at most {} s",
                    self.pause.as_secs_f64(),
                    MAX_PAUSE.as_secs()
                );
                (self.pause > MAX_PAUSE).then_some(("pause", words))
            })
            .or_else(|| {
                let time = self.max_downtime;
                let fits = !time.is_zero() && time <= MAX_DOWNTIME;
                let words = format!(
                    "max_downtime is {} s: above 0, at most {} s",
                    time.as_secs_f64(),
                    MAX_DOWNTIME.as_secs()
                );
                (!fits).then_some(("max_downtime", words))
            })
    }

    /// The first option that the engine does not support, and why.
    fn engine_fault(&self, machines: u32) -> Option<(&'static str, String)> {
        let qemu = self.engine == MoveEngine::Qemu;
        let faults = [
            (
                qemu && machines > MAX_VIRTUAL,
                "machines",
                format!("{machines} virtual machines: {MAX_VIRTUAL} at most"),
            ),
            (
                qemu && self.memory < MIN_VIRTUAL_MEMORY,
                "memory",
                format!(
                    "a virtual machine of {} bytes: {MIN_VIRTUAL_MEMORY} at least",
                    self.memory
                ),
            ),
            (
                qemu && self.find_limit,
                "find_limit",
                "find_limit needs `engine: memory`: a QEMU whose move failed is gone at the destination".to_owned(),
            ),
            (
                qemu && self.watch && self.post_copy,
                "watch",
                "watch needs `engine: memory` with post_copy: whether a guest of `qemu` runs is read from its memory, \
                 and that is not there yet"
                    .to_owned(),
            ),
            (
                !qemu && self.switchover_bandwidth.is_some(),
                "switchover_bandwidth",
                "switchover_bandwidth needs `engine: qemu`".to_owned(),
            ),
        ];
        let post_copy = [
            (
                qemu && self.channels > 1,
                "post_copy needs one channel with `engine: qemu`, which does not fetch pages over multifd's".to_owned(),
            ),
            (
                self.find_limit,
                "post_copy always ends: there is no dirty rate for `find_limit` at which it does not".to_owned(),
            ),
            (
                self.fallback != Fallback::GiveUp,
                format!(
                    "post_copy always ends: leave `fallback: {}` out",
                    self.fallback.name()
                ),
            ),
        ];
        let post_copy = post_copy
            .into_iter()
            .map(|(wrong, words)| (self.post_copy && wrong, "post_copy", words));
        let found = faults
            .into_iter()
            .chain(post_copy)
            .find(|(wrong, ..)| *wrong);
        found.map(|(_, option, words)| (option, words))
    }

    /// Connections that the load makes for each machine. QEMU makes the connections of its migration itself.
    pub const fn connections(&self) -> u32 {
        match self.engine {
            MoveEngine::Memory => self.channels,
            MoveEngine::Qemu => 1,
        }
    }
}
