//! What loads on one TCP port have in common: who accepts a connection that is another load's hands it over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use socket2::Socket;
use wirecost_sys::epoll::Wake;

use crate::handshake::{HEADER_BYTES, SECRET};
use crate::load::Load;

/// A connection that has said whose it is, or is about to.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) socket: Socket,
    pub(crate) header: [u8; HEADER_BYTES],
    /// Bytes of the header that were read.
    pub(crate) heard: usize,
}

/// The loads on a port, in their order.
#[derive(Debug)]
pub(crate) struct Lobby {
    halls: Box<[Hall]>,
}

#[derive(Debug)]
struct Hall {
    secret: [u8; 16],
    callers: Mutex<Vec<Caller>>,
    /// Raised when somebody was handed over.
    wake: Arc<Wake>,
    /// Nobody lets callers in any more.
    closed: AtomicBool,
}

impl Lobby {
    /// Of these loads, each with what wakes the one who lets its callers in.
    pub(crate) fn new<'a>(loads: impl Iterator<Item = (&'a Arc<Load>, Arc<Wake>)>) -> Self {
        let hall = |(load, wake): (&Arc<Load>, _)| Hall {
            secret: load.options.secret,
            callers: Mutex::default(),
            wake,
            closed: AtomicBool::new(false),
        };
        Self {
            halls: loads.map(hall).collect(),
        }
    }

    /// Which load a header is about.
    pub(crate) fn whose(&self, header: &[u8; HEADER_BYTES]) -> Option<usize> {
        let mut halls = self.halls.iter();
        halls.position(|hall| header[SECRET..].starts_with(&hall.secret))
    }

    /// What is raised when a caller of this load waits.
    pub(crate) fn wake(&self, load: usize) -> &Wake {
        &self.halls[load].wake
    }

    /// Hands a connection over to the load that it is about.
    pub(crate) fn hand_over(&self, load: usize, caller: Caller) {
        let hall = &self.halls[load];
        let mut callers = hall.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.push(caller);
        drop(callers);
        hall.wake.raise();
    }

    /// Whether somebody lets this load's callers in.
    pub(crate) fn is_open(&self, load: usize) -> bool {
        !self.halls[load].closed.load(Ordering::Relaxed)
    }

    /// One who lets callers of this load in is over: those who have not said whose they are go to another's, where there
    /// is one.
    pub(crate) fn leave(&self, load: usize, callers: impl Iterator<Item = Caller>) {
        self.halls[load].closed.store(true, Ordering::Relaxed);
        let mut others = 0..self.halls.len();
        if let Some(other) = others.find(|other| self.is_open(*other)) {
            callers.for_each(|caller| self.hand_over(other, caller));
        }
    }

    /// Takes those who were handed over to this load.
    pub(crate) fn callers(&self, load: usize) -> Vec<Caller> {
        let callers = &self.halls[load].callers;
        std::mem::take(&mut *callers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
