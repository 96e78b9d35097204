//! Progress of a check on standard error.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wirecost_control::path::CheckStep;

use crate::screen::print_stderr;

/// Time after which the first progress line is printed.
const SILENT_PERIOD: Duration = Duration::from_millis(1500);
/// Interval of the further progress lines.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(3);

/// Prints progress until it is dropped.
pub(super) struct CheckProgress {
    steps: Option<Sender<CheckStep>>,
    thread: Option<JoinHandle<()>>,
}

impl CheckProgress {
    /// Starts the thread that prints progress; with `quiet` nothing is printed.
    pub(super) fn start(quiet: bool) -> Self {
        let (steps, heard) = channel();
        let thread = (!quiet).then(|| {
            std::thread::spawn(move || {
                let began = Instant::now();
                let (mut now, mut next) = (CheckStep::Reaching, SILENT_PERIOD);
                loop {
                    match heard.recv_timeout(next.saturating_sub(began.elapsed())) {
                        Ok(step) => now = step,
                        Err(RecvTimeoutError::Timeout) => {
                            let seconds = began.elapsed().as_secs_f64();
                            print_stderr(&format!("{seconds:5.1} s  {}", now.words()));
                            next += PROGRESS_INTERVAL;
                        }
                        Err(RecvTimeoutError::Disconnected) => return,
                    }
                }
            })
        });
        Self {
            steps: Some(steps),
            thread,
        }
    }

    pub(super) fn show(&self, step: CheckStep) {
        if let Some(steps) = &self.steps {
            // Fails with `quiet`, where no thread receives the steps.
            let _ = steps.send(step);
        }
    }
}

impl Drop for CheckProgress {
    fn drop(&mut self) {
        drop(self.steps.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
