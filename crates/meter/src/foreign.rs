//! Foreign load: what tasks that are not of this run took from the machine.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::Instant;

use crate::error::{MeterError, ParseError};
use crate::file::read_once;
use crate::process::{parse_schedstat, parse_stat, parse_uptime};

/// Every process that could be seen, at one moment; ours and kernel threads excepted.
#[derive(Debug, Clone)]
pub struct ForeignSnapshot {
    at: Instant,
    /// The moment in ticks since boot, to compare with start times.
    uptime: u64,
    processes: HashMap<Identity, Process>,
}

/// A number alone may be given to another process later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Identity {
    pid: u32,
    start: u64,
}

#[derive(Debug, Clone, Default)]
struct Process {
    ours: bool,
    /// Run time of each task in nanoseconds.
    tasks: BTreeMap<u32, u64>,
    /// CPU time of all its threads, ended ones included: coarser than the tasks' sum, but whole.
    own_ns: u64,
    /// CPU time inherited from children that ended.
    reaped_ns: u64,
}

impl Process {
    /// What its parent will inherit of it, so far.
    fn total_ns(&self) -> u64 {
        self.own_ns.max(self.tasks.values().sum()) + self.reaped_ns
    }
}

impl ForeignSnapshot {
    /// When the scan began, by the monotonic clock.
    pub fn at(&self) -> Instant {
        self.at
    }
}

/// Reads the run time of every task on the machine. `ours` are the processes (not threads) of this
/// run: the controller and every agent.
///
/// Costs about 20 µs a process: to be done outside the measured window. Processes that end during
/// the scan, and those that this user may not see (`hidepid`, another PID namespace), are left out.
///
/// # Errors
/// /proc cannot be listed, or the kernel keeps no run time per task.
pub fn foreign_snapshot(ours: &[u32]) -> Result<ForeignSnapshot, MeterError> {
    require_run_time()?;
    let uptime = format_of("/proc/uptime", parse_uptime)?;
    let at = Instant::now();
    let listing = fs::read_dir("/proc").map_err(|cause| MeterError::Read {
        path: "/proc".into(),
        cause,
    })?;
    // In the order of the listing, ascending: parents mostly before their children, so that a
    // child which is reaped meanwhile is missed rather than counted twice.
    let processes = listing
        .flatten()
        .filter_map(|entry| {
            let pid = number(&entry)?;
            scan_process(&entry.path(), pid, ours.contains(&pid))
        })
        .collect();
    Ok(ForeignSnapshot {
        at,
        uptime,
        processes,
    })
}

/// `None` for a kernel thread, and for a process that ended or may not be seen.
fn scan_process(path: &Path, pid: u32, ours: bool) -> Option<(Identity, Process)> {
    let stat = parse_stat(&read_once(path.join("stat")).ok()?).ok()?;
    if stat.kernel_thread {
        return None;
    }
    let tasks = fs::read_dir(path.join("task")).ok()?;
    let tasks = tasks.flatten().filter_map(|entry| {
        let text = read_once(entry.path().join("schedstat")).ok()?;
        Some((number(&entry)?, parse_schedstat(&text).ok()?.0))
    });
    let process = Process {
        ours,
        tasks: tasks.collect(),
        own_ns: stat.own_ns,
        reaped_ns: stat.reaped_ns,
    };
    let identity = Identity {
        pid,
        start: stat.start,
    };
    Some((identity, process))
}

fn number(entry: &DirEntry) -> Option<u32> {
    entry.file_name().to_str()?.parse().ok()
}

/// The thread that asks is running, so a kernel that keeps run times has put it on a core before.
fn require_run_time() -> Result<(), MeterError> {
    let kept = match read_once("/proc/thread-self/schedstat") {
        Ok(text) => parse_schedstat(&text).is_ok_and(|(_, times)| times > 0),
        Err(_) => false,
    };
    kept.then_some(()).ok_or(MeterError::NoRunTime)
}

fn format_of<T>(
    path: &str,
    parse: impl FnOnce(&str) -> Result<T, ParseError>,
) -> Result<T, MeterError> {
    parse(&read_once(path)?).map_err(|cause| MeterError::Format {
        path: path.into(),
        cause,
    })
}

/// CPU time of foreign tasks between two scans, in cores: 1.0 is one core busy all the time.
///
/// - A task in both scans counts what it gained, exact to the scheduler's tick (1 to 10 ms).
/// - A process that is new counts from its start if that was after the first scan, else from first
///   sight; a new thread of a known process counts from its start.
/// - What a process did before it ended within the window is counted when a foreign parent
///   waited for it, in steps of 10 ms, less what the first scan had seen of it. Nobody's child
///   (`SIGCHLD` ignored) and a thread that ended in a process that lives on are missed.
/// - Kernel threads (`ksoftirqd`, `kworker`) are not foreign: they do the run's own network work
///   and that of others, and nothing tells which. Nor is time in interrupts told apart.
///
/// So the figure is a lower bound, and by little. 0 when the scans are swapped.
pub fn foreign_cores(before: &ForeignSnapshot, after: &ForeignSnapshot) -> f64 {
    let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
    if seconds <= 0.0 {
        return 0.0;
    }
    let alive: u64 = run_time(before, after).map(|(_, gained)| gained).sum();
    (alive + ended(before, after)) as f64 / 1e9 / seconds
}

/// Whether a process that `before` does not know may be counted whole.
fn began_since(before: &ForeignSnapshot, identity: Identity) -> bool {
    identity.start >= before.uptime
}

/// Nanoseconds gained by each foreign process that is still there.
fn run_time<'a>(
    before: &'a ForeignSnapshot,
    after: &'a ForeignSnapshot,
) -> impl Iterator<Item = (u32, u64)> + 'a {
    let foreign = after.processes.iter().filter(|(_, process)| !process.ours);
    foreign.map(|(&identity, process)| {
        let known = before.processes.get(&identity);
        let gained = process.tasks.iter().map(|(task, &run)| {
            match known {
                // A thread's number given anew has run for less: all of it is new.
                Some(known) => {
                    let earlier = known.tasks.get(task).copied().unwrap_or(0);
                    run.checked_sub(earlier).unwrap_or(run)
                }
                None if began_since(before, identity) => run,
                None => 0,
            }
        });
        (identity.pid, gained.sum())
    })
}

/// Nanoseconds gained by processes that ended, as their parents inherited it.
fn ended(before: &ForeignSnapshot, after: &ForeignSnapshot) -> u64 {
    let foreign = after.processes.iter().filter(|(_, process)| !process.ours);
    let inherited: u64 = foreign
        .map(
            |(&identity, process)| match before.processes.get(&identity) {
                Some(known) => process.reaped_ns.saturating_sub(known.reaped_ns),
                None if began_since(before, identity) => process.reaped_ns,
                None => 0,
            },
        )
        .sum();
    let already_seen: u64 = before
        .processes
        .iter()
        .filter(|(identity, _)| !after.processes.contains_key(identity))
        .map(|(_, process)| process.total_ns())
        .sum();
    inherited.saturating_sub(already_seen)
}

#[cfg(test)]
mod tests;
