//! Requests about the path between two existing hosts.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wirecost_check::{
    DropRule, HopReport, LossLocation, OneSidedReport, PathEnd, PathReport, Segments, Stream,
    TcpReport,
};
use wirecost_pmtu::LONGEST_EXTENSION;
use wirecost_probe::message::Secret;

/// How fast probes of one direction may leave, and how much in all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Datagrams per second, above 0.
    pub datagrams_per_second: f64,
    /// Bytes of IP packets per second, above 0.
    pub bytes_per_second: f64,
    /// Whether the first answer may take seconds. It is waited for longer then where nobody is there.
    pub far: bool,
    /// Time, in addition to round trips, after which flows without an outcome are undecided.
    pub most: Duration,
}

impl Limits {
    /// How long it takes at most, however long round trips are.
    pub fn longest(&self) -> Duration {
        self.most.saturating_add(LONGEST_EXTENSION)
    }
}

/// One direction of a path: both ends, the responder's port and secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathDirection {
    /// The host that is asked, and the address that its probes leave with.
    pub from: PathEnd,
    /// The host at the other end.
    pub to: PathEnd,
    /// The port of its responder.
    pub port: u16,
    /// The secret of both responders of the check.
    pub secret: Secret,
}

impl PathDirection {
    /// The far responder.
    pub fn target(&self) -> SocketAddr {
        SocketAddr::new(self.to.address, self.port)
    }
}

/// What a direction is to be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyOrder {
    /// The path and its direction.
    pub way: PathDirection,
    /// What it should carry, bytes; `None`: what the sender's device or route takes.
    pub expect: Option<u32>,
    /// Flows to ask, at least 1, each from a port that the kernel picks of `net.ipv4.ip_local_port_range`, from which
    /// it also takes the source ports of its own tunnels (net/core, `udp_flow_src_port`); where the tunnel that has the
    /// destination port has a range of its own, of that one, and no more than it has ports.
    pub flows: u32,
    /// How fast.
    pub limits: Limits,
    /// Whether it is only counted how much is lost, with small datagrams.
    pub count: bool,
}

/// What came of the kernel's search for the neighbour that packets go to first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NeighbourSearch {
    /// It was not being searched for.
    Known,
    /// It answered at last.
    Found,
    /// Nobody answers for this address.
    Missing(IpAddr),
}

/// Where a size is lost, on one flow of the last survey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocateOrder {
    /// The path and its direction.
    pub way: PathDirection,
    /// The flow, from 0.
    pub flow: u32,
    /// The size that is lost, bytes.
    pub failing: u32,
}

/// A path hop by hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceOrder {
    /// The host that is asked.
    pub from: PathEnd,
    /// The other end.
    pub to: PathEnd,
    /// The responder there, its secret, and the flow of the last survey, from 0; `None`: a closed port answers.
    pub responder: Option<(u16, Secret, u32)>,
    /// What the path carries, and what this host sends, bytes: sizes that are tried beside likely ones.
    pub sizes: Vec<u32>,
}

/// A proof over TCP to an open port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TcpOrder {
    /// The host that is asked.
    pub from: PathEnd,
    /// The other end.
    pub to: PathEnd,
    /// The port there.
    pub port: u16,
    /// What the path should carry, bytes; `None`: what the sender's device or route takes.
    pub expect: Option<u32>,
    /// How fast, bytes per second.
    pub bytes_per_second: f64,
}

/// What one side is to find out by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneSidedOrder {
    /// The host that is asked.
    pub from: PathEnd,
    /// The other end, where there is no agent.
    pub to: PathEnd,
    /// What the path should carry, bytes; `None`: what the sender's device or route takes.
    pub expect: Option<u32>,
    /// How fast.
    pub limits: Limits,
}

/// Questions about paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PathRequest {
    /// Starts the responder of this host, in place of the one before; answered with [`PathReply::Responding`].
    Respond {
        /// Where; port 0 is any.
        address: SocketAddr,
        /// What probes have to know.
        secret: Secret,
    },
    /// Asks every flow in one direction; answered with [`PathReply::Path`].
    Survey(SurveyOrder),
    /// Waits for the end of the kernel's search for the neighbour that packets go to first; answered with
    /// [`PathReply::Neighbour`].
    AwaitNeighbour {
        /// The address that they leave with.
        from: IpAddr,
        /// The destination.
        to: IpAddr,
    },
    /// Listens for short TCP streams, on any port of an address; answered with [`PathReply::Listening`].
    Listen {
        /// Where.
        address: IpAddr,
        /// What streams have to know.
        secret: Secret,
    },
    /// Sends a short TCP stream; answered with [`PathReply::Streamed`].
    Stream {
        /// Between whom; the port is that of the far end's [`PathReply::Listening`].
        way: PathDirection,
        /// Full segments are IP packets of this size, bytes.
        size: u32,
        /// How fast, bytes per second.
        bytes_per_second: f64,
    },
    /// Tells how many datagrams with a wrong checksum came since the responder was started; answered with
    /// [`PathReply::BadChecksums`].
    BadChecksums,
    /// Asks which TCP segments pass; answered with [`PathReply::Segments`].
    Segments {
        /// As of [`PathRequest::Stream`].
        way: PathDirection,
        /// The largest of interest: IP packets of this size, bytes.
        size: u32,
        /// Whether a smaller one is looked for where that one does not pass.
        smaller: bool,
        /// How fast, bytes per second.
        bytes_per_second: f64,
    },
    /// Tells what has arrived for the responder since it was started or asked last; answered with
    /// [`PathReply::Arrivals`].
    Arrivals,
    /// Has the flows of the last survey answer probes, in place of the responder; answered with [`super::Reply::Done`].
    AnswerOnFlows {
        /// What probes have to know.
        secret: Secret,
    },
    /// Asks the way back to a host behind address translation, in place of the responder; answered with
    /// [`PathReply::Path`].
    SurveyMapped {
        /// Between whom; the port is that of the responder that was started here.
        way: PathDirection,
        /// Where the other host's flows were seen to come from.
        to: Vec<SocketAddr>,
        /// How fast.
        limits: Limits,
    },
    /// Tells which rules of the host's own filter drop packets; answered with [`PathReply::Rules`].
    Rules,
    /// Looks where a size is lost; answered with [`PathReply::Located`].
    Locate(LocateOrder),
    /// Has every socket at a link-local address be on this device; answered with [`PathReply::OnLink`].
    OnLink {
        /// The device.
        device: String,
        /// The address; `None`: the device's own link-local one.
        address: Option<IpAddr>,
    },
    /// Tells the largest IP packet that this host sends to an address in one piece; answered with
    /// [`PathReply::Sends`].
    Sends {
        /// The address that it leaves with.
        from: IpAddr,
        /// The destination.
        to: IpAddr,
    },
    /// Traces a path; answered with [`PathReply::Traced`].
    Trace(TraceOrder),
    /// Proves a path over TCP; answered with [`PathReply::Tcp`].
    Tcp(TcpOrder),
    /// Asks a path from one side; answered with [`PathReply::OneSided`].
    OneSided(OneSidedOrder),
    /// Starts to read the device stack in the background; answered with [`super::Reply::Done`].
    Gather {
        /// What the host is to be called.
        host: String,
    },
    /// Waits for what was read; answered with [`PathReply::Stack`].
    Gathered,
}

impl PathRequest {
    pub(super) fn doing(&self) -> &'static str {
        match self {
            Self::Respond { .. } => "opening its responder",
            Self::Survey(_) => "probing the path",
            Self::AwaitNeighbour { .. } => "waiting for a neighbour",
            Self::Listen { .. } => "listening for a stream",
            Self::Stream { .. } => "sending a stream",
            Self::BadChecksums | Self::Arrivals => "telling what it counted",
            Self::Segments { .. } => "sending segments",
            Self::AnswerOnFlows { .. } => "answering on its flows",
            Self::SurveyMapped { .. } => "probing the way back",
            Self::Rules => "listing its filter's rules",
            Self::Locate(_) => "looking for the place of a loss",
            Self::OnLink { .. } => "looking for a link-local address",
            Self::Sends { .. } => "looking up a route's MTU",
            Self::Trace(_) => "tracing the path",
            Self::Tcp(_) => "connecting to the port",
            Self::OneSided(_) => "probing the path from one side",
            Self::Gather { .. } | Self::Gathered => "reading its devices",
        }
    }
}

/// Where a responder answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Responding {
    /// On a port of its own.
    At(SocketAddr),
    /// On a port that is in use on this host, by a live tunnel for example, through a packet socket.
    Tapped(SocketAddr),
    /// Not at all: the port is in use, and this is why no packet socket can receive its datagrams.
    Taken(String),
}

/// Answers about paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PathReply {
    /// Where the responder answers.
    Responding(Responding),
    /// What came of a survey.
    Path(PathReport),
    /// What came of the search for a neighbour.
    Neighbour(NeighbourSearch),
    /// Over both versions of IP, in the host's namespace.
    BadChecksums {
        /// Of UDP.
        udp: u64,
        /// Of TCP.
        tcp: u64,
    },
    /// Which segments pass.
    Segments(Segments),
    /// What arrived at the host's device for the responder's port, before its own filter.
    Arrivals {
        /// Probes; `None`: a packet socket is not allowed.
        probes: Option<u32>,
        /// Where each flow's came from, by flow.
        sources: Vec<SocketAddr>,
    },
    /// Rules that drop packets.
    Rules(Vec<DropRule>),
    /// Where streams are listened for.
    Listening(SocketAddr),
    /// What came of a stream.
    Streamed(Stream),
    /// Between which routers, and where it was not found, why.
    Located(Result<LossLocation, String>),
    /// The link-local address that is used; `None`: the device does not have it, or is not there.
    OnLink(Option<IpAddr>),
    /// Bytes.
    Sends(u32),
    /// The hops by distance.
    Traced(Vec<HopReport>),
    /// What TCP showed.
    Tcp(TcpReport),
    /// What one side knows.
    OneSided(OneSidedReport),
    /// The host's device stack, a [`wirecost_audit::HostStack`] as JSON: that document leaves out what is not there,
    /// which this protocol cannot.
    Stack(String),
}
