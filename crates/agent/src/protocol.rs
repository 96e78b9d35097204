//! What a controller asks and what an agent answers: one answer to each request, in order.

mod host;
mod loads;
mod path;
mod refusal;
mod transfer;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

pub use host::{BuiltSwitch, HostWay, Joined, LeftSettings, OwnAddress, PathDevice, ProofResult};
pub use loads::{
    CountingStart, EndPart, EndedLoad, HostNetns, LoadEnd, Measured, MeasuredEnd, Part, PartOrder,
};
pub use path::{
    Limits, LocateOrder, NeighbourSearch, OneSidedOrder, PathDirection, PathReply, PathRequest,
    Responding, SurveyOrder, TcpOrder, TraceOrder,
};
pub use refusal::{Refusal, Stage};
use serde::{Deserialize, Serialize};
pub use transfer::{TransferOrder, TransferReceived, TransferReply, TransferRequest, TransferSent};
use wirecost_model::line::LineRelease;
use wirecost_model::load::Address;
use wirecost_model::offload::Offload;
use wirecost_model::record::Environment;
use wirecost_model::sample::{DeviceState, SeenFrame};
use wirecost_model::vary::Setting;
pub use wirecost_netbuild::{EndSecret, HostSpec, Side};
pub use wirecost_probe::message::Secret;
pub use wirecost_probe::{LOCATING, TRACING};

/// Version of this protocol. Both ends must have the same: what is not self-describing cannot be
/// half understood.
pub const VERSION: u32 = 12;

/// From the controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Always first, and the same in every version.
    Hello {
        /// The controller's [`VERSION`].
        version: u32,
    },
    /// Build, first step: namespaces and settings. With [`HostSpec::own_underlay`], after [`Request::Join`]: the host's
    /// processes stay where they are, and its agent leaves for a network namespace of its own.
    Prepare(Box<HostSpec>),
    /// Build, second step, host a only: the wire to the other host, and OVN's databases where the network has some.
    Wire {
        /// `joined_at` of the other host's [`Reply::Prepared`].
        peer: u32,
    },
    /// Build, third step: everything else, and the responder that acknowledges proofs.
    Build {
        /// What the proofs' datagrams have to know; both hosts of a lab have the same.
        secret: Secret,
        /// As of [`Reply::Wired`].
        ovn: Option<PathBuf>,
    },
    /// Instead of building: this host as it is, at an address of its own, with the responder that acknowledges proofs.
    Join {
        /// Which host of the run it is.
        side: Side,
        /// Measured packets go to it and leave with it.
        address: IpAddr,
        /// The other host's.
        peer: IpAddr,
        /// As of [`Request::Build`].
        secret: Secret,
    },
    /// The device of [`Request::Join`] as it is now.
    Device,
    /// After [`Request::Join`]: the devices that packets to the other host pass on this host.
    Way,
    /// Undoes what journals say was left changed by processes that are gone.
    UndoLeft,
    /// Removes the tunnel over a host's own network, so that another one may take its place at once.
    RemoveTunnel,
    /// Guest MTU and offloads for the next cell.
    Adapt {
        /// Bytes.
        guest_mtu: u32,
        /// On every device of the path.
        offload: Offload,
    },
    /// Has the device with the line send as fast as it can, until [`Request::SetLine`] or the next [`Request::Adapt`]. Packets that
    /// wait for the line are lost.
    LiftLine,
    /// Puts the line back as [`Request::Adapt`] had set it.
    SetLine,
    /// Applies settings after the last [`Request::Adapt`]; if one fails, all are undone. Settings of other hosts are
    /// ignored.
    ApplySettings(Vec<Setting>),
    /// Undoes all applied settings. What is still applied when the input closes is undone then.
    Undo,
    /// Begins to watch the underlay for datagrams of proofs.
    Watch,
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
        /// Whether no smaller size will do, where a router or this host's own device says what passes.
        exact: bool,
    },
    /// Opens the serving ends of loads on this host, and gives up every load that was there before; answered with
    /// their addresses. Each is bound to its [`LoadEnd::address`].
    OpenServers(Vec<LoadEnd>),
    /// Opens the asking or sending ends of loads on this host and connects each to its [`LoadEnd::address`], still
    /// silent.
    OpenClients(Vec<LoadEnd>),
    /// All clients on this host begin together; none is fine.
    Start,
    /// Counts from now, or after a warm-up, the host and every end on it; what was counted before is forgotten. Answered
    /// when it has begun.
    Begin(CountingStart),
    /// Waits for the given time, or until every client on this host has reached its own limit. Answered with what
    /// came since [`Request::Begin`], or since the part before.
    Part(PartOrder),
    /// Answered with what came from [`Request::Begin`] to the end of the last part, which may be after the loads.
    Total,
    /// Ends all clients on this host together. What is under way is read to its end. Answered with [`Reply::Ended`].
    StopClients,
    /// Ends all servers on this host, after the clients of them ended. Answered with [`Reply::Ended`].
    StopServers,
    /// Describes the host.
    Describe,
    /// Tells the host's own addresses.
    Addresses,
    /// Tells the address that packets to another would leave with.
    SourceTowards(IpAddr),
    /// Tells which machine this is.
    Machine,
    /// About the path between two hosts that are used as they are.
    Path(Box<PathRequest>),
    /// About a TCP transfer between two hosts of a lab.
    Transfer(Box<TransferRequest>),
}

impl Request {
    /// Whether it takes loads that are open for granted.
    pub(crate) fn is_about_loads(&self) -> bool {
        matches!(
            self,
            Self::OpenClients(_)
                | Self::Start
                | Self::Begin(_)
                | Self::Part(_)
                | Self::Total
                | Self::StopClients
                | Self::StopServers
        )
    }

    /// What a host is doing while it has not answered, for messages: "host a ended while ...".
    pub fn doing(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "starting",
            Self::Prepare(_) => "making its network namespaces",
            Self::Wire { .. } => "wiring the two hosts",
            Self::Build { .. } => "building its network",
            Self::Join { .. } => "opening the responder at its address",
            Self::Device => "reading its device",
            Self::Way => "listing the devices of the path",
            Self::RemoveTunnel => "removing its tunnel",
            Self::UndoLeft => "undoing what was left changed",
            Self::Adapt { .. } => "setting the guest MTU and the offloads",
            Self::LiftLine => "lifting the line from the underlay",
            Self::SetLine => "putting the line back on the underlay",
            Self::ApplySettings(_) => "applying the settings of a level",
            Self::Undo => "undoing the settings of a level",
            Self::Watch => "starting the capture on the underlay",
            Self::Watched { .. } => "reading the capture of the underlay",
            Self::Prove { .. } => "proving the path",
            Self::OpenServers(_) => "opening the receiving side of the load",
            Self::OpenClients(_) => "connecting the sending side of the load",
            Self::Start => "starting the load",
            Self::Begin(_) => "beginning to count",
            Self::Part(_) => "counting",
            Self::Total => "reporting its counters",
            Self::StopClients => "ending the load",
            Self::StopServers => "ending the receiving side of the load",
            Self::Describe => "describing the machine",
            Self::Addresses => "listing its addresses",
            Self::SourceTowards(_) => "looking up a route",
            Self::Machine => "reading its boot id",
            Self::Path(request) => request.doing(),
            Self::Transfer(request) => request.doing(),
        }
    }
}

/// From the agent. The first two are the same in every version: two ends that differ must be able to say so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello {
        /// The agent's [`VERSION`].
        version: u32,
        /// The agent's process id on its host.
        pid: u32,
    },
    /// The request failed; the agent goes on.
    Failed(Refusal),
    /// Done; no result.
    Done,
    /// To [`Request::Prepare`].
    Prepared {
        /// A process or thread in the namespace that the wire to the other host ends in.
        joined_at: u32,
    },
    /// To [`Request::Wire`].
    Wired {
        /// The socket of OVN's databases, where the network has some: for processes of this machine.
        ovn: Option<PathBuf>,
    },
    /// To [`Request::Build`].
    Built {
        /// Where the responder listens, by guest.
        responders: Vec<SocketAddr>,
        /// Thread ids of threads inside the guests' namespaces, by guest, on the agent's host.
        guest_tids: Vec<u32>,
        /// The host's Open vSwitch, where it has one.
        switch: Option<BuiltSwitch>,
        /// False where what the host receives should have been steered to its cores and could not be.
        steered: bool,
        /// How the host's line lets packets out, where its network has one.
        line: Option<LineRelease>,
    },
    /// To [`Request::Join`].
    Joined(Box<Joined>),
    /// To [`Request::Way`].
    Way(Box<HostWay>),
    /// To [`Request::UndoLeft`].
    Undone(LeftSettings),
    /// To [`Request::Adapt`], [`Request::ApplySettings`] and [`Request::Device`]: as read back.
    Devices(Vec<DeviceState>),
    /// To [`Request::Watched`]; `None`: no such datagram was seen.
    Seen(Option<SeenFrame>),
    /// To [`Request::Prove`].
    Proof(ProofResult),
    /// To [`Request::OpenServers`]: in the order of the request.
    Listening(Vec<Address>),
    /// To [`Request::Total`].
    Measured(Box<Measured>),
    /// To [`Request::Describe`].
    Description(Box<Environment>),
    /// To [`Request::Part`].
    Part(Box<Part>),
    /// To [`Request::StopClients`] and [`Request::StopServers`]: each of these ends on this host.
    Ended(Vec<EndedLoad>),
    /// To [`Request::Machine`]: the kernel's boot_id, the same in every namespace and container of one machine.
    Machine(String),
    /// To [`Request::Addresses`].
    Addresses(Vec<OwnAddress>),
    /// To [`Request::SourceTowards`].
    Source(IpAddr),
    /// To [`Request::Path`].
    Path(Box<PathReply>),
    /// To [`Request::Transfer`].
    Transfer(Box<TransferReply>),
}
