//! Hands accepted connections over between loads that share a TCP port: a thread may accept those of another load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use socket2::Socket;
use wirecost_sys::epoll::Waker;
use wirecost_sys::secret::same;

use crate::handshake::{FLOW, HEADER_BYTES, SECRET};
use crate::shared::Shared;

/// An accepted connection that is handed to another load.
#[derive(Debug)]
pub(crate) struct Handoff {
    pub(crate) socket: Socket,
    pub(crate) header: [u8; HEADER_BYTES],
    /// Bytes of the header that were read.
    pub(crate) filled: usize,
}

/// The loads on a port, by index.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    queues: Box<[LoadQueue]>,
}

/// Connections that wait for one load.
#[derive(Debug)]
struct LoadQueue {
    secret: [u8; 16],
    handoffs: Mutex<Vec<Handoff>>,
    /// Raised when a connection was queued.
    wake: Arc<Waker>,
    /// Whether the load takes no more connections.
    closed: AtomicBool,
}

impl Dispatcher {
    /// `loads`: each load, with the waker of the thread that takes its connections.
    pub(crate) fn new<'a>(loads: impl Iterator<Item = (&'a Shared, Arc<Waker>)>) -> Self {
        let queue = |(shared, wake): (&Shared, _)| LoadQueue {
            secret: shared.options.secret,
            handoffs: Mutex::default(),
            wake,
            closed: AtomicBool::new(false),
        };
        Self {
            queues: loads.map(queue).collect(),
        }
    }

    /// Index of the load that a header names by its secret; `None`: no load of this port.
    pub(crate) fn target(&self, header: &[u8; HEADER_BYTES]) -> Option<usize> {
        let mut queues = self.queues.iter();
        queues.position(|queue| same(&header[SECRET..FLOW], &queue.secret))
    }

    /// The waker that is raised when a connection of this load is queued.
    pub(crate) fn wake(&self, load: usize) -> &Waker {
        &self.queues[load].wake
    }

    /// Queues a connection for a load.
    pub(crate) fn hand_over(&self, load: usize, handoff: Handoff) {
        let queue = &self.queues[load];
        let mut handoffs = queue
            .handoffs
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        handoffs.push(handoff);
        drop(handoffs);
        queue.wake.raise();
    }

    /// Whether a load still takes connections.
    pub(crate) fn is_open(&self, load: usize) -> bool {
        !self.queues[load].closed.load(Ordering::Relaxed)
    }

    /// Closes a load to new connections. Those whose header is not complete (`unidentified`) go to another open load,
    /// if there is one.
    pub(crate) fn close(&self, load: usize, unidentified: impl Iterator<Item = Handoff>) {
        self.queues[load].closed.store(true, Ordering::Relaxed);
        let mut others = 0..self.queues.len();
        if let Some(other) = others.find(|other| self.is_open(*other)) {
            unidentified.for_each(|handoff| self.hand_over(other, handoff));
        }
    }

    /// Takes the connections that wait for a load.
    pub(crate) fn take(&self, load: usize) -> Vec<Handoff> {
        let handoffs = &self.queues[load].handoffs;
        std::mem::take(&mut *handoffs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
