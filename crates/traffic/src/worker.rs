//! A thread of a load and how it runs its tasks: one on a blocking socket, many with epoll or io_uring, or spinning.

mod epoll;
mod ring;
mod timers;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use self::epoll::run_epoll;
use self::ring::run_ring;
use crate::buffers::Buffers;
use crate::error::TrafficError;
use crate::flow::{Outcome, same};
use crate::options::WaitMode;
use crate::shared::Shared;
use crate::task::{Context, Progress, Task};
use crate::timeouts::POLL_INTERVAL;

/// Up to this number of tasks, a spinning thread polls each of them, and not an epoll set.
const MAX_ROUND_ROBIN: usize = 4;

/// How a thread runs its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadMode {
    /// One task on a blocking socket.
    Blocking,
    /// Any number of tasks on non-blocking sockets.
    Multiplexed,
    /// Any number of tasks on non-blocking sockets, polled without sleeping.
    Spinning,
}

impl ThreadMode {
    /// The mode of all threads of an end. `own_threads`: each task has a thread of its own and may block. The mode is
    /// the same for all: the two directions of a connection share a socket, which blocks for both or for neither.
    pub(crate) fn of(waiting: WaitMode, own_threads: bool) -> Self {
        match waiting {
            WaitMode::Spin => Self::Spinning,
            WaitMode::Sleep if own_threads => Self::Blocking,
            WaitMode::Sleep => Self::Multiplexed,
        }
    }
}

/// Starts a thread with these tasks. `waits_for_start`: it polls none before the flows are started or stopping.
pub(crate) fn spawn(
    shared: &Arc<Shared>,
    thread: usize,
    tasks: Vec<Box<dyn Task>>,
    mode: ThreadMode,
    waits_for_start: bool,
) -> Result<JoinHandle<()>, TrafficError> {
    // Allocated before the load starts.
    let buffers = Buffers::new(
        &shared.buffer_sizes,
        shared.options.load.segmentation.receive,
    );
    let worker = Worker {
        shared: Arc::clone(shared),
        thread,
        tasks,
        mode,
        buffers,
    };
    thread::Builder::new()
        .name(format!("load-{thread}"))
        // Tasks keep their buffers on the heap: a small host must have room for 1024 threads.
        .stack_size(256 << 10)
        .spawn(move || worker.run(waits_for_start))
        .map_err(TrafficError::Thread)
}

struct Worker {
    shared: Arc<Shared>,
    thread: usize,
    tasks: Vec<Box<dyn Task>>,
    mode: ThreadMode,
    buffers: Buffers,
}

impl Worker {
    fn run(mut self, waits_for_start: bool) {
        let shared = Arc::clone(&self.shared);
        let thread = &shared.threads[self.thread];
        thread.tid.store(wirecost_sys::thread::current(), Relaxed);
        if shared.options.load.is_timed() {
            // With the default timer slack a paced message may be sent up to 50 us late.
            let _ = wirecost_sys::thread::exact_timers();
        }
        let mut tasks = std::mem::take(&mut self.tasks);
        // A ring belongs to the thread that uses it.
        let ring = match self.mode {
            ThreadMode::Multiplexed => ring::for_tasks(&mut tasks, &shared, self.thread),
            ThreadMode::Blocking | ThreadMode::Spinning => None,
        };
        if waits_for_start {
            let flows = &shared.flows;
            flows.wait_until(None, || flows.started() || flows.stopping());
        }
        let mut context = Context {
            shared: &shared,
            thread,
            buffers: &mut self.buffers,
            blocking: self.mode == ThreadMode::Blocking,
        };
        match (self.mode, ring) {
            (_, Some(ring)) => run_ring(tasks, ring, &mut context, self.thread),
            (ThreadMode::Blocking, None) => {
                for task in tasks {
                    run_blocking(task, &mut context);
                }
            }
            (ThreadMode::Spinning, None) if tasks.len() <= MAX_ROUND_ROBIN => {
                run_spinning(tasks, &mut context);
            }
            (ThreadMode::Spinning, None) => run_epoll(tasks, &mut context, self.thread, true),
            (ThreadMode::Multiplexed, None) => run_epoll(tasks, &mut context, self.thread, false),
        }
        if let Ok(times) = wirecost_sys::thread::times(thread.tid.load(Relaxed)) {
            let _ = thread.final_times.set(times);
        }
    }
}

fn ended(shared: &Shared, task: &dyn Task, end: Outcome) {
    // After an abort every task counts as released, however it ended.
    let end = if shared.flows.is_aborted() {
        Outcome::Released
    } else {
        end
    };
    if let Some(index) = task.flow() {
        shared.flows.end(&shared.flows.all()[index as usize], end);
    } else if let Outcome::Failed(error) = end {
        // A task that serves many flows failed: so did each of them.
        for (_, flow) in shared.flows.connected() {
            shared.flows.end(flow, Outcome::Failed(same(&error)));
        }
    }
}

/// Runs one task on a blocking socket.
fn run_blocking(mut task: Box<dyn Task>, context: &mut Context<'_>) {
    let shared = context.shared;
    loop {
        match task.poll(context) {
            Progress::Again => {}
            Progress::Over(end) => return ended(shared, &*task, end),
            Progress::Wait(interest, until) => {
                if shared.flows.is_aborted() {
                    return ended(shared, &*task, Outcome::Released);
                }
                // A task that waits for its socket has already waited in its system call.
                if !(interest.read || interest.write) {
                    let left = until.map_or(POLL_INTERVAL, |until| {
                        Duration::from_nanos(until.saturating_sub(shared.now()))
                    });
                    thread::sleep(left.min(POLL_INTERVAL));
                }
            }
        }
    }
}

/// Polls a few tasks without sleeping.
fn run_spinning(mut tasks: Vec<Box<dyn Task>>, context: &mut Context<'_>) {
    let shared = context.shared;
    while !tasks.is_empty() {
        tasks.retain_mut(|task| {
            let next = task.poll(context);
            context.thread.polls.add(1);
            match next {
                Progress::Again => true,
                Progress::Wait(..) => {
                    context.thread.idle_polls.add(1);
                    let cut = shared.flows.is_aborted();
                    if cut {
                        ended(shared, &**task, Outcome::Released);
                    }
                    !cut
                }
                Progress::Over(end) => {
                    ended(shared, &**task, end);
                    false
                }
            }
        });
        std::hint::spin_loop();
    }
}
