//! The flows of one end of a load, shared between its threads and its handle.
//!
//! The data path touches padded counters and two flags; everything else is for set-up and the end.

use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use socket2::Socket;
use wirecost_model::counts::Counts;
use wirecost_nbd::client::Negotiated;
use wirecost_sys::epoll::Waker;

use crate::counter::Counter;
use crate::error::TrafficError;
use crate::storage::read_back::ReadBack;
use crate::task::arrivals::ArrivalCounters;

/// Declares the counters of one direction of a flow, each with the field of [`Counts`] that it is read into. Each
/// direction has cache lines of its own; x86 prefetches neighbours in pairs.
macro_rules! counters {
    ($(#[$about:meta])* $half:ident { $($(#[$meaning:meta])* $counter:ident => $figure:ident,)* }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct $half {
            $($(#[$meaning])* pub(crate) $counter: Counter,)*
            /// Datagrams of a stream that are marked as counted ([`crate::FinishedFlow::counted`]), each once.
            pub(crate) counted: Counter,
        }

        impl $half {
            fn read(&self, counts: &mut Counts) {
                $(counts.$figure = self.$counter.get();)*
            }
        }
    };
}

counters! {
    /// Counters of the sending direction.
    SendCounters {
        /// Bytes of messages handed to the kernel.
        bytes => sent_bytes,
        /// Datagrams or requests handed to the kernel; responses at a server.
        messages => sent,
        /// Sends with `MSG_ZEROCOPY`.
        zero_copy => zero_copy,
        /// Sends with `MSG_ZEROCOPY` that the kernel has completed.
        completed => zero_copy_completed,
        /// Completed sends with `MSG_ZEROCOPY` whose data the kernel copied after all.
        copied => zero_copy_copied,
        /// Sends with a copy, because the kernel could pin no more pages.
        fallbacks => zero_copy_fallbacks,
    }
}

counters! {
    /// Counters of the receiving direction.
    ReceiveCounters {
        /// Bytes of messages that the application read.
        bytes => read_bytes,
        /// Messages, each counted once: datagrams, requests at a server, responses in time at a client.
        messages => received,
        /// Datagrams sent, as far as the receiver knows: one above the highest number; at the end the sender's count.
        expected => expected,
        /// See [`crate::sequence::SequenceTracker::duplicated`].
        duplicated => duplicated,
        /// See [`crate::sequence::SequenceTracker::reordered`].
        reordered => reordered,
        /// See [`crate::sequence::SequenceTracker::too_old`].
        too_old => too_old,
        /// Interarrival jitter (RFC 3550), nanoseconds.
        jitter_ns => jitter_ns,
        /// Requests that timed out.
        timeouts => timeouts,
        /// Responses to requests that had timed out.
        late => late,
    }
}

/// How a flow ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// In order: the flow was told to stop, or read to the end of the stream.
    Orderly,
    /// Aborted by this end.
    Released,
    /// Failed with this error.
    Failed(io::Error),
}

/// One flow: a connection, a pair of UDP ports, or a succession of connections.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) tx: SendCounters,
    pub(crate) rx: ReceiveCounters,
    /// The socket of a flow that is one connection or one pair of ports; over UDP at the client only.
    pub(crate) socket: OnceLock<Arc<Socket>>,
    /// Whether the flow is connected.
    pub(crate) connected: AtomicBool,
    /// Whether the peer has ended its direction, so that ours ends too.
    pub(crate) peer_done: AtomicBool,
    /// At a storage client: result of the NBD handshake.
    pub(crate) negotiated: OnceLock<Negotiated>,
    /// At a storage client, once the flow has ended: the I/Os to verify.
    pub(crate) read_back: OnceLock<ReadBack>,
    /// At a client with a rate in requests: when the requests are due.
    pub(crate) due: Arc<ArrivalCounters>,
    /// How the flow ended. Set once: when the last of its tasks has ended, or the first has failed.
    pub(crate) outcome: OnceLock<Outcome>,
    /// When `outcome` was set.
    pub(crate) ended_at: OnceLock<Instant>,
    /// Tasks that have ended.
    ended_tasks: AtomicU32,
}

impl Flow {
    pub(crate) fn has_ended(&self) -> bool {
        self.outcome.get().is_some()
    }

    /// All counters now.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.tx.read(&mut counts);
        self.rx.read(&mut counts);
        counts
    }

    /// Bytes of messages, both ways.
    pub(crate) fn bytes(&self) -> u64 {
        self.tx.bytes.get() + self.rx.bytes.get()
    }
}

/// All flows of one end.
#[derive(Debug)]
pub(crate) struct Flows {
    all: Box<[Flow]>,
    /// Tasks of each flow.
    tasks_per_flow: u32,
    started: OnceLock<Instant>,
    stopping: AtomicBool,
    aborted: AtomicBool,
    /// The path that the flows read and write, for storage at a path.
    pub(crate) path: OnceLock<String>,
    strays: AtomicU32,
    /// One for each thread, raised when the thread is to check the flags above.
    wakes: Box<[Waker]>,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Flows {
    /// `count` unconnected flows with `tasks_per_flow` tasks each; `wakes` has one waker for each thread.
    pub(crate) fn new(count: u32, tasks_per_flow: u32, wakes: Box<[Waker]>) -> Self {
        Self {
            all: (0..count).map(|_| Flow::default()).collect(),
            tasks_per_flow,
            started: OnceLock::new(),
            stopping: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            path: OnceLock::new(),
            strays: AtomicU32::new(0),
            wakes,
            lock: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// The waker of a thread.
    pub(crate) fn wake(&self, thread: usize) -> &Waker {
        &self.wakes[thread]
    }

    /// All flows, by index.
    pub(crate) fn all(&self) -> &[Flow] {
        &self.all
    }

    /// Number of flows, connected or not.
    pub(crate) fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// Connected flows.
    pub(crate) fn connected(&self) -> impl Iterator<Item = (u32, &Flow)> {
        (0..)
            .zip(&self.all)
            .filter(|(_, flow)| flow.connected.load(Relaxed))
    }

    /// Connected flows that have a socket of their own.
    pub(crate) fn with_sockets(&self) -> impl Iterator<Item = (u32, &Flow, &Socket)> {
        self.connected()
            .filter_map(|(index, flow)| Some((index, flow, &**flow.socket.get()?)))
    }

    /// Bytes of all flows, both ways.
    pub(crate) fn bytes(&self) -> u64 {
        self.all.iter().map(Flow::bytes).sum()
    }

    /// Bytes read and messages received, all flows.
    pub(crate) fn received(&self) -> (u64, u64) {
        self.all.iter().fold((0, 0), |(bytes, messages), flow| {
            let rx = &flow.rx;
            (bytes + rx.bytes.get(), messages + rx.messages.get())
        })
    }

    /// Whether sending has started.
    pub(crate) fn started(&self) -> bool {
        self.started.get().is_some()
    }

    /// When sending started.
    pub(crate) fn started_at(&self) -> Option<Instant> {
        self.started.get().copied()
    }

    /// Starts sending on all flows.
    pub(crate) fn set_started(&self) {
        let _ = self.started.set(Instant::now());
        self.notify();
    }

    /// Marks a flow as connected.
    pub(crate) fn set_connected(&self, flow: &Flow) {
        flow.connected.store(true, Relaxed);
        self.changed();
    }

    /// Whether sending and accepting have stopped.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Stops sending and accepting.
    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Relaxed);
        self.notify();
    }

    /// Whether the flows were aborted.
    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Relaxed)
    }

    /// Aborts every flow that has not ended: its thread returns from the call it is in.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Relaxed);
        for (_, flow, socket) in self.with_sockets() {
            if !flow.has_ended() {
                // Shutting down a broken connection fails, and no thread waits on it.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        self.notify();
    }

    /// Counts a connection or datagram that belongs to none of these flows.
    pub(crate) fn count_stray(&self) {
        self.strays.fetch_add(1, Relaxed);
    }

    /// Connections and datagrams that belonged to none of these flows.
    pub(crate) fn strays(&self) -> u32 {
        self.strays.load(Relaxed)
    }

    /// Whether every connected flow has ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.connected().all(|(_, flow)| flow.has_ended())
    }

    /// Notes the end of one of a flow's tasks. The flow has ended with the first failure, else with its last task.
    pub(crate) fn end(&self, flow: &Flow, end: Outcome) {
        let ended_tasks = flow.ended_tasks.fetch_add(1, Relaxed) + 1;
        if ended_tasks >= self.tasks_per_flow || !matches!(end, Outcome::Orderly) {
            let _ = flow.ended_at.set(Instant::now());
            // Only the first outcome is kept.
            let _ = flow.outcome.set(end);
            self.changed();
        }
    }

    /// Wakes every thread and every [`Self::wait_until`] to check the flags.
    pub(crate) fn notify(&self) {
        for wake in &self.wakes {
            wake.raise();
        }
        self.changed();
    }

    /// Wakes every [`Self::wait_until`].
    fn changed(&self) {
        // Taking the lock orders this after a waiter's check, so that none misses the change.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until `done`, at most until `deadline`. Returns whether it is done.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>, done: impl Fn() -> bool) -> bool {
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        while !done() {
            guard = match deadline {
                None => self
                    .changed
                    .wait(guard)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    let waited = self.changed.wait_timeout(guard, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    /// Returns the error of the first failed flow, if any.
    pub(crate) fn check(&self) -> Result<(), TrafficError> {
        let broken = (0..)
            .zip(&self.all)
            .find_map(|(index, flow)| match flow.outcome.get() {
                Some(Outcome::Failed(error)) => Some((index, flow, error)),
                _ => None,
            });
        match broken {
            None => Ok(()),
            Some((job, flow, error)) => Err(match self.path.get() {
                None => TrafficError::of_flow(job, flow.bytes(), same(error)),
                Some(path) => TrafficError::PathJob {
                    path: path.clone(),
                    job,
                    bytes: flow.bytes(),
                    source: same(error),
                },
            }),
        }
    }
}

/// A copy of an error: `io::Error` is not `Clone`.
pub(crate) fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(
        || io::Error::new(error.kind(), error.to_string()),
        io::Error::from_raw_os_error,
    )
}

/// The final figures of one end of a load, its threads joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Bytes of messages sent or read since the start, all flows.
    pub bytes: u64,
    /// Figures of each flow, by index; a flow that was never connected has no bytes.
    pub flows: Vec<FinishedFlow>,
    /// Connections and datagrams dropped because they did not belong to this load.
    pub strays: u32,
}

impl Finished {
    /// Whether the application at the other end read every byte that was sent.
    pub fn drained(&self) -> bool {
        self.flows.iter().all(|flow| flow.drained)
    }
}

/// The final figures of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedFlow {
    /// Bytes sent or read since the start.
    pub bytes: u64,
    /// Whether all data were read. At the server: it read to the end of the flow. At the client: the server said so.
    pub drained: bool,
    /// Of a UDP stream: datagrams sent with the mark of [`crate::Client::set_counted`]; at the server those of them
    /// that arrived, each once.
    pub counted: u64,
}
