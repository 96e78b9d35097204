//! What a host did during one window: processors, links, protocol counters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Cores' worth of other programs' work above which a sample is marked, and `wirecost doctor` warns.
pub const FOREIGN_CORES_THRESHOLD: f64 = 0.05;
/// Share of a host's core time that the hypervisor takes above which a sample is marked, and `wirecost doctor` warns.
pub const STEAL_THRESHOLD: f64 = 0.02;
/// Seconds of a window that hold enough of the 10 ms steps in which /proc/stat counts idle time.
pub const ENOUGH_FOR_CPU_S: f64 = 0.4;
/// Seconds of a window that hold five of them: a shorter one tells nothing of processors' time. Where idle time is known in
/// microseconds so many are enough.
pub const LEAST_FOR_CPU_S: f64 = 0.05;
/// Where idle time is known in microseconds: below it what lies between reading one core and the next decides.
const LEAST_IN_MICROSECONDS_S: f64 = 0.005;

/// One host over one measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostUsage {
    /// Length of the window in seconds, by this host's monotonic clock.
    pub window_s: f64,
    /// The cores this host runs on, in ascending order.
    pub cores: Vec<CoreUsage>,
    /// CPU time of tasks that are not of this run, in cores (1.0 is one core busy all the time),
    /// over the machine; `None` where this host was not asked to look.
    pub foreign_cores: Option<f64>,
    /// Packets dropped because the per-core backlog was full (`softnet_stat`, second column).
    pub backlog_drops: u64,
    /// Times a core's receive budget ran out (`softnet_stat`, third column).
    pub budget_exhausted: u64,
    /// Devices by name: what the link's counters gained.
    pub links: BTreeMap<String, LinkDelta>,
    /// TCP/IP counters of the guests' namespaces, added up.
    pub guest: ProtocolDelta,
    /// Resolution of the cores' times in seconds: 0.01 from /proc/stat, 0.000001 where idle time was read in microseconds.
    #[serde(default = "proc_stat_step_s")]
    pub idle_step_s: f64,
    /// How often the host's cores were woken; `None` in records of versions before 6.
    #[serde(default)]
    pub wakeups: Option<Wakeups>,
    /// Busy cores that belong to devices between the hosts (switches, routers) and not to the host, where that was
    /// measured. They are part of `cores`.
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
    /// Function call interrupts from other cores (`CAL`), by which receive steering hands packets over.
    pub function_call: u64,
    /// Rescheduling interrupts (`RES`).
    pub reschedule: u64,
    /// Interrupts of devices.
    pub device: u64,
    /// Context switches; of the machine where the kernel does not count them by core.
    pub context_switches: u64,
}

impl Wakeups {
    /// Interrupts of all kinds.
    pub const fn interrupts(&self) -> u64 {
        self.timer + self.function_call + self.reschedule + self.device
    }
}

/// One core over one window. `busy_s + idle_s + iowait_s + steal_s` is the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CoreUsage {
    /// The kernel's number.
    pub cpu: u32,
    /// Not idle, not waiting for I/O, not stolen: seconds, in steps of [`HostUsage::idle_step_s`]; what is stolen comes in
    /// steps of 10 ms.
    pub busy_s: f64,
    /// Idle, seconds.
    pub idle_s: f64,
    /// Idle with I/O outstanding, seconds.
    pub iowait_s: f64,
    /// Taken by the hypervisor, seconds.
    pub steal_s: f64,
    /// How the ticks that were classified fell: shares of the sum of these four, not of the window.
    pub shares: ClassShares,
}

/// Tick-sampled classes: only ever shares of the busy time, biased (see docs/how-it-measures.md).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassShares {
    /// user + nice.
    pub user: f64,
    /// system.
    pub system: f64,
    /// softirq.
    pub softirq: f64,
    /// irq.
    pub irq: f64,
}

/// What a link's counters gained. On a device that aggregates these are super-packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LinkDelta {
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received, Ethernet header included, FCS not.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Received and dropped.
    pub rx_dropped: u64,
    /// Dropped while sending.
    pub tx_dropped: u64,
}

/// What /proc/net/snmp's counters gained in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProtocolDelta {
    /// `Tcp: InSegs`: super-packets that TCP handled on receipt.
    pub tcp_in: u64,
    /// `Tcp: OutSegs`: segments sent, as the wire will see them.
    pub tcp_out: u64,
    /// `Tcp: RetransSegs`.
    pub tcp_retransmitted: u64,
    /// `Udp: InDatagrams`: what sockets were given, joined datagrams as one; 0 in records from before it was counted.
    #[serde(default)]
    pub udp_in: u64,
    /// `Udp: OutDatagrams`.
    pub udp_out: u64,
    /// `Icmp: OutMsgs` and `Icmp6OutMsgs` of /proc/net/snmp6.
    pub icmp_out: u64,
}

impl HostUsage {
    /// Whether the cores' times come in steps of 10 ms.
    fn is_coarse(&self) -> bool {
        self.idle_step_s >= proc_stat_step_s()
    }

    /// Seconds that a window must have for figures of processors.
    pub fn least_for_cpu_s(&self) -> f64 {
        if self.is_coarse() {
            LEAST_FOR_CPU_S
        } else {
            LEAST_IN_MICROSECONDS_S
        }
    }

    /// Seconds that a window should have for verdicts on processors.
    pub fn enough_for_cpu_s(&self) -> f64 {
        if self.is_coarse() {
            ENOUGH_FOR_CPU_S
        } else {
            LEAST_FOR_CPU_S
        }
    }

    /// Cores that were busy, as a number of cores: 1.0 is one core busy for the whole window.
    pub fn busy_cores(&self) -> f64 {
        self.cores.iter().map(|core| core.busy_s).sum::<f64>() / self.window_s
    }

    /// Share of this host's core time that the hypervisor took.
    pub fn steal_fraction(&self) -> f64 {
        let steal: f64 = self.cores.iter().map(|core| core.steal_s).sum();
        steal / (self.window_s * self.cores.len().max(1) as f64)
    }

    /// Whether the host's cores were full, and mostly with the kernel's work: then its network stack is the limit,
    /// whoever's threads that work was done in.
    pub fn is_full_of_kernel(&self) -> bool {
        /// Of the window; above it nothing that is added would find room.
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
