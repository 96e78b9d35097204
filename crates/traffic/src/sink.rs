//! The receiving end of a stream.

mod acceptor;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::Socket;

use self::acceptor::Acceptor;
use crate::error::TrafficError;
use crate::flow::{End, Finished, Flow, FlowEnd, Flows};
use crate::options::StreamOptions;
use crate::snapshot::StreamSnapshot;

/// Smallest read buffer in bytes: one read takes what arrived, also where messages are small.
const READ_BUFFER: u32 = 128 << 10;

/// Connections that may queue beside the load's own.
const SPARE_BACKLOG: u32 = 64;

/// The receiving end: listens, takes its load's flows and no others, and reads each to its end.
///
/// Dropping it gives up every flow at once.
#[derive(Debug)]
pub struct StreamSink {
    address: SocketAddr,
    flows: Arc<Flows>,
    /// A second handle on the listening socket: shutting it down wakes the acceptor.
    listener: Socket,
    acceptor: Option<JoinHandle<Vec<JoinHandle<()>>>>,
}

impl StreamSink {
    /// Listens on `bind` (port 0: any free one), from the calling thread's network namespace; flows are accepted on
    /// a thread of their own.
    pub fn listen(bind: SocketAddr, options: &StreamOptions) -> Result<Self, TrafficError> {
        options.validate()?;
        let socket = options.socket(bind)?;
        let backlog = options
            .streams
            .saturating_add(SPARE_BACKLOG)
            .min(i32::MAX as u32);
        let listening = || -> io::Result<(SocketAddr, Socket)> {
            socket.set_reuse_address(true)?;
            socket.bind(&bind.into())?;
            socket.listen(backlog as i32)?;
            socket.set_nonblocking(true)?;
            let address = socket.local_addr()?.as_socket();
            Ok((
                address.ok_or(io::ErrorKind::AddrNotAvailable)?,
                socket.try_clone()?,
            ))
        };
        let (address, listener) = listening().map_err(|source| TrafficError::Listen {
            address: bind,
            source,
        })?;

        let flows = Arc::new(Flows::new(options.streams));
        let buffer = options.message.max(READ_BUFFER) as usize;
        let acceptor = Acceptor::new(socket, Arc::clone(&flows), options.secret, buffer);
        let acceptor = thread::Builder::new()
            .name("stream-accept".to_owned())
            .spawn(move || acceptor.run())
            .map_err(TrafficError::Thread)?;
        Ok(Self {
            address,
            flows,
            listener,
            acceptor: Some(acceptor),
        })
    }

    /// Where it listens, the port resolved.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits, at most `timeout`, until every flow arrived.
    pub fn wait_connected(&self, timeout: Duration) -> Result<(), TrafficError> {
        let flows = &self.flows;
        let connected = || flows.open().count() as u32;
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

    /// Counters and socket states now.
    ///
    /// # Errors
    /// A flow that broke, by name; flows that are not there yet.
    pub fn snapshot(&self) -> Result<StreamSnapshot, TrafficError> {
        StreamSnapshot::take(&self.flows)
    }

    /// Bytes read so far, all flows.
    pub fn bytes(&self) -> u64 {
        self.flows.bytes()
    }

    /// Stops accepting, and waits, at most `timeout`, until every flow that is there was read to its end. What was
    /// not is aborted.
    ///
    /// # Errors
    /// A flow that broke, by name. Every thread is joined all the same.
    pub fn finish(mut self, timeout: Duration) -> Result<Finished, TrafficError> {
        self.end(Instant::now() + timeout);
        self.flows.check()?;
        let flows = self
            .flows
            .all()
            .iter()
            .map(|flow| FlowEnd {
                bytes: flow.bytes.get(),
                drained: matches!(flow.end.get(), Some(End::Orderly)),
            })
            .collect();
        Ok(Finished {
            bytes: self.flows.bytes(),
            flows,
            strays: self.flows.strays(),
        })
    }

    fn end(&mut self, deadline: Instant) {
        let Some(acceptor) = self.acceptor.take() else {
            return;
        };
        self.flows.set_stopping();
        let _ = self.listener.shutdown(Shutdown::Both);
        let readers = acceptor.join().unwrap_or_default();
        self.flows
            .wait_until(Some(deadline), || self.flows.all_over());
        self.flows.cut();
        for reader in readers {
            let _ = reader.join();
        }
    }
}

impl Drop for StreamSink {
    fn drop(&mut self) {
        self.end(Instant::now());
    }
}

/// The data path: a read that copies, as an application's would.
fn read_to_end(flows: &Flows, flow: &Flow, mut socket: &Socket, buffer: &mut [u8]) -> End {
    let mut total = 0;
    loop {
        let read = socket.read(buffer);
        if flows.is_cut() {
            return End::Released;
        }
        match read {
            Ok(0) => return End::Orderly,
            Ok(bytes) => {
                total += bytes as u64;
                flow.bytes.publish(total);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return End::Failed(error),
        }
    }
}

/// A flow's thread: reads it to its end, and tells the source how much that was.
fn run_reader(flows: &Flows, flow: &Flow, socket: &Socket, buffer: &mut [u8]) {
    let end = match read_to_end(flows, flow, socket, buffer) {
        End::Orderly => match bid_farewell(socket, flow.bytes.get()) {
            Ok(()) => End::Orderly,
            Err(error) => End::Failed(error),
        },
        other => other,
    };
    flows.end(flow, end);
}

/// The stream ended in order, and so may the connection: no reset any more.
fn bid_farewell(mut socket: &Socket, bytes: u64) -> io::Result<()> {
    socket.write_all(&bytes.to_be_bytes())?;
    socket.set_linger(None)?;
    socket.shutdown(Shutdown::Write)
}
