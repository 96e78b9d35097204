//! What a controller asks and what an agent answers: one answer to each request, in order.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use wirecost_model::offload::Offload;
use wirecost_model::record::Environment;
use wirecost_model::sample::{DeviceState, Interval, SeenFrame, Socket};
use wirecost_model::usage::HostUsage;
pub use wirecost_netbuild::{HostSpec, Side};

/// Version of this protocol. Both ends must have the same: what is not self-describing cannot be
/// half understood.
pub const VERSION: u32 = 2;

/// Marks the datagrams of one proof.
pub type Token = [u8; 16];

/// From the controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Always first, and the same in every version.
    Hello {
        /// The controller's [`VERSION`].
        version: u32,
    },
    /// Build, first step: namespaces and settings.
    Prepare(HostSpec),
    /// Build, second step, host a only: the wire to the host whose agent is process `peer`.
    Wire {
        /// Process id of the other host's agent.
        peer: u32,
    },
    /// Build, third step: everything else, and the responder that acknowledges proofs.
    Build,
    /// Guest MTU and offloads for the next cell.
    Adapt {
        /// Bytes.
        guest_mtu: u32,
        /// On every device of the path.
        offload: Offload,
    },
    /// Begins to watch the underlay for datagrams with this token.
    Watch(Token),
    /// Ends watching and tells what was seen of the full-size datagrams.
    Watched {
        /// The guest's MTU: the size of datagram looked for, bytes.
        size: u32,
    },
    /// Proves from each of this host's guests that the path carries datagrams of exactly `size`.
    Prove {
        /// The responders of the other host's guests, by number.
        targets: Vec<SocketAddr>,
        /// IP datagram size in bytes.
        size: u32,
        /// Marks the datagrams.
        token: Token,
    },
    /// Opens the receiving side of a load in the guest.
    OpenSink(LoadOptions),
    /// Opens the sending side of a load in the guest and connects it, still silent.
    OpenSource {
        /// The sink's address.
        target: SocketAddr,
        /// The same as the sink's.
        options: LoadOptions,
    },
    /// The sending side begins.
    Start,
    /// Counts over one window; answered after it.
    Measure(Window),
    /// Ends the load.
    CloseLoad,
    /// Describes the host.
    Describe,
}

impl Request {
    /// What a host is doing while it has not answered, for messages: "host a ended while ...".
    pub fn doing(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "starting",
            Self::Prepare(_) => "making its network namespaces",
            Self::Wire { .. } => "wiring the two hosts",
            Self::Build => "building its network",
            Self::Adapt { .. } => "setting the guest MTU and the offloads",
            Self::Watch(_) => "beginning to watch the underlay",
            Self::Watched { .. } => "looking at what the underlay showed",
            Self::Prove { .. } => "proving the path",
            Self::OpenSink(_) => "opening the receiving side of the load",
            Self::OpenSource { .. } => "connecting the sending side of the load",
            Self::Start => "starting the load",
            Self::Measure(_) => "measuring",
            Self::CloseLoad => "ending the load",
            Self::Describe => "describing the machine",
        }
    }
}

/// A TCP stream load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadOptions {
    /// What is sent.
    pub stream: wirecost_model::cell::TcpStream,
    /// Opens the connections of this sample and no others.
    pub secret: [u8; 16],
}

/// When to count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Seconds from now to the window's start.
    pub warmup_s: f64,
    /// Length of the window in seconds.
    pub seconds: f64,
    /// Length of the intervals within it, in seconds.
    pub interval_s: f64,
    /// Processes of this run, where this host is to look for foreign load; it costs some
    /// milliseconds before and after the window, so one host of a machine does it.
    pub foreign_to: Option<Vec<u32>>,
}

/// From the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello {
        /// The agent's [`VERSION`].
        version: u32,
        /// The agent's process id on its host.
        pid: u32,
    },
    /// Done, nothing to tell.
    Done,
    /// To [`Request::Build`].
    Built {
        /// Where the responder listens, by guest.
        responders: Vec<SocketAddr>,
        /// Thread ids of threads inside the guests' namespaces, by guest, on the agent's host.
        guest_tids: Vec<u32>,
    },
    /// To [`Request::Adapt`]: as read back.
    Devices(Vec<DeviceState>),
    /// To [`Request::Watched`]; `None`: no such datagram was seen.
    Seen(Option<SeenFrame>),
    /// To [`Request::Prove`].
    Proof(ProofResult),
    /// To [`Request::OpenSink`].
    Listening(SocketAddr),
    /// To [`Request::Measure`].
    Measured(Box<Measured>),
    /// To [`Request::Describe`].
    Description(Box<Environment>),
    /// What was asked could not be done; the agent goes on.
    Failed {
        /// In words, with the step and what to do.
        message: String,
    },
}

/// How a proof went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProofResult {
    /// A datagram of exactly that size was acknowledged.
    pub proven: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Datagrams sent.
    pub probes: u32,
    /// Seconds it took.
    pub seconds: f64,
}

/// One host's counts over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Processors, links, protocols.
    pub usage: HostUsage,
    /// Each connection's bytes within the window and its socket, in the order of the flows.
    pub flows: Vec<(u64, Socket)>,
    /// Seconds between the load's two readings.
    pub seconds: f64,
    /// Figures within the window.
    pub intervals: Vec<Interval>,
}
