//! Errors of a load: each names its object and, where there is one, a remedy.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use wirecost_model::load::Address;
use wirecost_sys::socket::CongestionError;

/// A load that could not be set up, or failed.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// Invalid options.
    #[error("the load's options: {0}")]
    Options(String),
    /// A limit of this host; see [`crate::Finding`].
    #[error("{0}")]
    Host(String),
    /// A virtual machine could not be started.
    #[error("a virtual machine: {0}")]
    Machine(#[from] wirecost_qemu::QemuError),
    /// A socket could not be made or set up.
    #[error("{what}: {source}")]
    Socket {
        /// The operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The requested congestion control is missing, or not permitted.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// The kernel capped the socket buffer.
    #[error(
        "{option} of {asked} bytes was capped at {limit}: raise sysctl {sysctl} to at least {asked}, \
         or ask for a smaller buffer"
    )]
    BufferCapped {
        /// `SO_SNDBUF` or `SO_RCVBUF`.
        option: &'static str,
        /// The sysctl that limits it.
        sysctl: &'static str,
        /// Bytes asked for.
        asked: u32,
        /// Bytes given.
        limit: u32,
    },
    /// The server could not listen on its address.
    #[error("listening on {address}: {source}{}", in_use(source))]
    Listen {
        /// The address asked for.
        address: Address,
        /// The kernel's error.
        source: io::Error,
    },
    /// The client's source address could not be bound.
    #[error("sending from {}: {source}", address.ip())]
    BindSource {
        /// The address asked for.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// A flow could not be connected.
    #[error("connecting flow {flow} to {target}: {source}")]
    Connect {
        /// The server's address.
        target: Address,
        /// The flow, from 0.
        flow: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// The peer accepted the connection but did not answer as a server of this program.
    #[error("flow {flow} reached {target}, which did not answer as a Wirecost server: {source}")]
    NoAnswer {
        /// The server's address.
        target: Address,
        /// The flow, from 0.
        flow: u32,
        /// What was wrong with the answer.
        source: io::Error,
    },
    /// The server refused the flow.
    #[error("the server at {target} refused flow {flow}: {refusal}")]
    Refused {
        /// The server's address.
        target: Address,
        /// The flow, from 0.
        flow: u32,
        /// The reason.
        refusal: Refusal,
    },
    /// Flows that were not connected in time.
    #[error(
        "{connected} of {wanted} flows arrived within {} s ({strays} connections of others were dropped)",
        after.as_secs_f64()
    )]
    NotConnected {
        /// Flows connected.
        connected: u32,
        /// Flows expected.
        wanted: u32,
        /// Connections dropped because they did not belong to this load.
        strays: u32,
        /// The time-out.
        after: Duration,
    },
    /// The peer of a flow, or the path to it, failed.
    #[error("lost contact with the peer of flow {flow} after {bytes} bytes: {source}")]
    PeerVanished {
        /// The flow, from 0.
        flow: u32,
        /// Bytes sent at the client, or read at the server.
        bytes: u64,
        /// The kernel's error.
        source: io::Error,
    },
    /// No full segment of a connection was acknowledged, though its handshake was.
    #[error(
        "flow {flow}: the connection opened, and segments of {mss} bytes are lost: none was acknowledged in {:.1} s, and \
         {retransmits} were retransmitted. A path-MTU black hole, or a filter: `wirecost check` between the two hosts finds \
         the size that passes", silent.as_secs_f64()
    )]
    SegmentsLost {
        /// The flow, from 0.
        flow: u32,
        /// Sending MSS, bytes.
        mss: u32,
        /// Retransmitted segments.
        retransmits: u32,
        /// Time since the last acknowledgement.
        silent: Duration,
    },
    /// A flow failed for a reason on this host.
    #[error("flow {flow} broke after {bytes} bytes: {source}")]
    FlowBroke {
        /// The flow, from 0.
        flow: u32,
        /// Bytes sent at the client, or read at the server.
        bytes: u64,
        /// The kernel's error.
        source: io::Error,
    },
    /// The peer of a flow violated the protocol, or its data are not what was written.
    #[error("the peer of flow {flow}, after {bytes} bytes: {source}")]
    Protocol {
        /// The flow, from 0.
        flow: u32,
        /// Bytes sent at the client, or read at the server.
        bytes: u64,
        /// What is wrong.
        source: io::Error,
    },
    /// The memory that a migration moved could not be compared with that at the destination in time.
    #[error(
        "flow {flow}: the memory that it moved was not compared with that at the destination within {:.1} s: use fewer or \
         smaller machines, or end what else the hosts run", after.as_secs_f64()
    )]
    NotCompared {
        /// The flow, from 0.
        flow: u32,
        /// The time-out.
        after: Duration,
    },
    /// A flow ended before the end of its window.
    #[error("flow {flow} ended within the window, after {bytes} bytes")]
    EndedEarly {
        /// The flow, from 0.
        flow: u32,
        /// Bytes of the flow since the start.
        bytes: u64,
    },
    /// Two snapshots of different loads.
    #[error("snapshots of {before} and of {after} flows cannot be compared")]
    Mismatch {
        /// Flows in the earlier snapshot.
        before: usize,
        /// Flows in the later snapshot.
        after: usize,
    },
    /// A socket's state could not be read.
    #[error("reading {what} of flow {flow}: {source}")]
    Snapshot {
        /// The flow, from 0.
        flow: u32,
        /// What was read.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// No answer over UDP, where it is not known whether the datagrams arrived.
    #[error("flow {flow}: no answer from {target} within {:.1} s: is the other end up, and its port open?", after.as_secs_f64())]
    NoDatagram {
        /// The server's address.
        target: SocketAddr,
        /// The flow, from 0.
        flow: u32,
        /// The time-out.
        after: Duration,
    },
    /// The load's limit was not reached in time.
    #[error("the load was not over within {} s", after.as_secs_f64())]
    NotOver {
        /// The time-out.
        after: Duration,
    },
    /// A path cannot be used for the load, or did not keep what was written.
    #[error("{path}: {source}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong.
        source: io::Error,
    },
    /// A job of storage at a path failed.
    #[error("{path}, job {job}, after {bytes} bytes: {source}")]
    PathJob {
        /// The path.
        path: String,
        /// The job, from 0.
        job: u32,
        /// Bytes that the job had read and written.
        bytes: u64,
        /// What is wrong.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("starting a thread: {0}")]
    Thread(io::Error),
}

impl TrafficError {
    /// The error of a failed flow: of its peer or the path, or of this host.
    pub(crate) fn of_flow(flow: u32, bytes: u64, source: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput, OutOfMemory, PermissionDenied};
        if source.kind() == InvalidData {
            return Self::Protocol {
                flow,
                bytes,
                source,
            };
        }
        if matches!(source.kind(), InvalidInput | OutOfMemory | PermissionDenied) {
            Self::FlowBroke {
                flow,
                bytes,
                source,
            }
        } else {
            Self::PeerVanished {
                flow,
                bytes,
                source,
            }
        }
    }

    /// Whether the peer reset the connection, as a client does with flows that are not drained in time.
    pub fn is_reset(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        let reset = |source: &io::Error| matches!(source.kind(), BrokenPipe | ConnectionReset);
        matches!(self, Self::PeerVanished { source, .. } if reset(source))
    }
}

/// Why a server refuses a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The two ends are of different versions.
    #[error("it speaks version {theirs} of the load's protocol, this end version {ours}")]
    Version {
        /// Version of this end.
        ours: u16,
        /// Version of the server.
        theirs: u16,
    },
    /// The server belongs to another run: its secret differs.
    #[error("it belongs to another run (the secrets differ)")]
    Secret,
    /// The number of flows differs, or the flow is connected already.
    #[error("it expects another number of flows, or has this one already")]
    Flow,
    /// The two ends have different loads.
    #[error("it was given another workload, or other message sizes")]
    Load,
}
/// Advice where the port is in use, else empty.
fn in_use(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::AddrInUse {
        ": another program has the port, choose another or leave it out"
    } else {
        ""
    }
}
