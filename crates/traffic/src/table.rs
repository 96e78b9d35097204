//! What differs between workloads: one table each, and nothing else.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use socket2::Socket;
use wirecost_sys::socket::{ReceiveBatch, SendBatch};

use crate::load::Load;
use crate::machine::datagrams::CONTROL_BYTES;
use crate::machine::landing::SLACK;
use crate::machine::udp_source::segments;
use crate::machine::{Machine, Room};
use crate::options::{Options, READ_BUFFER, Receiving, Workload};
use crate::server::lobby::Lobby;
use crate::socket::Adopt;
use crate::workload;

/// Machines of one flow.
pub(crate) type Machines = io::Result<Vec<Box<dyn Machine>>>;

/// One workload.
#[derive(Debug)]
pub(crate) struct Table {
    /// Machines for each flow.
    pub(crate) halves: u32,
    /// Whether a machine with a thread of its own may run on a socket that blocks.
    pub(crate) may_block: fn(&Options) -> bool,
    /// How a client's flow is opened.
    pub(crate) opening: Opening,
    /// The machines of a client's flow.
    pub(crate) client: fn(&Load, ClientFlow) -> Machines,
    /// The machines of the server.
    pub(crate) server: Serving,
    /// Whether shutting the socket down is what ends a client's half, which may be waiting in a write.
    pub(crate) shut_to_stop: bool,
    /// How a client's flow is closed once its machines are over: whether the server says that it has ended too.
    pub(crate) closing: Closing,
    /// The buffers of a thread.
    pub(crate) buffers: fn(&Options) -> Buffers,
}

/// How a client's flow is closed.
pub(crate) type Closing = fn(&Load, &ClientFlow, Instant) -> io::Result<bool>;

/// What makes a server thread's machine; it is told the thread's place among all.
pub(crate) type MakeServer = fn(&Load, Entrance, usize) -> io::Result<Box<dyn Machine>>;

/// Where what a server thread serves comes in.
pub(crate) struct Entrance {
    /// The listener, or the thread's own socket on the port.
    pub(crate) socket: Arc<Socket>,
    /// Over TCP the loads on the port, and which of them this is.
    pub(crate) lobby: Option<(Arc<Lobby>, usize)>,
    /// How an accepted connection comes to the load's options, where the listener has not all of them.
    pub(crate) adopt: Option<Adopt>,
}

/// A client's flow.
#[derive(Debug, Clone)]
pub(crate) struct ClientFlow {
    pub(crate) index: u32,
    pub(crate) target: SocketAddr,
    /// The connection or pair of ports that the flow is; where it is many connections, a socket for the last one, which
    /// ends it.
    pub(crate) socket: Arc<Socket>,
}

/// What a flow is to the client's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// A TCP connection that stays; whether this end writes a stream to it.
    Connection {
        /// See [`crate::socket::write_side`].
        streams: bool,
    },
    /// TCP connections that come and go.
    Connections,
    /// A UDP socket.
    Ports,
}

/// Who serves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Serving {
    /// Machines for each connection that is let in.
    Connection(fn(&Load, Arc<Socket>, u32) -> Machines),
    /// A machine for each thread, which takes what comes to a socket: one listener for all of them, or a UDP socket
    /// for each.
    Thread(MakeServer),
}

/// How large a thread's buffers are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Buffers {
    /// For reads over TCP, bytes.
    pub(crate) read: usize,
    /// For datagrams to send: how many messages, of how many bytes.
    pub(crate) send: (usize, usize),
    /// For datagrams to receive, likewise.
    pub(crate) receive: (usize, usize),
}

/// Messages in a batch of datagrams.
pub(crate) const BATCH: usize = 64;
/// Bytes in a batch of datagrams.
const BATCH_BYTES: usize = 512 << 10;
/// What UDP_GRO may hand over as one.
const COALESCED: usize = 64 << 10;

impl Buffers {
    /// Of a TCP workload.
    pub(crate) fn tcp(options: &Options) -> Self {
        Self {
            read: (options.request.max(options.response) as usize).max(READ_BUFFER),
            ..Self::default()
        }
    }

    /// Of a TCP workload whose readers choose where in them a read lands.
    pub(crate) fn tcp_stream(options: &Options) -> Self {
        let usual = Self::tcp(options);
        Self {
            read: usual.read + SLACK,
            ..usual
        }
    }

    /// Of a UDP stream, either end.
    pub(crate) fn udp_stream(options: &Options) -> Self {
        let each = options.request as usize;
        let message = each * segments(options);
        let kept = match (options.segmentation.receive, options.receiving) {
            (true, _) => COALESCED,
            (_, Receiving::Discard) => CONTROL_BYTES,
            // One more than there should be: what is longer is told from what fits.
            (_, Receiving::Copy) => each.max(CONTROL_BYTES) + 1,
        };
        Self {
            read: 0,
            send: (fitting(message), message),
            receive: (fitting(kept), kept),
        }
    }

    /// Of UDP request/response, either end.
    pub(crate) fn udp_rr(options: &Options) -> Self {
        let each = (options.request.max(options.response) as usize).max(CONTROL_BYTES) + 1;
        // More than are outstanding never arrive at once.
        let most = (options.depth as usize).saturating_mul(options.streams as usize);
        let count = fitting(each).min(most.max(1));
        Self {
            read: 0,
            send: (count, each),
            receive: (count, each),
        }
    }
}

fn fitting(each: usize) -> usize {
    (BATCH_BYTES / each).clamp(1, BATCH)
}

impl Table {
    /// The one of a workload.
    pub(crate) fn of(workload: Workload) -> &'static Self {
        match workload {
            Workload::TcpStream => &workload::tcp_stream::TABLE,
            Workload::TcpBidirectional => &workload::tcp_bidirectional::TABLE,
            Workload::TcpRr => &workload::tcp_rr::TABLE,
            Workload::TcpCrr => &workload::tcp_crr::TABLE,
            Workload::UdpStream => &workload::udp_stream::TABLE,
            Workload::UdpRr => &workload::udp_rr::TABLE,
        }
    }

    /// Whether threads serve whatever flow comes, and so see for themselves when all are over.
    pub(crate) fn is_served_by_threads(&self) -> bool {
        matches!(self.server, Serving::Thread(_))
    }

    /// Bytes of a thread's buffers.
    pub(crate) fn room_bytes(&self, options: &Options) -> u64 {
        let buffers = (self.buffers)(options);
        let batch = |(count, size): (usize, usize)| count * size;
        (buffers.read + batch(buffers.send) + batch(buffers.receive)) as u64
    }

    /// A thread's buffers, every page of them there.
    pub(crate) fn room(&self, options: &Options) -> Room {
        let buffers = (self.buffers)(options);
        let mut out = SendBatch::new(buffers.send.0, buffers.send.1);
        if options.workload == Workload::UdpRr {
            for index in 0..out.capacity() {
                out.set_length(index, options.request as usize);
            }
        }
        Room {
            bytes: vec![1; buffers.read].into_boxed_slice(),
            out,
            incoming: ReceiveBatch::new(
                buffers.receive.0,
                buffers.receive.1,
                options.segmentation.receive,
            ),
        }
    }
}
