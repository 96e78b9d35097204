//! What a load is: the same options are given to both of its ends.

use std::net::IpAddr;
use std::time::Duration;

use wirecost_model::load::{Direction, Load};
pub use wirecost_model::load::{
    Limit, MAX_DEPTH, MAX_MESSAGE, MAX_STREAMS, Rate, Receiving, Segmentation, Sending, Waiting,
    Workload,
};

use crate::error::TrafficError;

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
    /// (`TCP_CORK`), whatever the size of its messages, where its buffer has room for them ([`Options::corks`]), and
    /// large ones are written as whole packets of the kernel's segmentation offload.
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
    /// The address that a client's packets leave with; `None` leaves it to the kernel. Of no meaning to a server.
    pub source: Option<IpAddr>,
    /// What tells this load's flows from others'.
    pub secret: [u8; 16],
    /// For benchmarks and tests: how a thread waits for several connections.
    #[doc(hidden)]
    pub several: Several,
}

/// How a thread that sleeps waits for several connections.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Several {
    /// As measured best.
    #[default]
    Best,
    /// With epoll.
    Epoll,
    /// With a ring, where there can be one, however few they are.
    Ring,
}

impl Options {
    /// A workload as it is usually run: one flow, as fast as possible.
    pub fn new(workload: Workload, secret: [u8; 16]) -> Self {
        Self::of(&Load::new(workload), secret)
    }

    /// A load of a plan or a command; who is client and who is server is its caller's to know.
    pub fn of(load: &Load, secret: [u8; 16]) -> Self {
        Self {
            workload: load.workload,
            streams: load.streams,
            request: load.request,
            response: load.response,
            threads: load.threads,
            socket_buffer: load.socket_buffer,
            nodelay: load.nodelay,
            congestion: load.congestion.clone(),
            rate: load.rate,
            depth: load.depth,
            sending: load.sending,
            receiving: load.receiving,
            segmentation: load.segmentation,
            waiting: load.waiting,
            dscp: load.dscp,
            think_time: load.think_time,
            reply_timeout: load.reply_timeout,
            limit: load.limit,
            source: None,
            secret,
            several: Several::Best,
        }
    }

    /// The same without the secret.
    fn load(&self) -> Load {
        Load {
            workload: self.workload,
            direction: Direction::default(),
            streams: self.streams,
            request: self.request,
            response: self.response,
            threads: self.threads,
            socket_buffer: self.socket_buffer,
            nodelay: self.nodelay,
            congestion: self.congestion.clone(),
            rate: self.rate,
            depth: self.depth,
            sending: self.sending,
            receiving: self.receiving,
            segmentation: self.segmentation,
            waiting: self.waiting,
            dscp: self.dscp,
            think_time: self.think_time,
            reply_timeout: self.reply_timeout,
            limit: self.limit,
        }
    }

    /// Refuses what no load can have ([`Load::faults`]); where there are several such things, all of them.
    pub fn validate(&self) -> Result<(), TrafficError> {
        let wrong: Vec<String> = self
            .load()
            .faults()
            .into_iter()
            .map(|fault| fault.message)
            .collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(TrafficError::Options(wrong.join("; ")))
        }
    }

    /// Whether a stream's writes wait for full segments (`TCP_CORK`). Not where a buffer is asked for that holds few of
    /// them: a corked segment that the buffer has no room to fill leaves after 200 ms only (tcp(7)). Such a stream has
    /// the kernel's usual ways (RFC 896).
    pub fn corks(&self) -> bool {
        !self.nodelay
            && self
                .socket_buffer
                .is_none_or(|bytes| bytes >= CORKED_BUFFER)
    }

    /// Whether a stream's messages may each leave as a segment of its own.
    pub(crate) fn has_small_segments(&self) -> bool {
        self.nodelay && self.request < SMALL
    }

    /// Whether a stream's rate is kept by its thread, a message at a time. What waits for the kernel's pacing is joined to
    /// full segments (tcp_sendmsg_locked in net/ipv4/tcp.c), `TCP_NODELAY` or not.
    pub(crate) fn paces_messages(&self) -> bool {
        self.has_small_segments() && matches!(self.rate, Some(Rate::BitsPerSecond(_)))
    }

    /// Bytes that one read of a stream takes at most: what has arrived, up to 128 KiB whatever the size of messages; with
    /// `nodelay` a message, as other generators and most applications read (docs/loads.md has the measurements).
    pub(crate) fn read_at_once(&self) -> usize {
        if self.nodelay {
            self.request.max(self.response) as usize
        } else {
            READ_BUFFER
        }
    }

    /// Threads at each end, given the processors that the calling thread may use (docs/loads.md has the measurements):
    /// a few TCP streams' writers and readers want one each; whatever else comes in flows shares one for each
    /// processor, and requests and responses fewer as long as these have several flows each, so that not every answer
    /// is a wake-up.
    pub fn threads(&self) -> u32 {
        let cpus = wirecost_sys::process::allowed_cpus().map_or(1, |cpus| cpus.len().max(1) as u32);
        self.threads_on(cpus)
    }

    fn threads_on(&self, cpus: u32) -> u32 {
        // Threads that spin have a processor each, or keep each other from it.
        let few = match self.waiting {
            Waiting::Sleep => FEW_STREAMS.max(cpus),
            Waiting::Spin => cpus,
        };
        let streams = |halves| (halves, if halves <= few { halves } else { cpus });
        let (flows, usual) = match self.workload {
            Workload::TcpStream => streams(self.streams),
            // Its two directions are two flows to us.
            Workload::TcpBidirectional => streams(self.streams * 2),
            Workload::TcpRr | Workload::UdpRr => {
                let shared = self.streams.div_ceil(FLOWS_EACH).max(2);
                (self.streams, shared.min(cpus))
            }
            Workload::TcpCrr | Workload::UdpStream => (self.streams, cpus),
        };
        self.threads.unwrap_or(usual).min(flows)
    }
}

/// Messages below this may be segments of their own, bytes.
const SMALL: u32 = 16 << 10;

/// Smallest read buffer in bytes, and what a stream reads at once (docs/loads.md has the measurements).
pub(crate) const READ_BUFFER: usize = 128 << 10;

/// Bytes that one call throws away at most where a stream's data are discarded.
pub(crate) const DISCARDED_AT_ONCE: usize = 1 << 20;

/// From this size on a buffer holds several segments of any MTU, bytes.
const CORKED_BUFFER: u32 = 128 * 1024;

/// Halves of TCP streams up to which each has a thread of its own.
const FEW_STREAMS: u32 = 32;
/// Flows of requests and responses that a thread has, where there are two threads at least.
const FLOWS_EACH: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::DATAGRAM_BYTES;
    use wirecost_model::load::DATAGRAM_HEADER;

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let mut options = Options::new(Workload::TcpCrr, [0; 16]);
        options.streams = 0;
        options.depth = 2;
        options.dscp = Some(64);
        let text = options.validate().unwrap_err().to_string();
        insta::assert_snapshot!(text, @"the load's options: streams is 0: 1 to 1024; depth is 2, but tcp-crr has at most one request outstanding on a connection; dscp is 64: 0 to 63");
    }

    #[test]
    fn threads_are_as_many_as_docs_loads_says() {
        let threads = |workload, streams, cpus| {
            let mut options = Options::new(workload, [0; 16]);
            options.streams = streams;
            options.threads_on(cpus)
        };
        let of = |workload, streams| [1, 2, 64].map(|cpus| threads(workload, streams, cpus));
        assert_eq!(of(Workload::TcpStream, 32), [32; 3]);
        assert_eq!(of(Workload::TcpStream, 64), [1, 2, 64]);
        assert_eq!(of(Workload::TcpBidirectional, 16), [32; 3]);
        assert_eq!(of(Workload::TcpBidirectional, 40), [1, 2, 64]);
        for workload in [Workload::TcpRr, Workload::UdpRr] {
            assert_eq!(of(workload, 1), [1; 3]);
            assert_eq!(of(workload, 4), [1, 2, 2]);
            assert_eq!(of(workload, 64), [1, 2, 8]);
            assert_eq!(of(workload, 1024), [1, 2, 64]);
        }
        assert_eq!(of(Workload::TcpCrr, 4), [1, 2, 4]);
        assert_eq!(of(Workload::UdpStream, 64), [1, 2, 64]);
        let spinning = Options {
            streams: 4,
            waiting: Waiting::Spin,
            ..Options::new(Workload::TcpStream, [0; 16])
        };
        assert_eq!([1, 2, 64].map(|cpus| spinning.threads_on(cpus)), [1, 2, 4]);
        let options = Options {
            threads: Some(9),
            ..Options::new(Workload::TcpRr, [0; 16])
        };
        assert_eq!(options.threads_on(2), 1, "one flow");
    }

    #[test]
    fn every_option_of_a_load_is_one_of_the_engine() {
        let mut load = Load::new(Workload::UdpRr);
        load.depth = 7;
        load.reply_timeout = Duration::from_millis(3);
        assert_eq!(Options::of(&load, [0; 16]).load(), load);
        assert_eq!(DATAGRAM_BYTES as u32, DATAGRAM_HEADER);
    }
}
