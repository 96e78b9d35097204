//! What can go wrong with a load, with the object and, where there is one, the way out.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use wirecost_sys::socket::CongestionError;

/// A load that could not be set up, or did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// Options that no load can have.
    #[error("the load's options: {0}")]
    Options(String),
    /// What this host does not allow; see [`crate::Finding`].
    #[error("{0}")]
    Host(String),
    /// A socket could not be made or set up.
    #[error("{what}: {source}")]
    Socket {
        /// What was tried.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The wanted congestion control.
    #[error(transparent)]
    Congestion(#[from] CongestionError),
    /// The kernel gave a smaller buffer than the one asked for.
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
    /// The sink's address.
    #[error("listening on {address}: {source}{}", in_use(source))]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The address that a client's packets are to leave with.
    #[error("sending from {}: {source}", address.ip())]
    Source {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A connection that was not made.
    #[error("connecting flow {flow} to {target}: {source}")]
    Connect {
        /// The sink's address.
        target: SocketAddr,
        /// The flow, from 0.
        flow: u32,
        /// What the kernel said.
        source: io::Error,
    },
    /// Somebody listens there but did not answer as a sink does.
    #[error("flow {flow} reached {target}, which did not answer as a Wirecost sink: {source}")]
    NoAnswer {
        /// The sink's address.
        target: SocketAddr,
        /// The flow, from 0.
        flow: u32,
        /// What was read, or why nothing was.
        source: io::Error,
    },
    /// The sink does not take this connection.
    #[error("the sink at {target} refused flow {flow}: {refusal}")]
    Refused {
        /// The sink's address.
        target: SocketAddr,
        /// The flow, from 0.
        flow: u32,
        /// Why.
        refusal: Refusal,
    },
    /// Flows that did not arrive at the sink in time.
    #[error(
        "{connected} of {wanted} flows arrived within {} s ({strays} connections of others were dropped)",
        after.as_secs_f64()
    )]
    NotConnected {
        /// Flows that arrived.
        connected: u32,
        /// Flows expected.
        wanted: u32,
        /// Connections dropped because they were no flow of this load.
        strays: u32,
        /// How long was waited.
        after: Duration,
    },
    /// The other end of a flow went away without ending it.
    #[error("the peer of flow {flow} vanished after {bytes} bytes: {source}")]
    PeerVanished {
        /// The flow, from 0.
        flow: u32,
        /// Bytes written, at the source, or read, at the sink.
        bytes: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// This host cannot carry the flow on.
    #[error("flow {flow} broke after {bytes} bytes: {source}")]
    FlowBroke {
        /// The flow, from 0.
        flow: u32,
        /// Bytes written, at the source, or read, at the sink.
        bytes: u64,
        /// What the kernel said.
        source: io::Error,
    },
    /// A flow that was over before its window was.
    #[error("flow {flow} ended within the window, after {bytes} bytes")]
    EndedEarly {
        /// The flow, from 0.
        flow: u32,
        /// Its bytes in all.
        bytes: u64,
    },
    /// Two snapshots that are not of the same load.
    #[error("snapshots of {before} and of {after} flows cannot be compared")]
    Mismatch {
        /// Flows in the earlier one.
        before: usize,
        /// Flows in the later one.
        after: usize,
    },
    /// A socket's state could not be read.
    #[error("reading {what} of flow {flow}: {source}")]
    Snapshot {
        /// The flow, from 0.
        flow: u32,
        /// What was read.
        what: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// No answer to datagrams, of which it cannot be told whether they arrived.
    #[error("flow {flow}: nobody answered at {target} within {:.1} s: is the other end up, and its port open?", after.as_secs_f64())]
    NoDatagram {
        /// The server's address.
        target: SocketAddr,
        /// The flow, from 0.
        flow: u32,
        /// How long was asked.
        after: Duration,
    },
    /// A limit of bytes or transactions was not reached in time.
    #[error("the load was not over within {} s", after.as_secs_f64())]
    NotOver {
        /// How long was waited.
        after: Duration,
    },
    /// A thread could not be started.
    #[error("starting a thread: {0}")]
    Thread(io::Error),
}

impl TrafficError {
    /// Of a flow that broke: by its peer or the path to it, or by this host's own doing.
    pub(crate) fn of_flow(flow: u32, bytes: u64, source: io::Error) -> Self {
        use io::ErrorKind::{InvalidInput, OutOfMemory, PermissionDenied};
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

    /// Whether the peer gave up the flow, as a client does with what is under way when its time to end is over.
    pub fn is_given_up(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        let reset = |source: &io::Error| matches!(source.kind(), BrokenPipe | ConnectionReset);
        matches!(self, Self::PeerVanished { source, .. } if reset(source))
    }
}

/// Why a sink does not take a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The two ends are of different versions.
    #[error("it speaks version {theirs} of the load's protocol, this end version {ours}")]
    Version {
        /// This end's.
        ours: u16,
        /// The sink's.
        theirs: u16,
    },
    /// It belongs to another run.
    #[error("it belongs to another run (the secrets differ)")]
    Secret,
    /// Its options differ, or the flow is there already.
    #[error("it expects another number of flows, or has this one already")]
    Flow,
    /// The two ends were given different loads.
    #[error("it was given another workload, or other message sizes")]
    Load,
}
/// What to do where somebody else has the port.
fn in_use(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::AddrInUse {
        ": another program has the port, choose another or leave it out"
    } else {
        ""
    }
}
