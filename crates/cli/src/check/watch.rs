//! Progress on standard error, for a check that takes longer than a moment.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wirecost_control::path::Step;

use crate::screen::say;

/// A check that takes no longer prints no progress.
const SILENT: Duration = Duration::from_millis(1500);
/// How often progress is printed.
const OFTEN: Duration = Duration::from_secs(3);

/// Prints progress until it is dropped.
pub(super) struct Watch {
    steps: Option<Sender<Step>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch; `quiet` says nothing at all.
    pub(super) fn start(quiet: bool) -> Self {
        let (steps, heard) = channel();
        let thread = (!quiet).then(|| {
            std::thread::spawn(move || {
                let began = Instant::now();
                let (mut now, mut next) = (Step::Reaching, SILENT);
                loop {
                    match heard.recv_timeout(next.saturating_sub(began.elapsed())) {
                        Ok(step) => now = step,
                        Err(RecvTimeoutError::Timeout) => {
                            let seconds = began.elapsed().as_secs_f64();
                            say(&format!("{seconds:5.1} s  {}", now.words()));
                            next += OFTEN;
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

    pub(super) fn show(&self, step: Step) {
        if let Some(steps) = &self.steps {
            // Nothing is printed when quiet.
            let _ = steps.send(step);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.steps.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
