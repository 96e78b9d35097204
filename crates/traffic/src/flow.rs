//! The connections of one end of a load, shared between its threads and its handle.
//!
//! The data path touches one padded counter and two flags; everything else is for set-up and the end.

use std::io;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use socket2::Socket;

use crate::error::TrafficError;

/// Bytes of one flow, on cache lines of its own: neighbours are fetched in pairs on x86.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Publishes a new total. Only the flow's own thread may call it: it is a store, not an addition.
    pub(crate) fn publish(&self, total: u64) {
        self.0.store(total, Relaxed);
    }

    /// Bytes so far.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How a flow's thread came to its end.
#[derive(Debug)]
pub(crate) enum End {
    /// As meant: the source was told to stop, or the sink read to the end of the stream.
    Orderly,
    /// Its own side gave it up.
    Released,
    /// The connection broke, with this error.
    Failed(io::Error),
}

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// Written or read by the application.
    pub(crate) bytes: Counter,
    /// Set once the flow is there.
    pub(crate) socket: OnceLock<Socket>,
    /// Set once by the flow's thread.
    pub(crate) end: OnceLock<End>,
}

impl Flow {
    fn is_over(&self) -> bool {
        self.end.get().is_some()
    }
}

/// All connections of one end.
#[derive(Debug)]
pub(crate) struct Flows {
    all: Box<[Flow]>,
    stopping: AtomicBool,
    cut: AtomicBool,
    strays: AtomicU32,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Flows {
    /// Room for `count` flows, none of them there yet.
    pub(crate) fn new(count: u32) -> Self {
        Self {
            all: (0..count).map(|_| Flow::default()).collect(),
            stopping: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            strays: AtomicU32::new(0),
            lock: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// By index.
    pub(crate) fn all(&self) -> &[Flow] {
        &self.all
    }

    /// Flows expected.
    pub(crate) fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// Flows that are there, with their sockets.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u32, &Flow, &Socket)> {
        (0..)
            .zip(&self.all)
            .filter_map(|(index, flow)| Some((index, flow, flow.socket.get()?)))
    }

    /// Bytes of all flows.
    pub(crate) fn bytes(&self) -> u64 {
        self.all.iter().map(|flow| flow.bytes.get()).sum()
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

    /// Counts a connection that is none of these flows.
    pub(crate) fn count_stray(&self) {
        self.strays.fetch_add(1, Relaxed);
    }

    /// Connections that were none of these flows.
    pub(crate) fn strays(&self) -> u32 {
        self.strays.load(Relaxed)
    }

    /// Whether each flow that is there is over.
    pub(crate) fn all_over(&self) -> bool {
        self.open().all(|(_, flow, _)| flow.is_over())
    }

    /// Notes how a flow ended.
    pub(crate) fn end(&self, flow: &Flow, end: End) {
        // A flow has one thread, so one end; a second would be the less telling one.
        let _ = flow.end.set(end);
        self.notify();
    }

    /// Wakes every [`Self::wait_until`] to look again.
    pub(crate) fn notify(&self) {
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
            Some((index, flow, error)) => Err(TrafficError::PeerVanished {
                flow: index,
                bytes: flow.bytes.get(),
                source: same(error),
            }),
        }
    }
}

/// An `io::Error` cannot be cloned; its number is what it says.
fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(
        || io::Error::new(error.kind(), error.to_string()),
        io::Error::from_raw_os_error,
    )
}

/// One end of a load that is over, its threads joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Bytes of all flows, written or read since the start.
    pub bytes: u64,
    /// By flow index; a flow that never came has no bytes.
    pub flows: Vec<FlowEnd>,
    /// Connections that a sink dropped because they were no flow of this load.
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
    /// At the sink: it read to the end of the stream. At the source: the sink said that it did.
    pub drained: bool,
}
