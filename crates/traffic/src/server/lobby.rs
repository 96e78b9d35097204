//! What loads on one TCP port have in common: who accepts a connection that is another load's hands it over.

use std::sync::{Arc, Mutex, PoisonError};

use socket2::Socket;
use wirecost_sys::epoll::Wake;

use crate::handshake::{HEADER_BYTES, SECRET};
use crate::load::Load;

/// A connection that has said whose it is.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) socket: Socket,
    pub(crate) header: [u8; HEADER_BYTES],
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
}

impl Lobby {
    /// Of these loads, each with what wakes the one who lets its callers in.
    pub(crate) fn new<'a>(loads: impl Iterator<Item = (&'a Arc<Load>, Arc<Wake>)>) -> Self {
        let hall = |(load, wake): (&Arc<Load>, _)| Hall {
            secret: load.options.secret,
            callers: Mutex::default(),
            wake,
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

    /// Takes those who were handed over to this load.
    pub(crate) fn callers(&self, load: usize) -> Vec<Caller> {
        let callers = &self.halls[load].callers;
        std::mem::take(&mut *callers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
