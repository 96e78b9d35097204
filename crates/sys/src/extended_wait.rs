//! Waiting for other processes beyond their time while they are at work: on a slow or crowded machine a constant tells who is
//! slow, and not who hangs.

use std::fs;
use std::time::{Duration, Instant};

/// How much longer than the time itself all of it may take.
const LONGEST: u32 = 6;
/// Who works so little of a while is not at work: a tenth.
const LITTLE: u32 = 10;

/// A wait that begins when a time is over.
#[derive(Debug)]
pub struct ExtendedWait<W> {
    /// Time that those waited for were on a core, or waited for one, so far.
    worked: W,
    before: Duration,
    /// How long each look is from the one before.
    pause: Duration,
    most: Instant,
}

impl<W: Fn() -> Duration> ExtendedWait<W> {
    /// `within` is the time that is over; the wait ends after five times that at the latest. `worked`: [`cpu_time_of_group`], [`cpu_time_of`].
    pub fn begin(within: Duration, worked: W) -> Self {
        Self {
            before: worked(),
            worked,
            pause: (within / 10).clamp(Duration::from_millis(100), Duration::from_secs(1)),
            most: Instant::now() + within * (LONGEST - 1),
        }
    }

    /// Until when to wait before the next look.
    pub fn until(&self) -> Instant {
        Instant::now() + self.pause
    }

    /// Whether to wait on after that: those waited for were at work meanwhile.
    pub fn extend(&mut self) -> bool {
        let now = (self.worked)();
        let worked = now.saturating_sub(std::mem::replace(&mut self.before, now));
        worked > self.pause / LITTLE && Instant::now() < self.most
    }
}

/// What the main threads of a process group's members worked, or waited for a core, since they began. Zero where the kernel
/// does not count that (`CONFIG_SCHED_INFO`).
pub fn cpu_time_of_group(group: u32) -> Duration {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Duration::ZERO;
    };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let members: Vec<u32> = pids.filter(|&pid| group_of(pid) == Some(group)).collect();
    cpu_time_of(&members)
}

/// The same of processes.
pub fn cpu_time_of(pids: &[u32]) -> Duration {
    // On a core, runnable (Documentation/scheduler/sched-stats.rst), nanoseconds.
    let of_one = |pid: &u32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
        let mut numbers = text
            .split_whitespace()
            .map_while(|word| word.parse::<u64>().ok());
        Some(numbers.next()? + numbers.next()?)
    };
    Duration::from_nanos(pids.iter().filter_map(of_one).sum())
}

/// The third field behind the command's name, which may hold anything (proc_pid_stat(5)).
fn group_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(2)?.parse().ok()
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

        fn extended(&self, within: Duration) -> ExtendedWait<impl Fn() -> Duration + use<>> {
            let group = self.0.id();
            ExtendedWait::begin(within, move || cpu_time_of_group(group))
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn look(extended: &mut ExtendedWait<impl Fn() -> Duration>) -> bool {
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
