//! What a load is: the same options are given to both of its ends.

use std::time::Duration;

mod validate;

/// Most connections or flows of one load.
pub const MAX_STREAMS: u32 = 1024;
/// Largest message, request or response in bytes.
pub const MAX_MESSAGE: u32 = 1 << 20;
/// Most requests outstanding on one connection.
pub const MAX_DEPTH: u32 = 1024;

/// What is run between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Workload {
    /// The client writes, the server reads, as fast as it goes.
    TcpStream = 1,
    /// Both write and read at once, on each connection.
    TcpBidirectional = 2,
    /// Requests and responses on connections that stay.
    TcpRr = 3,
    /// A connection for each request and response.
    TcpCrr = 4,
    /// Datagrams from client to server, as fast as it goes or at a rate.
    UdpStream = 5,
    /// Requests and responses in datagrams, either of which may be lost.
    UdpRr = 6,
}

impl Workload {
    /// Every workload.
    pub const ALL: [Self; 6] = [
        Self::TcpStream,
        Self::TcpBidirectional,
        Self::TcpRr,
        Self::TcpCrr,
        Self::UdpStream,
        Self::UdpRr,
    ];

    /// As plans and commands write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TcpStream => "tcp-stream",
            Self::TcpBidirectional => "tcp-bidirectional",
            Self::TcpRr => "tcp-rr",
            Self::TcpCrr => "tcp-crr",
            Self::UdpStream => "udp-stream",
            Self::UdpRr => "udp-rr",
        }
    }

    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
    }

    /// Whether it goes over UDP.
    pub const fn is_udp(self) -> bool {
        matches!(self, Self::UdpStream | Self::UdpRr)
    }

    /// Whether it is made of requests and responses, and so has latencies.
    pub const fn is_request_response(self) -> bool {
        matches!(self, Self::TcpRr | Self::TcpCrr | Self::UdpRr)
    }
}

/// How fast a load goes where it is not as fast as possible.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Streams: bits of messages per second and flow. TCP is paced by the kernel (`SO_MAX_PACING_RATE`), datagrams by
    /// their sending thread; what a delay of more than 10 ms kept back is not made up for.
    BitsPerSecond(u64),
    /// Request/response: requests per second and flow, by a schedule. A latency counts from when its request was due,
    /// not from when it could be sent, so that a path that stalls is not spared the requests it held up.
    RequestsPerSecond(f64),
}

/// What ends a load by itself; without one it runs until it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// So long after the start.
    Time(Duration),
    /// Streams: so many bytes, all flows together.
    Bytes(u64),
    /// So many transactions, or datagrams of a stream, all flows together.
    Transactions(u64),
}

/// How the sending side hands data to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// The kernel copies it.
    Copy,
    /// The kernel sends from our pages (`MSG_ZEROCOPY`) where it can.
    ZeroCopy,
}

/// What the receiving side does with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receiving {
    /// Has it copied, as an application would.
    Copy,
    /// Has the kernel throw it away uncopied (`MSG_TRUNC`); of datagrams the first bytes are looked at.
    Discard,
}

/// How threads wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// They sleep until the kernel wakes them.
    Sleep,
    /// They ask again and again, and the device is polled where it can be (`SO_BUSY_POLL`): a core for each thread.
    Spin,
}

/// UDP segmentation offload, each end apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segmentation {
    /// The sender hands over many datagrams as one (`UDP_SEGMENT`).
    pub send: bool,
    /// The receiver takes many datagrams as one (`UDP_GRO`).
    pub receive: bool,
}

/// A load. [`Options::new`] gives each workload's defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// What is run.
    pub workload: Workload,
    /// Connections or flows at once, 1 to [`MAX_STREAMS`].
    pub streams: u32,
    /// Bytes of a stream's message, or of a request, 1 to [`MAX_MESSAGE`]. Over UDP 16 to 65507.
    pub request: u32,
    /// Bytes of a response, in the same range; streams have none.
    pub response: u32,
    /// Threads at each end; `None` is what measured best ([`Options::threads`]).
    pub threads: Option<u32>,
    /// `SO_SNDBUF` and `SO_RCVBUF` in bytes, on both ends; `None` is the kernel's autotuning.
    pub socket_buffer: Option<u32>,
    /// Whether a TCP write leaves at once (`TCP_NODELAY`). A stream without it sends full segments only
    /// (`TCP_CORK`), whatever the size of its messages.
    pub nodelay: bool,
    /// TCP congestion control by the kernel's name, on both ends; `None` is the kernel's default.
    pub congestion: Option<String>,
    /// How fast; `None` is as fast as possible.
    pub rate: Option<Rate>,
    /// Requests outstanding on each connection, 1 to [`MAX_DEPTH`].
    pub depth: u32,
    /// How the sending side of a TCP stream hands over data.
    pub sending: Sending,
    /// What the receiving side of a stream does with data.
    pub receiving: Receiving,
    /// UDP segmentation offload.
    pub segmentation: Segmentation,
    /// How threads wait.
    pub waiting: Waiting,
    /// DSCP of every packet, 0 to 63; `None` leaves it alone.
    pub dscp: Option<u8>,
    /// Request/response: time between a response and the request that follows it.
    pub think_time: Duration,
    /// UDP request/response: how long a response may take. What comes later is counted, and is no latency.
    pub reply_timeout: Duration,
    /// What ends the load by itself.
    pub limit: Option<Limit>,
    /// What tells this load's flows from others'.
    pub secret: [u8; 16],
}

impl Options {
    /// A workload as it is usually run: one flow, as fast as possible.
    pub fn new(workload: Workload, secret: [u8; 16]) -> Self {
        let (request, response) = match workload {
            Workload::TcpStream | Workload::TcpBidirectional => (128 << 10, 0),
            Workload::UdpStream => (1_400, 0),
            Workload::TcpRr | Workload::TcpCrr => (1, 1),
            Workload::UdpRr => (16, 16),
        };
        Self {
            workload,
            streams: 1,
            request,
            response,
            threads: None,
            socket_buffer: None,
            nodelay: workload.is_request_response(),
            congestion: None,
            rate: None,
            depth: 1,
            sending: Sending::Copy,
            receiving: Receiving::Copy,
            segmentation: Segmentation::default(),
            waiting: Waiting::Sleep,
            dscp: None,
            think_time: Duration::ZERO,
            reply_timeout: Duration::from_millis(200),
            limit: None,
            secret,
        }
    }

    /// Threads at each end, given the processors that the calling thread may use (docs/loads.md has the measurements):
    /// a TCP stream's writer or reader wants its own as long as these are few; those who ask and answer want some that
    /// have several flows each, so that not every answer is a wake-up; datagrams flow as fast as processors are.
    pub fn threads(&self) -> u32 {
        let cpus = wirecost_sys::process::allowed_cpus().map_or(1, |cpus| cpus.len().max(1) as u32);
        let (flows, usual) = match self.workload {
            Workload::TcpStream => (self.streams, MANY_STREAMS.max(cpus)),
            // Its two directions are two flows to us.
            Workload::TcpBidirectional => (self.streams * 2, MANY_STREAMS.max(cpus)),
            Workload::TcpRr | Workload::UdpRr => {
                let shared = self.streams.div_ceil(FLOWS_EACH).max(2);
                (self.streams, shared.min(SOME.max(cpus)))
            }
            Workload::TcpCrr => (self.streams, SOME.max(cpus)),
            Workload::UdpStream => (self.streams, cpus),
        };
        self.threads.unwrap_or(usual).min(flows)
    }
}

/// Halves of TCP streams up to which each has a thread of its own.
const MANY_STREAMS: u32 = 64;
/// Flows of requests and responses that a thread has, where there are two threads at least,
const FLOWS_EACH: u32 = 8;
/// and so many at most.
const SOME: u32 = 8;
