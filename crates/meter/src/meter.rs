//! The meter: open files, snapshots, and the difference of two.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use wirecost_model::usage::{HostUsage, LinkDelta, ProtocolDelta};

use crate::error::MeterError;
use crate::file::ProcFile;
use crate::softnet::Softnet;
use crate::stat::CoreTicks;
use crate::{netdev, snmp, softnet, stat};

/// Prefix of the guest's devices among a host's links.
const GUEST: &str = "guest:";

/// What one host is: its cores, and where its two network namespaces are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The cores the host runs on.
    pub cpus: Vec<u32>,
    /// The process that both tasks belong to.
    pub pid: u32,
    /// A thread in the host's network namespace.
    pub host_task: u32,
    /// A thread in the guest's network namespace.
    pub guest_task: u32,
}

/// Reads one host's counters. Files stay open and buffers are reused, so that a snapshot costs
/// about 100 µs.
///
/// The open files hold on to both network namespaces (`seq_open_net` takes a reference): drop the
/// meter before they are to vanish.
#[derive(Debug)]
pub struct Meter {
    cpus: Vec<u32>,
    stat: ProcFile,
    softnet: ProcFile,
    host_links: ProcFile,
    guest_links: ProcFile,
    guest_snmp: ProcFile,
    /// `None` where the kernel has no IPv6.
    guest_snmp6: Option<ProcFile>,
}

/// All counters of one host at one moment. Only the difference of two means anything.
#[derive(Debug, Clone)]
pub struct Snapshot {
    at: Instant,
    cores: BTreeMap<u32, CoreTicks>,
    softnet: BTreeMap<u32, Softnet>,
    host_links: BTreeMap<String, LinkDelta>,
    guest_links: BTreeMap<String, LinkDelta>,
    guest: ProtocolDelta,
}

impl Meter {
    /// Opens the files, without reading them. The two threads may end afterwards.
    ///
    /// # Errors
    /// A file cannot be opened; most often because a thread of the scope is gone.
    pub fn open(scope: Scope) -> Result<Self, MeterError> {
        let net = |task: u32, file: &str| {
            PathBuf::from(format!("/proc/{}/task/{task}/net/{file}", scope.pid))
        };
        let mut cpus = scope.cpus;
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self {
            cpus,
            stat: ProcFile::open(stat::PATH)?,
            softnet: ProcFile::open(softnet::PATH)?,
            host_links: ProcFile::open(net(scope.host_task, "dev"))?,
            guest_links: ProcFile::open(net(scope.guest_task, "dev"))?,
            guest_snmp: ProcFile::open(net(scope.guest_task, "snmp"))?,
            guest_snmp6: ProcFile::open_if_there(net(scope.guest_task, "snmp6"))?,
        })
    }

    /// Reads all counters now.
    ///
    /// # Errors
    /// A file cannot be read or is not in its format, or a core of the scope is offline.
    pub fn snapshot(&mut self) -> Result<Snapshot, MeterError> {
        let begin = Instant::now();
        let all = self.stat.read(stat::parse)?;
        let at = begin + begin.elapsed() / 2;
        let online: Vec<u32> = all.keys().copied().collect();
        let cores = self
            .cpus
            .iter()
            .map(|&cpu| match all.get(&cpu) {
                Some(&ticks) => Ok((cpu, ticks)),
                None => Err(MeterError::Offline {
                    cpu,
                    online: online.clone(),
                }),
            })
            .collect::<Result<_, _>>()?;
        let mut softnet = self.softnet.read(|text| softnet::parse(text, &online))?;
        softnet.retain(|cpu, _| self.cpus.contains(cpu));
        let mut guest = self.guest_snmp.read(snmp::parse)?;
        if let Some(file) = &mut self.guest_snmp6 {
            guest = file.read(|text| snmp::add_v6(text, guest))?;
        }
        Ok(Snapshot {
            at,
            cores,
            softnet,
            host_links: self.host_links.read(netdev::parse)?,
            guest_links: self.guest_links.read(netdev::parse)?,
            guest,
        })
    }
}

impl Snapshot {
    /// When the processors were read, by the monotonic clock.
    pub fn at(&self) -> Instant {
        self.at
    }
}

/// What happened between two snapshots of one meter. `foreign_cores` is left `None`: see
/// [`crate::foreign_cores`]. Links of the guest's namespace are named `guest:NAME`. A counter that went
/// backwards gained nothing; swapped snapshots give an empty window.
pub fn delta(before: &Snapshot, after: &Snapshot) -> HostUsage {
    let window_s = after.at.saturating_duration_since(before.at).as_secs_f64();
    let cores = after.cores.iter().filter_map(|(cpu, ticks)| {
        let before = before.cores.get(cpu)?;
        Some(stat::usage(*cpu, *before, *ticks, window_s))
    });
    let (backlog_drops, budget_exhausted) = after
        .softnet
        .iter()
        .filter_map(|(cpu, after)| Some(after.since(*before.softnet.get(cpu)?)))
        .fold((0, 0), |sum, gain| (sum.0 + gain.0, sum.1 + gain.1));
    let host_links = netdev::gained(&before.host_links, &after.host_links)
        .map(|(name, gain)| (name.to_owned(), gain));
    let guest_links = netdev::gained(&before.guest_links, &after.guest_links)
        .map(|(name, gain)| (format!("{GUEST}{name}"), gain));
    HostUsage {
        window_s,
        cores: cores.collect(),
        foreign_cores: None,
        backlog_drops,
        budget_exhausted,
        links: host_links.chain(guest_links).collect(),
        guest: snmp::gained(&before.guest, &after.guest),
    }
}
