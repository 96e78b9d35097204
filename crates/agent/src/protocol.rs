//! What a controller asks and what an agent answers: one answer to each request, in order.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use wirecost_model::end_window::{End, EndWindow};
use wirecost_model::load::Load;
use wirecost_model::offload::Offload;
use wirecost_model::record::Environment;
use wirecost_model::sample::{DeviceState, SeenFrame};
use wirecost_model::usage::HostUsage;
pub use wirecost_netbuild::{HostSpec, Side};

/// Version of this protocol. Both ends must have the same: what is not self-describing cannot be
/// half understood.
pub const VERSION: u32 = 3;

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
    /// Opens the serving ends of loads on this host, and gives up every load that was there before; answered with
    /// their addresses. Each is bound to its [`LoadEnd::address`].
    OpenServers(Vec<LoadEnd>),
    /// Opens the asking or sending ends of loads on this host and connects each to its [`LoadEnd::address`], still
    /// silent.
    OpenClients(Vec<LoadEnd>),
    /// All clients on this host begin together; none is fine.
    Start,
    /// Counts over one window, the host and every end on it; answered after it.
    Measure(Window),
    /// Ends all clients on this host together. What is under way is read to its end.
    StopClients,
    /// Ends all servers on this host, after the clients of them ended.
    StopServers,
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
            Self::OpenServers(_) => "opening the receiving side of the load",
            Self::OpenClients(_) => "connecting the sending side of the load",
            Self::Start => "starting the load",
            Self::Measure(_) => "measuring",
            Self::StopClients => "ending the load",
            Self::StopServers => "ending the receiving side of the load",
            Self::Describe => "describing the machine",
        }
    }
}

/// Where on a host something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// In the network namespace of the agent's own process.
    Host,
    /// In the guest of that number, from 0.
    Guest(u32),
}

/// One end of a load: both ends are given the same but for the address and the place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadEnd {
    /// What figures and errors call the load; no two on a host at the same place and end have the same.
    pub name: String,
    /// Where it runs.
    pub place: Place,
    /// Of a server the address to bind, port 0 for any; of a client the server's.
    pub address: SocketAddr,
    /// What is run.
    pub load: Load,
    /// Opens the flows of this load in this sample and no others.
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
    /// To [`Request::OpenServers`]: in the order of the request.
    Listening(Vec<SocketAddr>),
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
    /// Each end of a load on this host.
    pub loads: Vec<MeasuredEnd>,
}

/// One end of a load over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredEnd {
    /// [`LoadEnd::name`].
    pub name: String,
    /// [`LoadEnd::place`].
    pub place: Place,
    /// Which end it is.
    pub end: End,
    /// What it counted.
    pub window: EndWindow,
}
