//! The flows of one end of a load, shared between its threads and its handle.
//!
//! The data path touches padded counters and two flags; everything else is for set-up and the end.

use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use socket2::Socket;
use wirecost_sys::epoll::Wake;

use crate::error::TrafficError;

/// A figure that one thread writes and anybody may read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Publishes a new total. Only the counter's own thread may call it: it is a store, not an addition.
    pub(crate) fn publish(&self, total: u64) {
        self.0.store(total, Relaxed);
    }

    /// Adds to the total; only the counter's own thread may call it.
    pub(crate) fn add(&self, more: u64) {
        self.publish(self.get() + more);
    }

    /// Adds to the total where several threads do.
    pub(crate) fn add_shared(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// The total so far.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// What a flow's sending half counts, on cache lines of its own: neighbours are fetched in pairs on x86.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Outgoing {
    /// Of messages, handed to the kernel.
    pub(crate) bytes: Counter,
    /// Datagrams or requests handed to the kernel, responses at a server.
    pub(crate) messages: Counter,
    /// Of a stream's datagrams those that say that they are counted.
    pub(crate) counted: Counter,
    /// Sends from our own pages.
    pub(crate) zero_copy: Counter,
    /// Of these, the ones that the kernel is done with.
    pub(crate) completed: Counter,
    /// Of these, the ones that it copied after all.
    pub(crate) copied: Counter,
    /// Sends with a copy since the kernel took no more from our pages.
    pub(crate) fallbacks: Counter,
}

/// What a flow's receiving half counts.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Incoming {
    /// Of messages, that the application read.
    pub(crate) bytes: Counter,
    /// Messages, each counted once: datagrams, requests at a server, responses in time at a client.
    pub(crate) messages: Counter,
    /// Of a stream's datagrams those that say that they are counted, each once.
    pub(crate) counted: Counter,
    /// Datagrams that must have been sent: one above the highest number; at the end what the sender says.
    pub(crate) expected: Counter,
    /// See [`crate::sequence::Ledger::duplicated`].
    pub(crate) duplicated: Counter,
    /// See [`crate::sequence::Ledger::reordered`].
    pub(crate) reordered: Counter,
    /// See [`crate::sequence::Ledger::too_old`].
    pub(crate) too_old: Counter,
    /// RFC 3550, nanoseconds.
    pub(crate) jitter_ns: Counter,
    /// Requests that were given up.
    pub(crate) timeouts: Counter,
    /// Responses to requests that had been given up.
    pub(crate) late: Counter,
}

/// How a flow's thread came to its end.
#[derive(Debug)]
pub(crate) enum End {
    /// As meant: told to stop, or read to the end of the stream.
    Orderly,
    /// Its own side gave it up.
    Released,
    /// The connection broke, with this error.
    Failed(io::Error),
}

/// One flow: a connection, a pair of UDP ports, or a succession of connections.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) out: Outgoing,
    pub(crate) incoming: Incoming,
    /// Of a flow that is one connection or one pair of ports, at its client also over UDP.
    pub(crate) socket: OnceLock<Arc<Socket>>,
    /// Set once the flow is there.
    pub(crate) here: AtomicBool,
    /// The peer will send no more: what its own half waits for.
    pub(crate) peer_done: AtomicBool,
    /// Set once, when its last half is over, or one of them broke.
    pub(crate) end: OnceLock<End>,
    /// When that was.
    pub(crate) ended_at: OnceLock<Instant>,
    /// Halves that are over.
    over: AtomicU32,
}

impl Flow {
    pub(crate) fn is_over(&self) -> bool {
        self.end.get().is_some()
    }

    /// Bytes of messages, both ways.
    pub(crate) fn bytes(&self) -> u64 {
        self.out.bytes.get() + self.incoming.bytes.get()
    }
}

/// All flows of one end.
#[derive(Debug)]
pub(crate) struct Flows {
    all: Box<[Flow]>,
    /// Machines for each flow.
    halves: u32,
    started: OnceLock<Instant>,
    stopping: AtomicBool,
    cut: AtomicBool,
    strays: AtomicU32,
    /// Raised whenever threads are to look at the flags above.
    wakes: Box<[Wake]>,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Flows {
    /// Room for `count` flows of so many halves, none of them there yet, and their threads' wakes.
    pub(crate) fn new(count: u32, halves: u32, wakes: Box<[Wake]>) -> Self {
        Self {
            all: (0..count).map(|_| Flow::default()).collect(),
            halves,
            started: OnceLock::new(),
            stopping: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            strays: AtomicU32::new(0),
            wakes,
            lock: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// One thread's wake.
    pub(crate) fn wake(&self, thread: usize) -> &Wake {
        &self.wakes[thread]
    }

    /// By index.
    pub(crate) fn all(&self) -> &[Flow] {
        &self.all
    }

    /// Flows expected.
    pub(crate) fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// Flows that are there.
    pub(crate) fn here(&self) -> impl Iterator<Item = (u32, &Flow)> {
        (0..)
            .zip(&self.all)
            .filter(|(_, flow)| flow.here.load(Relaxed))
    }

    /// Flows that are there and have a socket of their own.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u32, &Flow, &Socket)> {
        self.here()
            .filter_map(|(index, flow)| Some((index, flow, &**flow.socket.get()?)))
    }

    /// Bytes of all flows, both ways.
    pub(crate) fn bytes(&self) -> u64 {
        self.all.iter().map(Flow::bytes).sum()
    }

    /// Bytes read and messages received, all flows.
    pub(crate) fn received(&self) -> (u64, u64) {
        self.all.iter().fold((0, 0), |(bytes, messages), flow| {
            let incoming = &flow.incoming;
            (
                bytes + incoming.bytes.get(),
                messages + incoming.messages.get(),
            )
        })
    }

    /// Whether sending has begun.
    pub(crate) fn started(&self) -> bool {
        self.started.get().is_some()
    }

    /// When sending began, where it has.
    pub(crate) fn started_at(&self) -> Option<Instant> {
        self.started.get().copied()
    }

    /// From now on everybody sends.
    pub(crate) fn set_started(&self) {
        let _ = self.started.set(Instant::now());
        self.notify();
    }

    /// Notes that a flow is there.
    pub(crate) fn arrive(&self, flow: &Flow) {
        flow.here.store(true, Relaxed);
        self.changed();
    }

    /// Whether no more is to be sent, or accepted.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// From now on nothing more is sent, or accepted.
    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Relaxed);
        self.notify();
    }

    /// Whether the flows were given up.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    /// Gives up every flow that is not over: its thread comes back from whatever call it is in.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Relaxed);
        for (_, flow, socket) in self.open() {
            if !flow.is_over() {
                // A connection that is broken already cannot be shut down, and holds no thread either.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        self.notify();
    }

    /// Counts a connection or datagram that is none of these flows'.
    pub(crate) fn count_stray(&self) {
        self.strays.fetch_add(1, Relaxed);
    }

    /// What was none of these flows'.
    pub(crate) fn strays(&self) -> u32 {
        self.strays.load(Relaxed)
    }

    /// Whether each flow that is there is over.
    pub(crate) fn all_over(&self) -> bool {
        self.here().all(|(_, flow)| flow.is_over())
    }

    /// Notes how one of a flow's halves ended: the first that broke says so for both, else the last one.
    pub(crate) fn end(&self, flow: &Flow, end: End) {
        let over = flow.over.fetch_add(1, Relaxed) + 1;
        if over >= self.halves || !matches!(end, End::Orderly) {
            let _ = flow.ended_at.set(Instant::now());
            // A later end would be the less telling one.
            let _ = flow.end.set(end);
            self.changed();
        }
    }

    /// Has every thread look at the flags again, and every [`Self::wait_until`].
    pub(crate) fn notify(&self) {
        for wake in &self.wakes {
            wake.raise();
        }
        self.changed();
    }

    /// Wakes every [`Self::wait_until`] to look again.
    fn changed(&self) {
        // Taking the lock orders this after a waiter's last look, so that none sleeps through the change.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until `done`, at most until `deadline`; returns whether it is.
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

    /// The first flow that broke, as an error.
    pub(crate) fn check(&self) -> Result<(), TrafficError> {
        let broken = (0..)
            .zip(&self.all)
            .find_map(|(index, flow)| match flow.end.get() {
                Some(End::Failed(error)) => Some((index, flow, error)),
                _ => None,
            });
        match broken {
            None => Ok(()),
            Some((index, flow, error)) => {
                Err(TrafficError::of_flow(index, flow.bytes(), same(error)))
            }
        }
    }
}

/// An `io::Error` cannot be cloned; its number is what it says.
pub(crate) fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(
        || io::Error::new(error.kind(), error.to_string()),
        io::Error::from_raw_os_error,
    )
}

/// One end of a load that is over, its threads joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Bytes of messages of all flows, written or read since the start.
    pub bytes: u64,
    /// By flow index; a flow that never came has no bytes.
    pub flows: Vec<FlowEnd>,
    /// Connections and datagrams that were none of this load's, and were dropped.
    pub strays: u32,
}

impl Finished {
    /// Whether every byte that was sent was also read by the application at the other end.
    pub fn drained(&self) -> bool {
        self.flows.iter().all(|flow| flow.drained)
    }
}

/// One flow that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowEnd {
    /// Bytes written or read since the start.
    pub bytes: u64,
    /// At the server: it read to the end of the flow. At the client: the server said that it did, or ended in turn.
    pub drained: bool,
    /// Of a UDP stream: datagrams that were sent while the client was counted ([`crate::Client::set_counted`]); at the
    /// server those of them that came, each once.
    pub counted: u64,
}
