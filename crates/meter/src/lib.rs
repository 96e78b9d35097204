//! Counters to snapshots to deltas, for one host: what its processors, links and protocols did in a window. Reads files
//! under /proc only (and the clock source's name under /sys).
//!
//! Not in this crate: counters of sockets (`TCP_INFO`, crate `traffic`), device features (crate `netbuild`), and any
//! judgement of the figures.
//!
//! # How a window is measured
//!
//! [`Meter::snapshot`] reads the processors first and takes the time around that one read; links and protocols follow
//! within about 100 µs. [`delta`] subtracts two snapshots. Every snapshot reads in the same order, so the window of
//! every counter is as long as the processors' and starts at most that much later. Counters keep running while they are
//! read: two of them agree except for the packets of those 100 µs.
//!
//! # Busy time of a core
//!
//! *Source:* as root, idle and iowait come from /proc/timer_list in nanoseconds, after an interrupt to each core that
//! makes the kernel update them (75 µs for two cores). Otherwise, and always for steal, they come from the `cpuN` lines
//! of /proc/stat (fs/proc/stat.c) in ticks of 10 ms. Busy is the window by the monotonic clock minus the gains of idle,
//! iowait and steal. The kernel keeps these three exactly (idle and iowait by the clock of `tick_sched`, steal by the
//! hypervisor's). Read in ticks, busy has an error of up to 10 ms for each of the three that changed: 1 % of one core
//! over a second. Busy includes softirq, kernel threads and foreign tasks on the core.
//!
//! *Errors:* a kernel that ticks on idle cores (`nohz=off`) samples idle by ticks. iowait may decrease when a task
//! wakes on another core; a decrease counts as a gain of 0. Where rounding makes the three exceed the window, busy is 0
//! and the three are left as read. A halted core is idle until the interrupt that ends the halt is delivered; a
//! hypervisor takes microseconds to deliver it, and a core that halts thousands of times a second counts them as idle.
//! CPU time that a hypervisor takes without reporting it (no steal clock) counts as busy, or as idle if the core was
//! idle.
//!
//! # Classes of busy time
//!
//! *Source:* user + nice, system, softirq and irq of the same lines: whatever the periodic tick happened to interrupt.
//! Softirq work between ticks that is in step with them is missed or counted double: a core that was busy for 69 %
//! showed 40 %. The classes are given as shares of their own sum and never added to another figure.
//!
//! # Wake-ups
//!
//! *Source:* /proc/interrupts, the rows that wake a core for work, for the host's cores; exact. Context switches are
//! those of the whole machine, from /proc/stat. Reading /proc/interrupts takes 60 µs on two cores.
//!
//! # Backlog
//!
//! *Source:* /proc/net/softnet_stat (net/core/net-procfs.c), per core and exact, for the whole machine: the file is the
//! same in every network namespace. Since Linux 5.10 a row names its core; before that, rows are the online cores in
//! order. Counters are 32 bits wide; one wrap within a window is corrected.
//!
//! # Links
//!
//! *Source:* /proc/PID/task/TID/net/dev of the host's and of the guests' namespaces; exact. On a device that segments
//! or aggregates (GSO, GRO), packets and bytes are those of super-packets, not those on the wire. Receive drops include
//! those that the device missed (`rx_dropped + rx_missed_errors`). The loopback device is left out.
//!
//! # Protocols
//!
//! *Source:* /proc/PID/task/TID/net/snmp and snmp6 of the guests' namespaces; exact. `InSegs` counts super-packets
//! after GRO, `OutSegs` counts the segments that a super-packet becomes. The TCP line covers IPv4 and IPv6 together;
//! UDP and ICMP are summed over both files.
//!
//! # Foreign load
//!
//! *Source:* the run time of every task in /proc/PID/task/TID/schedstat, except those of this run's processes and of
//! kernel threads: see [`foreign_cores`] for what it counts and what it misses. A planted load of 20 % read 19.9 %; a
//! loop of processes that lived 50 ms each, 99.4 to 101.3 % of the one core it kept busy. A scan costs about 20 µs a
//! process and counts its own time, so it is taken outside the window.

mod environment;
mod error;
mod file;
mod foreign;
mod idle;
mod interrupts;
mod meter;
mod netdev;
mod process;
mod snmp;
mod softnet;
mod stat;
mod wakeup;

pub use environment::{Machine, NETWORK_SYSCTLS, environment, sysctl, sysctls};
pub use error::{MeterError, ParseError};
pub use foreign::{ForeignSnapshot, foreign_cores, foreign_snapshot};
pub use meter::{Meter, Scope, Snapshot, delta};
pub use stat::{TICKS_PER_SECOND, online_cpus};
pub use wakeup::wakeup_cost;
