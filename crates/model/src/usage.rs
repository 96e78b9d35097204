//! Resource usage of a host during one window: cores, links, protocol counters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Cores used by other programs above which a sample is marked and `wirecost doctor` warns: 1.0 is one core busy all
/// the time.
pub const FOREIGN_CORES_THRESHOLD: f64 = 0.05;
/// Share of a host's core time taken by the hypervisor above which a sample is marked and `wirecost doctor` warns.
pub const STEAL_THRESHOLD: f64 = 0.02;
/// Length of a window, seconds, that holds enough of the 10 ms steps in which /proc/stat counts idle time.
pub const ENOUGH_FOR_CPU_S: f64 = 0.4;
/// Length of a window, seconds, that holds five of these steps: a shorter window has no CPU figures. Where idle time is
/// known in microseconds, this length is enough for verdicts.
pub const LEAST_FOR_CPU_S: f64 = 0.05;
/// Shortest window with CPU figures, seconds, where idle time is known in microseconds: in a shorter one the delay
/// between reading one core and the next decides.
const LEAST_IN_MICROSECONDS_S: f64 = 0.005;

/// Usage of one host over one measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostUsage {
    /// Length of the window, seconds, by this host's monotonic clock.
    pub window_s: f64,
    /// The cores that this host runs on, in ascending order.
    pub cores: Vec<CoreUsage>,
    /// CPU time of tasks outside of this run, over the whole machine, in cores (1.0 is one core busy all the time);
    /// `None` where this host was not asked to look.
    pub foreign_cores: Option<f64>,
    /// Packets dropped because a core's backlog was full (`softnet_stat`, second column).
    pub backlog_drops: u64,
    /// How often a core's receive budget ran out (`softnet_stat`, third column).
    pub budget_exhausted: u64,
    /// By device name, the increase of the link's counters.
    pub links: BTreeMap<String, LinkDelta>,
    /// Increase of the TCP/IP counters of the guests' namespaces, added up.
    pub guest: ProtocolDelta,
    /// Resolution of the cores' times, seconds: 0.01 from /proc/stat, 0.000001 where idle time was read in
    /// microseconds.
    #[serde(default = "proc_stat_step_s")]
    pub idle_step_s: f64,
    /// Wake-ups of the host's cores; `None` in records of versions before 6.
    #[serde(default)]
    pub wakeups: Option<Wakeups>,
    /// Busy cores of devices between the hosts (switches, routers), where that was measured. They are part of `cores`
    /// but not the host's own.
    #[serde(default)]
    pub transit_cores: Option<f64>,
}

/// Resolution of idle time in /proc/stat, seconds.
const fn proc_stat_step_s() -> f64 {
    0.01
}

/// Interrupts and context switches of a host's cores over one window (/proc/interrupts, /proc/stat).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Wakeups {
    /// Local timer interrupts (`LOC`).
    pub timer: u64,
    /// Function call interrupts from other cores (`CAL`), with which receive steering hands packets over.
    pub function_call: u64,
    /// Rescheduling interrupts (`RES`).
    pub reschedule: u64,
    /// Device interrupts.
    pub device: u64,
    /// Context switches; those of the whole machine where the kernel does not count them per core.
    pub context_switches: u64,
}

impl Wakeups {
    /// Interrupts of all four kinds.
    pub const fn interrupts(&self) -> u64 {
        self.timer + self.function_call + self.reschedule + self.device
    }
}

/// Usage of one core over one window. `busy_s + idle_s + iowait_s + steal_s` is the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoreUsage {
    /// The core, by the kernel's number.
    pub cpu: u32,
    /// Busy time, seconds: not idle, not waiting for I/O, not stolen. In steps of [`HostUsage::idle_step_s`]; stolen
    /// time comes in steps of 10 ms.
    pub busy_s: f64,
    /// Idle time, seconds.
    pub idle_s: f64,
    /// Idle time with I/O outstanding, seconds.
    pub iowait_s: f64,
    /// Time taken by the hypervisor, seconds.
    pub steal_s: f64,
    /// Shares of the busy ticks by class: of the sum of these four classes, not of the window.
    pub shares: ClassShares,
}

/// Shares of tick-sampled CPU classes in the busy time, 0 to 1; biased (see docs/how-it-measures.md).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassShares {
    /// User mode: user and nice.
    pub user: f64,
    /// Kernel mode: system.
    pub system: f64,
    /// Soft interrupts: softirq.
    pub softirq: f64,
    /// Hardware interrupts: irq.
    pub irq: f64,
}

/// Increase of a link's counters. A device that aggregates counts super-packets as packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkDelta {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received, Ethernet header included, FCS not.
    pub rx_bytes: u64,
    /// Bytes sent, Ethernet header included, FCS not.
    pub tx_bytes: u64,
    /// Received packets that were dropped.
    pub rx_dropped: u64,
    /// Packets that were dropped while sending.
    pub tx_dropped: u64,
}

/// Increase of the counters of /proc/net/snmp in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProtocolDelta {
    /// `Tcp: InSegs`: packets that TCP handled on receipt; a super-packet counts once.
    pub tcp_in: u64,
    /// `Tcp: OutSegs`: segments sent, counted as on the wire.
    pub tcp_out: u64,
    /// `Tcp: RetransSegs`: segments retransmitted.
    pub tcp_retransmitted: u64,
    /// `Udp: InDatagrams`: packets delivered to sockets; joined datagrams count once. 0 in records without the field.
    #[serde(default)]
    pub udp_in: u64,
    /// `Udp: OutDatagrams`: datagrams sent.
    pub udp_out: u64,
    /// `Icmp: OutMsgs` plus `Icmp6OutMsgs` of /proc/net/snmp6: ICMP messages sent.
    pub icmp_out: u64,
}

impl HostUsage {
    /// Whether the cores' times come in steps of 10 ms.
    pub fn is_coarse(&self) -> bool {
        self.idle_step_s >= proc_stat_step_s()
    }

    /// Shortest window, seconds, that has CPU figures.
    pub fn least_for_cpu_s(&self) -> f64 {
        if self.is_coarse() {
            LEAST_FOR_CPU_S
        } else {
            LEAST_IN_MICROSECONDS_S
        }
    }

    /// Shortest window, seconds, that should have verdicts on CPU.
    pub fn enough_for_cpu_s(&self) -> f64 {
        if self.is_coarse() {
            ENOUGH_FOR_CPU_S
        } else {
            LEAST_FOR_CPU_S
        }
    }

    /// Number of busy cores: 1.0 is one core busy for the whole window.
    pub fn busy_cores(&self) -> f64 {
        self.cores.iter().map(|core| core.busy_s).sum::<f64>() / self.window_s
    }

    /// Share of this host's core time that the hypervisor took, 0 to 1.
    pub fn steal_fraction(&self) -> f64 {
        let steal: f64 = self.cores.iter().map(|core| core.steal_s).sum();
        steal / (self.window_s * self.cores.len().max(1) as f64)
    }

    /// Whether the host's cores were full, and mostly with the kernel's work: then the network stack is the limit,
    /// whichever thread the work was done in.
    pub fn is_full_of_kernel(&self) -> bool {
        /// Busy share of the window above which further work would find no room.
        const FULL: f64 = 0.95;
        let room = self.window_s * self.cores.len() as f64;
        let busy: f64 = self.cores.iter().map(|core| core.busy_s).sum();
        let user: f64 = self
            .cores
            .iter()
            .map(|core| core.busy_s * core.shares.user)
            .sum();
        room > 0.0 && busy > FULL * room && user < busy / 2.0
    }
}
