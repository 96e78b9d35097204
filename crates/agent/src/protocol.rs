//! Requests of a controller and replies of an agent: one reply to each request, in order.

mod host;
mod loads;
mod path;
mod refusal;
mod transfer;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

pub use host::{
    BuiltSwitch, ElsewhereJournal, HostPath, Joined, LeftSettings, OwnAddress, PathDevice,
    ProofResult,
};
pub use loads::{
    CountingStart, EndPart, EndedLoad, HostNetns, LoadEnd, Measured, MeasuredEnd, PartOrder,
    WindowPart,
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
use wirecost_model::sample::{CapturedFrame, DeviceState};
use wirecost_model::vary::Setting;
pub use wirecost_netbuild::{EndSecret, HostSpec, LinkSpeed, Side};
pub use wirecost_probe::message::Secret;
pub use wirecost_probe::{LOCATING, TRACING};

/// Version of this protocol. Both ends must have the same: the messages are not self-describing, so another version
/// cannot be decoded in part.
pub const VERSION: u32 = 15;
/// What each guest adds to the time limit of [`Request::Prove`], at both ends.
pub const PROOF_PER_GUEST: Duration = Duration::from_millis(100);

/// A request from the controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Always the first request, and encoded the same in every version.
    Hello {
        /// The controller's [`VERSION`].
        version: u32,
    },
    /// Build, step 1: namespaces and settings. With [`HostSpec::existing_underlay`], after [`Request::Join`]: the agent
    /// moves to a network namespace of its own; the host's other processes stay where they are.
    Prepare(Box<HostSpec>),
    /// Build, step 2, host a only: the links between the two hosts, and OVN's databases where the network uses OVN.
    Wire {
        /// `joined_at` of the other host's [`Reply::Prepared`].
        peer: u32,
    },
    /// Build, step 3: everything else, and the responder for proofs.
    Build {
        /// Secret of the proofs' datagrams, the same on both hosts of a lab.
        secret: Secret,
        /// `ovn` of [`Reply::Wired`].
        ovn: Option<PathBuf>,
    },
    /// Instead of building: uses this host as it is, at one of its addresses, and starts the responder for proofs.
    Join {
        /// Whether this is host a or b of the run.
        side: Side,
        /// This host's address: source and destination of measured packets.
        address: IpAddr,
        /// The other host's address.
        peer: IpAddr,
        /// Secret of the proofs, as in [`Request::Build`].
        secret: Secret,
    },
    /// Reads the device of [`Request::Join`].
    Device,
    /// After [`Request::Join`]: lists the devices of this host that packets to the other host pass.
    #[serde(rename = "Way")]
    PathDevices,
    /// Undoes settings that earlier processes left changed, by their journals.
    UndoLeft,
    /// Removes the tunnel over a host's own network, so that another one can replace it at once.
    RemoveTunnel,
    /// Sets guest MTU and offloads for the next cell.
    Adapt {
        /// MTU of the guests, bytes.
        guest_mtu: u32,
        /// Offloads of every device of the path.
        offload: Offload,
    },
    /// Lets the device with the line send without the rate limit, until [`Request::SetLine`] or the next
    /// [`Request::Adapt`]. Packets that wait for the line are lost.
    LiftLine,
    /// Restores the line as [`Request::Adapt`] had set it.
    SetLine,
    /// Applies settings after the last [`Request::Adapt`]; if one fails, all are undone. Settings for other hosts are
    /// ignored.
    ApplySettings(Vec<Setting>),
    /// Undoes all applied settings. Settings that are still applied when the input closes are undone then.
    Undo,
    /// Starts a capture on the underlay for datagrams of proofs.
    StartCapture,
    /// Ends the capture, and returns the full-size datagram that it shows.
    ReadCapture {
        /// The guest's MTU, bytes: the size of the datagram to look for.
        size: u32,
    },
    /// Proves, from each guest of this host, that the path carries datagrams of exactly `size` bytes.
    Prove {
        /// Addresses of the responders in the other host's guests, by guest number.
        targets: Vec<SocketAddr>,
        /// Size of the IP datagram, bytes.
        size: u32,
        /// Whether a smaller size is a failure even where a router or this host's device reports the size that passes.
        exact: bool,
    },
    /// Opens server ends of loads on this host, after dropping every open load. Each is bound to its
    /// [`LoadEnd::address`]. Answered with [`Reply::Listening`].
    OpenServers(Vec<LoadEnd>),
    /// Opens client ends of loads on this host and connects each to its [`LoadEnd::address`]. They do not send yet.
    OpenClients(Vec<LoadEnd>),
    /// Starts all clients on this host together; there may be none. Where counting has begun before, the host is
    /// counted from now.
    Start,
    /// Begins to count the host and every end on it, now or after a warm-up; earlier counts are dropped. Answered when
    /// counting has begun.
    Begin(CountingStart),
    /// Waits for the given time, or until every client on this host has reached its own limit. Answered with the counts
    /// since [`Request::Begin`] or the last part.
    Part(PartOrder),
    /// Answered with the counts from [`Request::Begin`] to the end of the last part; the loads may have ended.
    Total,
    /// Ends all clients on this host together, and reads outstanding data to its end. Answered with [`Reply::Ended`].
    StopClients,
    /// Ends all servers on this host, after their clients have ended. Answered with [`Reply::Ended`].
    StopServers,
    /// Describes the machine and its sysctls.
    Describe,
    /// Lists the host's own addresses.
    Addresses,
    /// Looks up the source address of packets to another address.
    SourceTowards(IpAddr),
    /// Identifies the machine.
    Machine,
    /// A request about the path between two hosts that are used as they are.
    Path(Box<PathRequest>),
    /// A request about a TCP transfer between two hosts of a lab.
    Transfer(Box<TransferRequest>),
}

impl Request {
    /// Whether the request needs open loads.
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

    /// What the agent is doing until it replies, for messages: "host a ended while ...".
    pub fn doing(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "starting",
            Self::Prepare(_) => "making its network namespaces",
            Self::Wire { .. } => "wiring the two hosts",
            Self::Build { .. } => "building its network",
            Self::Join { .. } => "opening the responder at its address",
            Self::Device => "reading its device",
            Self::PathDevices => "listing the devices of the path",
            Self::RemoveTunnel => "removing its tunnel",
            Self::UndoLeft => "undoing what was left changed",
            Self::Adapt { .. } => "setting the guest MTU and the offloads",
            Self::LiftLine => "lifting the line from the underlay",
            Self::SetLine => "putting the line back on the underlay",
            Self::ApplySettings(_) => "applying the settings of a level",
            Self::Undo => "undoing the settings of a level",
            Self::StartCapture => "starting the capture on the underlay",
            Self::ReadCapture { .. } => "reading the capture of the underlay",
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

/// A reply from the agent. The first two are encoded the same in every version, so that two versions can report that
/// they differ.
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
    /// The request was executed; there is no result.
    Done,
    /// To [`Request::Prepare`].
    Prepared {
        /// Id of a process or thread in the namespace where the links to the other host end.
        joined_at: u32,
    },
    /// To [`Request::Wire`].
    Wired {
        /// Socket of OVN's databases, for processes of this machine, where the network uses OVN.
        ovn: Option<PathBuf>,
    },
    /// To [`Request::Build`].
    Built {
        /// Addresses of the responder, by guest.
        responders: Vec<SocketAddr>,
        /// Ids of threads in the guests' namespaces, by guest, as the agent's host numbers them.
        guest_tids: Vec<u32>,
        /// The host's Open vSwitch, where it has one.
        switch: Option<BuiltSwitch>,
        /// `false` where received packets should be steered to the host's cores and could not be.
        steered: bool,
        /// How the host's line releases packets, where its network has a line.
        line: Option<LineRelease>,
    },
    /// To [`Request::Join`].
    Joined(Box<Joined>),
    /// To [`Request::PathDevices`].
    #[serde(rename = "Way")]
    PathDevices(Box<HostPath>),
    /// To [`Request::UndoLeft`].
    Undone(LeftSettings),
    /// To [`Request::Adapt`], [`Request::ApplySettings`] and [`Request::Device`]: the devices as read back.
    Devices(Vec<DeviceState>),
    /// To [`Request::ReadCapture`]; `None`: the capture has no such datagram.
    Captured(Option<CapturedFrame>),
    /// To [`Request::Prove`].
    Proof(ProofResult),
    /// To [`Request::OpenServers`]: the servers' addresses, in the order of the request.
    Listening(Vec<Address>),
    /// To [`Request::Total`].
    Measured(Box<Measured>),
    /// To [`Request::Describe`].
    Description(Box<Environment>),
    /// To [`Request::Part`].
    Part(Box<WindowPart>),
    /// To [`Request::StopClients`] and [`Request::StopServers`]: the ends of loads that were ended.
    Ended(Vec<EndedLoad>),
    /// To [`Request::Machine`]: the kernel's `boot_id`, the same in every namespace and container of a machine.
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
