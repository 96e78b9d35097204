//! The end that waits for the flows and serves them.

mod door;

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::Socket;

use self::door::Door;
use crate::error::TrafficError;
use crate::flow::{End, Finished, FlowEnd};
use crate::load::Load;
use crate::options::{Options, Waiting};
use crate::preflight::raise_descriptors;
use crate::snapshot::Snapshot;
use crate::socket;
use crate::table::{MakeServer, Opening, Serving};
use crate::worker::{Drive, spawn};

/// Connections that may queue beside the load's own.
const SPARE_BACKLOG: u32 = 64;

/// The end that answers or reads: listens on one port, takes its load's flows and no others, and serves each to its
/// end.
///
/// Dropping it gives up every flow at once.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    load: Arc<Load>,
    /// A second handle on a listening socket: shutting it down wakes whoever accepts.
    listener: Option<Arc<Socket>>,
    door: Option<JoinHandle<Vec<JoinHandle<()>>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Listens on `bind` (port 0: any free one), from the calling thread's network namespace.
    pub fn listen(bind: SocketAddr, options: &Options) -> Result<Self, TrafficError> {
        options.validate()?;
        raise_descriptors(options)?;
        let load = Load::new(options, options.threads(), false)?;
        match (load.table.server, load.table.opening) {
            (Serving::Connection(_), _) => Self::behind_a_door(bind, load),
            (Serving::Thread(make), Opening::Ports) => Self::with_a_port(bind, load, make),
            (Serving::Thread(make), _) => Self::with_a_listener(bind, load, make),
        }
    }

    /// One thread accepts and lets in, others serve.
    fn behind_a_door(bind: SocketAddr, load: Arc<Load>) -> Result<Self, TrafficError> {
        let (address, listener) = listen(bind, &load.options)?;
        let listener = Arc::new(listener);
        let door = Door::new(Arc::clone(&listener), Arc::clone(&load));
        let door = thread::Builder::new()
            .name("load-door".to_owned())
            .spawn(move || door.run())
            .map_err(TrafficError::Thread)?;
        Ok(Self {
            address,
            load,
            listener: Some(listener),
            door: Some(door),
            threads: Vec::new(),
        })
    }

    /// Every thread accepts and serves.
    fn with_a_listener(
        bind: SocketAddr,
        load: Arc<Load>,
        make: MakeServer,
    ) -> Result<Self, TrafficError> {
        let (address, listener) = listen(bind, &load.options)?;
        let listener = Arc::new(listener);
        let sockets = load.seats.iter().map(|_| Arc::clone(&listener)).collect();
        Self::threads(address, load, sockets, make)
    }

    /// Every thread has a socket on the one port, among which the kernel divides the flows (`SO_REUSEPORT`).
    fn with_a_port(
        bind: SocketAddr,
        load: Arc<Load>,
        make: MakeServer,
    ) -> Result<Self, TrafficError> {
        let mut address = bind;
        let mut sockets = Vec::new();
        for _ in 0..load.seats.len() {
            let socket = socket::udp(bind, &load.options)?;
            socket::segment(&socket, &load.options, false)?;
            let bound = || -> io::Result<SocketAddr> {
                socket.set_reuse_port(true)?;
                socket.bind(&address.into())?;
                let bound = socket.local_addr()?.as_socket();
                bound.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
            };
            address = bound().map_err(|source| TrafficError::Listen { address, source })?;
            sockets.push(Arc::new(socket));
        }
        Self::threads(address, load, sockets, make)
    }

    fn threads(
        address: SocketAddr,
        load: Arc<Load>,
        sockets: Vec<Arc<Socket>>,
        make: MakeServer,
    ) -> Result<Self, TrafficError> {
        let mut server = Self {
            address,
            load,
            listener: None,
            door: None,
            threads: Vec::new(),
        };
        let drive = match server.load.options.waiting {
            Waiting::Sleep => Drive::Blocking,
            Waiting::Spin => Drive::Spinning,
        };
        for (seat, socket) in sockets.into_iter().enumerate() {
            let machine = make(&server.load, socket).map_err(|source| TrafficError::Socket {
                what: "setting a thread up",
                source,
            })?;
            let thread = spawn(&server.load, seat, vec![machine], drive, false)?;
            server.threads.push(thread);
        }
        Ok(server)
    }

    /// Where it listens, the port resolved.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits, at most `timeout`, until every flow arrived.
    pub fn wait_connected(&self, timeout: Duration) -> Result<(), TrafficError> {
        let flows = &self.load.flows;
        let connected = || flows.here().count() as u32;
        if flows.wait_until(Some(Instant::now() + timeout), || {
            connected() == flows.count()
        }) {
            return flows.check();
        }
        Err(TrafficError::NotConnected {
            connected: connected(),
            wanted: flows.count(),
            strays: flows.strays(),
            after: timeout,
        })
    }

    /// How often each thread waited in a ring.
    #[cfg(test)]
    pub(crate) fn rings(&self) -> Vec<u64> {
        let seats = self.load.seats.iter();
        seats.map(|seat| seat.rings.get()).collect()
    }

    /// What it was opened with.
    pub fn options(&self) -> &Options {
        &self.load.options
    }

    /// Counters, threads and socket states now.
    ///
    /// # Errors
    /// A flow that broke, by name; flows that are not there yet.
    pub fn snapshot(&self) -> Result<Snapshot, TrafficError> {
        Snapshot::take(&self.load)
    }

    /// Bytes of messages read, and messages received, so far, all flows (`read_bytes` and `received` of
    /// [`wirecost_model::end_window::Counts`]).
    pub fn received(&self) -> (u64, u64) {
        self.load.flows.received()
    }

    /// Bytes of messages read or handed to the kernel so far, all flows.
    pub fn bytes(&self) -> u64 {
        self.load.flows.bytes()
    }

    /// Takes no more flows, and waits, at most `timeout`, until every flow that is there was served to its end, which
    /// the client says. What was not is given up.
    ///
    /// # Errors
    /// A flow that broke, by name. Every thread is joined all the same.
    pub fn finish(mut self, timeout: Duration) -> Result<Finished, TrafficError> {
        self.end(Instant::now() + timeout);
        let flows = &self.load.flows;
        flows.check()?;
        let ends = flows
            .all()
            .iter()
            .map(|flow| FlowEnd {
                bytes: flow.bytes(),
                drained: matches!(flow.end.get(), Some(End::Orderly)),
            })
            .collect();
        Ok(Finished {
            bytes: flows.bytes(),
            flows: ends,
            strays: flows.strays(),
        })
    }

    fn end(&mut self, deadline: Instant) {
        let flows = &self.load.flows;
        flows.set_stopping();
        if let (Some(door), Some(listener)) = (self.door.take(), &self.listener) {
            let _ = listener.shutdown(Shutdown::Both);
            self.threads.extend(door.join().unwrap_or_default());
        }
        flows.wait_until(Some(deadline), || flows.all_over());
        if !flows.all_over() || !self.load.table.is_served_by_threads() {
            flows.cut();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.door.is_some() || !self.threads.is_empty() {
            self.end(Instant::now());
        }
    }
}

fn listen(bind: SocketAddr, options: &Options) -> Result<(SocketAddr, Socket), TrafficError> {
    let socket = socket::tcp(bind, options)?;
    let backlog = options.streams + SPARE_BACKLOG;
    let listening = || -> io::Result<SocketAddr> {
        socket.set_reuse_address(true)?;
        socket.bind(&bind.into())?;
        socket.listen(backlog as i32)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?.as_socket();
        address.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    };
    let address = listening().map_err(|source| TrafficError::Listen {
        address: bind,
        source,
    })?;
    Ok((address, socket))
}
