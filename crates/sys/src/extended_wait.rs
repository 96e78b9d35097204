//! Waiting for other processes beyond a timeout while they are at work: on a slow or overloaded machine a fixed timeout
//! finds the slow processes and not only the hung ones.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Upper bound on the total wait, in multiples of the timeout.
const MAX_TIMEOUTS: u32 = 6;
/// Processes that work for less than this fraction of a pause (one tenth) count as idle.
const IDLE_FRACTION: u32 = 10;
/// Checks in a row that find the processes idle before the wait ends: one that waits for a lock is not always asleep in
/// the kernel when it is looked at.
const IDLE_CHECKS: u32 = 3;

/// Work that a set of processes has done so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessActivity {
    /// Time that their threads ran on a core or waited for one.
    time: Duration,
    /// One of their threads is runnable (state R of proc_pid_stat(5)), whose time is only counted once it gets a core;
    /// or sleeps uninterruptibly in the kernel: for a lock or a module (D), or for a grace period of RCU tasks (I).
    is_active: bool,
}

/// A wait that begins when a timeout is over.
#[derive(Debug)]
pub struct ExtendedWait<W> {
    activity: W,
    before: ProcessActivity,
    /// Time between two checks.
    pause: Duration,
    /// Checks in a row that found the processes idle.
    idle: u32,
    deadline: Instant,
}

impl<W: Fn() -> ProcessActivity> ExtendedWait<W> {
    /// `within` is the timeout that is over; the extension is at most five times that. `activity`: [`of_group`] or
    /// [`of`].
    pub fn begin(within: Duration, activity: W) -> Self {
        Self {
            before: activity(),
            activity,
            idle: 0,
            pause: (within / 10).clamp(Duration::from_millis(100), Duration::from_secs(1)),
            deadline: Instant::now() + within * (MAX_TIMEOUTS - 1),
        }
    }

    /// Time of the next check.
    pub fn until(&self) -> Instant {
        Instant::now() + self.pause
    }

    /// Whether to wait on after that check: the processes were at work since one of the last checks, and the bound is
    /// not reached.
    pub fn extend(&mut self) -> bool {
        let now = (self.activity)();
        let before = std::mem::replace(&mut self.before, now);
        let has_worked = now.time.saturating_sub(before.time) > self.pause / IDLE_FRACTION;
        self.idle = if has_worked || now.is_active {
            0
        } else {
            self.idle + 1
        };
        self.idle < IDLE_CHECKS && Instant::now() < self.deadline
    }
}

/// Activity of a process group's members. The time is zero where the kernel does not count it (`CONFIG_SCHED_INFO`).
pub fn of_group(group: u32) -> ProcessActivity {
    let group = group.to_string();
    let members: Vec<u32> = numbers_in(Path::new("/proc"))
        .filter(|pid| stat(&format!("/proc/{pid}"), 2).is_some_and(|of| of == group))
        .collect();
    of(&members)
}

/// Activity of processes, with all their threads.
pub fn of(pids: &[u32]) -> ProcessActivity {
    let mut activity = ProcessActivity::default();
    for pid in pids {
        let tasks = format!("/proc/{pid}/task");
        for task in numbers_in(Path::new(&tasks)) {
            let task = format!("{tasks}/{task}");
            activity.time += time_of(&task).unwrap_or_default();
            activity.is_active |= stat(&task, 0).is_some_and(|state| "RDI".contains(&state));
        }
    }
    activity
}

/// Time on a core and time runnable (Documentation/scheduler/sched-stats.rst).
fn time_of(task: &str) -> Option<Duration> {
    let text = fs::read_to_string(format!("{task}/schedstat")).ok()?;
    let nanoseconds = text.split_whitespace().take(2).map(str::parse::<u64>);
    Some(Duration::from_nanos(
        nanoseconds.sum::<Result<u64, _>>().ok()?,
    ))
}

/// A field of `stat` after the command's name, which may contain anything (proc_pid_stat(5)): 0 is the state, 2 the
/// process group.
fn stat(task: &str, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("{task}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(field).map(str::to_owned)
}

fn numbers_in(directory: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    use super::*;

    /// Ended when it is dropped.
    struct Group(Child);

    impl Group {
        fn of(script: &str) -> Self {
            let mut command = Command::new("sh");
            command.args(["-c", script]).process_group(0);
            Self(command.spawn().expect("sh"))
        }

        fn extended(&self, within: Duration) -> ExtendedWait<impl Fn() -> ProcessActivity + use<>> {
            let group = self.0.id();
            ExtendedWait::begin(within, move || of_group(group))
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn look(extended: &mut ExtendedWait<impl Fn() -> ProcessActivity>) -> bool {
        std::thread::sleep(extended.until().saturating_duration_since(Instant::now()));
        extended.extend()
    }

    #[test]
    fn who_is_at_work_is_waited_for_and_who_hangs_is_not() {
        let busy = Group::of("while :; do :; done");
        let mut extended = busy.extended(Duration::from_mins(1));
        assert!(look(&mut extended) && look(&mut extended));
        let hanging = Group::of("exec sleep 60");
        // It is started by now, and does nothing more.
        let mut extended = hanging.extended(Duration::from_mins(1));
        let looks = (0..20).take_while(|_| look(&mut extended)).count();
        assert!(looks < 20, "it sleeps");
    }

    #[test]
    fn not_even_who_works_is_waited_for_without_end() {
        let busy = Group::of("while :; do :; done");
        let mut extended = busy.extended(Duration::from_millis(100));
        let looks = (0..100).take_while(|_| look(&mut extended)).count();
        assert!(looks < 100, "500 ms are over");
    }
}
