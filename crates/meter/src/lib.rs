//! Counters to snapshots to deltas, for one host: what its processors, links and protocols did
//! in a window. Reads files under /proc only (and the clock source's name under /sys).
//!
//! Not here: sockets' own counters (`TCP_INFO`, crate `traffic`), device features (crate
//! `netbuild`), and any judgement of the figures.
//!
//! # How a window is measured
//!
//! [`Meter::snapshot`] reads the processors first and takes the time around that one read; links
//! and protocols follow within some 100 µs. [`delta`] subtracts two snapshots. Every snapshot
//! reads in the same order, so a counter's own window is as long as the processors' and only
//! shifted by that little. All counters run on while they are read: two of them agree to the
//! packets of those 100 µs, not exactly.
//!
//! # Busy time of a core
//!
//! *Source:* for root idle and iowait from /proc/timer_list in nanoseconds, after an interrupt to each core that makes the
//! kernel book them (75 us for two cores); otherwise, and for steal always, the `cpuN` lines of /proc/stat (fs/proc/stat.c),
//! which show the same in ticks of 10 ms. Busy is the window by the monotonic
//! clock minus what idle, iowait and steal gained. The kernel keeps these three exactly (idle and
//! iowait by `tick_sched`'s own clock, steal by the hypervisor's). From ticks busy is right to 10 ms for each of the three
//! that moved: 1 % of one core over a second. It
//! includes softirq, kernel threads, and whoever else ran there.
//!
//! *Its errors:* a kernel that ticks on idle cores (`nohz=off`) samples idle by ticks. iowait may
//! run backwards when a task wakes elsewhere; a step back counts as none. Where rounding makes
//! the three exceed the window, busy is 0 and their sum is left as it was read. A core that halts is
//! idle until the interrupt that ends it is delivered; a hypervisor takes microseconds for that, which
//! a core that naps thousands of times a second has in its idle time. What a hypervisor
//! takes from a core without saying so (no steal clock) counts as busy, or as idle if it was idle.
//!
//! # Classes of busy time
//!
//! *Source:* user + nice, system, softirq and irq of the same lines: whatever the periodic tick
//! happened to interrupt. Softirq work that is done between ticks and synchronised with them is
//! missed or counted double; a core that was busy for 69 % showed 40 %. They are given as shares
//! of their own sum and never added to anything.
//!
//! # Wake-ups
//!
//! *Source:* /proc/interrupts, the rows that wake a core for work, of the host's cores; exact. Context switches are those of
//! /proc/stat, of the machine. Reading it takes 60 us on two cores.
//!
//! # Backlog
//!
//! *Source:* /proc/net/softnet_stat (net/core/net-procfs.c), per core and exact, for the whole
//! machine: the file shows the same in every network namespace. Since Linux 5.10 a row names its
//! core; before, rows are the online cores in order. Counters are 32 bits wide; one wrap in a
//! window is seen through.
//!
//! # Links
//!
//! *Source:* /proc/PID/task/TID/net/dev of the host's and of the guest's namespace; exact. On a
//! device that offloads or aggregates they count super-packets and their bytes, not what is on
//! the wire. A received drop includes what the device missed (`rx_dropped + rx_missed_errors`).
//! The loopback device is left out.
//!
//! # Protocols
//!
//! *Source:* /proc/PID/task/TID/net/snmp and snmp6 of the guest's namespace; exact. `InSegs`
//! counts super-packets after GRO, `OutSegs` counts the segments that a super-packet will become.
//! TCP's line is about IPv4 and IPv6 together; UDP and ICMP are added up from both files.
//!
//! # Foreign load
//!
//! *Source:* the run time of every task in /proc/PID/task/TID/schedstat, except those of our own
//! processes and of kernel threads: see [`foreign_cores`] for what it sees and what it cannot.
//! A planted load of 20 % read 19.9 %; a loop of processes that lived 50 ms each, 99.4 to 101.3 %
//! of the one core it kept busy. A scan costs about 20 µs a process, so it is taken around
//! the window, not in it, and carries its own time.

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
