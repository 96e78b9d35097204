//! What a load leaves of its cores to others. A program of its own (a hidden subcommand) for each core, at the lowest
//! priority there is (`SCHED_IDLE`, sched(7)): it looks at the clock all the time, and what it did not get, others
//! took.
//!
//! Why, beside the kernel's idle time: a core that naps between two interrupts counts as idle until the interrupt has
//! woken it, and waking is dear in a virtual machine; a load that naps often looks cheaper, and is slower, than it
//! is. With this there are no naps, and what is left is left to a program that could use it. netperf's manual has the
//! same method under the same name.

use std::io::{self, BufRead};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{Pid, gettid};
use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::guest::Guest;
use crate::helper::{Helper, answer, over};
use crate::process::PATIENCE;

/// Between two looks at the clock nothing takes so long (some 30 ns do), and nobody who takes the core is so quick.
const TAKEN: Duration = Duration::from_nanos(500);

/// What a window held.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct LooperWindow {
    /// The window's length.
    seconds: f64,
    /// In which others had the core.
    taken_s: f64,
}

/// Counts the nanoseconds that it had the core, until nobody wants to know.
fn count(had: &AtomicU64, wanted: &AtomicBool) {
    let mut last = Instant::now();
    let mut sum = 0;
    while wanted.load(Ordering::Relaxed) {
        let now = Instant::now();
        let step = now - last;
        if step < TAKEN {
            sum += step.as_nanos() as u64;
            had.store(sum, Ordering::Relaxed);
        }
        last = now;
    }
}

/// What was counted at an instant.
#[derive(Debug, Clone, Copy)]
struct CoreTimeSnapshot {
    at: Instant,
    had_ns: u64,
}

impl CoreTimeSnapshot {
    fn take(had: &AtomicU64) -> Self {
        Self {
            at: Instant::now(),
            had_ns: had.load(Ordering::Relaxed),
        }
    }

    fn since(self, before: Self) -> LooperWindow {
        let seconds = (self.at - before.at).as_secs_f64();
        let had_s = (self.had_ns - before.had_ns) as f64 / 1e9;
        LooperWindow {
            seconds,
            taken_s: (seconds - had_s).max(0.0),
        }
    }
}

/// Answers each line `WARMUP SECONDS` with what others took in that window, until the input closes. The lines are read
/// at the usual priority: a load that leaves nothing would have them wait.
///
/// # Errors
/// In words.
pub(crate) fn run() -> Result<(), String> {
    let had = AtomicU64::new(0);
    let wanted = AtomicBool::new(true);
    thread::scope(|scope| {
        let (tell, tid) = channel();
        let (had, wanted) = (&had, &wanted);
        scope.spawn(move || {
            if tell.send(gettid()).is_ok() {
                count(had, wanted);
            }
        });
        let done = tid
            .recv()
            .map_err(|error| error.to_string())
            .and_then(lowest)
            .and_then(|()| windows(had));
        wanted.store(false, Ordering::Relaxed);
        done
    })
}

fn windows(had: &AtomicU64) -> Result<(), String> {
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| format!("reading the window: {error}"))?;
        let [before, after] = over(&line, || Ok(CoreTimeSnapshot::take(had)))?;
        answer(&after.since(before))?;
    }
    Ok(())
}

/// Gives a thread `SCHED_IDLE`.
fn lowest(thread: Pid) -> Result<(), String> {
    let said = Command::new("chrt")
        .args(["--idle", "--pid", "0", &thread.to_string()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("starting chrt: {error}"))?;
    if said.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&said.stderr);
    Err(format!("chrt: {}", words.trim()))
}

/// The loopers of one host, one for each of its cores.
#[derive(Debug)]
pub(crate) struct Loopers(Vec<Helper>);

impl Loopers {
    /// # Errors
    /// They cannot be started.
    pub(crate) fn start(guest: &Guest, cpus: &[u32]) -> Result<Self, BenchError> {
        let start = |cpu: &u32| Helper::start("a looper", "looper", &guest.on(*cpu));
        cpus.iter().map(start).collect::<Result<_, _>>().map(Self)
    }

    /// Begins a window.
    ///
    /// # Errors
    /// One has ended.
    pub(crate) fn begin(&mut self, line: &str) -> Result<(), BenchError> {
        self.0
            .iter_mut()
            .try_for_each(|looper| looper.send_line(line))
    }

    /// Cores that others took in the window.
    ///
    /// # Errors
    /// One has ended, or gives no answer.
    pub(crate) fn taken(&mut self, interrupt: &AtomicBool) -> Result<f64, BenchError> {
        let mut cores = 0.0;
        for looper in &mut self.0 {
            let taken: LooperWindow = looper.answer(PATIENCE, interrupt, || Ok(()))?;
            cores += taken.taken_s / taken.seconds;
        }
        Ok(cores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_did_not_get_others_took() {
        let at = Instant::now();
        let snapshot = |milliseconds, had_ns| CoreTimeSnapshot {
            at: at + Duration::from_millis(milliseconds),
            had_ns,
        };
        let taken = snapshot(600, 180_000_000).since(snapshot(100, 80_000_000));
        assert!((taken.seconds - 0.5).abs() < 1e-9, "{taken:?}");
        assert!((taken.taken_s - 0.4).abs() < 1e-9, "{taken:?}");
        // Read a little later than the clock.
        assert!(snapshot(2, 3_000_000).since(snapshot(1, 1_000_000)).taken_s <= 0.0);
    }

    #[test]
    fn it_counts_until_nobody_wants_to_know() {
        let (had, wanted) = (AtomicU64::new(0), AtomicBool::new(true));
        thread::scope(|scope| {
            scope.spawn(|| count(&had, &wanted));
            while had.load(Ordering::Relaxed) < 1_000_000 {
                thread::yield_now();
            }
            wanted.store(false, Ordering::Relaxed);
        });
    }
}
