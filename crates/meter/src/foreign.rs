//! Foreign load: CPU time of tasks that do not belong to this run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::Instant;

use crate::error::{MeterError, ParseError};
use crate::file::read_once;
use crate::process::{inner_number, name, parse_schedstat, parse_stat, parse_uptime};

/// Every visible process at one moment, except kernel threads. Processes of this run are marked as such.
#[derive(Debug, Clone)]
pub struct ForeignSnapshot {
    at: Instant,
    /// The moment in ticks since boot, comparable with the processes' start times.
    uptime: u64,
    processes: HashMap<Identity, Process>,
}

/// A process: its number and its start time, as the kernel reuses numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Identity {
    pid: u32,
    start: u64,
}

#[derive(Debug, Clone, Default)]
struct Process {
    ours: bool,
    /// Number of the parent process.
    parent: u32,
    /// Run time of each thread in nanoseconds, by thread number.
    tasks: BTreeMap<u32, u64>,
    /// CPU time of all threads, ended ones included, in nanoseconds. In steps of 10 ms, unlike the sum of `tasks`.
    own_ns: u64,
    /// CPU time inherited from children that ended, in nanoseconds.
    reaped_ns: u64,
}

impl Process {
    /// CPU time that the parent will inherit from this process, so far, in nanoseconds.
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

/// Reads the run time of every task on the machine. `ours` are the processes (not threads) of this run: the controller
/// and every agent, each by its number in its own PID namespace. What they have started is of this run, too.
///
/// A scan costs about 20 µs a process: scan outside the measured window. Processes that end during the scan, and those
/// that this user may not see (`hidepid`, another PID namespace), are left out.
///
/// # Errors
/// /proc cannot be listed, or the kernel keeps no run time per task.
pub fn foreign_snapshot(ours: &[u32]) -> Result<ForeignSnapshot, MeterError> {
    require_run_time()?;
    let uptime = format_of("/proc/uptime", parse_uptime)?;
    let at = Instant::now();
    let ours = Ours {
        numbers: ours,
        program: read_once("/proc/self/stat")?,
    };
    let listing = fs::read_dir("/proc").map_err(|cause| MeterError::Read {
        path: "/proc".into(),
        cause,
    })?;
    // Processes are listed in ascending order, mostly parents before their children: a child that is reaped during the
    // scan is then missed rather than counted twice.
    let mut processes = listing
        .flatten()
        .filter_map(|entry| {
            let pid = number(&entry)?;
            scan_process(&entry.path(), pid, &ours)
        })
        .collect();
    adopt(&mut processes);
    Ok(ForeignSnapshot {
        at,
        uptime,
        processes,
    })
}

/// Marks the children of this run's processes as of this run: the hypervisors of an agent. Process 1 has orphans of any
/// program: it is taken for this run's where an agent has that number in a container.
fn adopt(processes: &mut HashMap<Identity, Process>) {
    let ours = processes.iter().filter(|(_, process)| process.ours);
    let ours = ours.map(|(identity, _)| identity.pid);
    let ours: HashSet<u32> = ours.filter(|pid| *pid != 1).collect();
    for process in processes.values_mut() {
        process.ours |= ours.contains(&process.parent);
    }
}

/// How processes of this run are recognised.
struct Ours<'a> {
    numbers: &'a [u32],
    /// /proc/PID/stat of this process, which has the name of our program.
    program: String,
}

impl Ours<'_> {
    /// Whether a process is of this run. `stat` and `status` are its files under /proc; the second one is read only
    /// where it matters.
    fn has(&self, pid: u32, stat: &str, status: impl FnOnce() -> Option<String>) -> bool {
        if self.numbers.contains(&pid) {
            return true;
        }
        // An agent in a container of this machine knows its number there. Other programs may have that number in other
        // containers.
        name(stat) == name(&self.program)
            && status()
                .and_then(|status| inner_number(&status))
                .is_some_and(|inner| self.numbers.contains(&inner))
    }
}

/// Reads one process. `None` for a kernel thread, and for a process that ended or may not be seen.
fn scan_process(path: &Path, pid: u32, ours: &Ours<'_>) -> Option<(Identity, Process)> {
    let text = read_once(path.join("stat")).ok()?;
    let stat = parse_stat(&text).ok()?;
    if stat.kernel_thread {
        return None;
    }
    let tasks = fs::read_dir(path.join("task")).ok()?;
    let tasks = tasks.flatten().filter_map(|entry| {
        let text = read_once(entry.path().join("schedstat")).ok()?;
        Some((number(&entry)?, parse_schedstat(&text).ok()?.0))
    });
    let process = Process {
        ours: ours.has(pid, &text, || read_once(path.join("status")).ok()),
        parent: stat.parent,
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

/// The calling thread is running, so a kernel that keeps run times has counted at least one time slice for it.
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
/// - A task in both scans counts what its run time gained, exact to the scheduler's tick (1 to 10 ms).
/// - A process that started after the first scan counts from its start, as does a new thread of a known process; an
///   older process that the first scan missed counts 0.
/// - A process that ended within the window counts if a foreign parent waited for it, in steps of 10 ms, less what the
///   first scan had seen of it. Children of a parent that ignores `SIGCHLD`, and threads that ended in a process that
///   lives on, are missed.
/// - Kernel threads (`ksoftirqd`, `kworker`) are not foreign: they do network work of the run and of other programs,
///   and the kernel does not tell which. Time in interrupts is not told apart either.
///
/// The result is therefore a lower bound, by a small margin. 0 when the scans are swapped.
pub fn foreign_cores(before: &ForeignSnapshot, after: &ForeignSnapshot) -> f64 {
    let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
    if seconds <= 0.0 {
        return 0.0;
    }
    let alive: u64 = run_time(before, after).map(|(_, gained)| gained).sum();
    (alive + ended(before, after)) as f64 / 1e9 / seconds
}

/// Whether the process started after `before`, so that all of its run time belongs to the window.
fn began_since(before: &ForeignSnapshot, identity: Identity) -> bool {
    identity.start >= before.uptime
}

/// Nanoseconds gained by each foreign process of `after`, by process number.
fn run_time<'a>(
    before: &'a ForeignSnapshot,
    after: &'a ForeignSnapshot,
) -> impl Iterator<Item = (u32, u64)> + 'a {
    let foreign = after.processes.iter().filter(|(_, process)| !process.ours);
    foreign.map(|(&identity, process)| {
        let known = before.processes.get(&identity);
        let gained = process.tasks.iter().map(|(task, &run)| {
            match known {
                // A run time below the earlier one is that of a new thread with a reused number: all of it counts.
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

/// Nanoseconds gained by processes that ended, as inherited by their parents.
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
        .filter(|(identity, process)| !process.ours && !after.processes.contains_key(identity))
        .map(|(_, process)| process.total_ns())
        .sum();
    inherited.saturating_sub(already_seen)
}

#[cfg(test)]
mod tests;
