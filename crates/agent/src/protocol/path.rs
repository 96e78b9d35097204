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

/// Rate and time limits for the probes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Datagrams per second, above 0.
    pub datagrams_per_second: f64,
    /// Bytes of IP packets per second, above 0.
    pub bytes_per_second: f64,
    /// Whether the first answer may take seconds; a probe of a host that does not answer then takes longer, too.
    pub far: bool,
    /// Time limit of the survey, not counting round trips; flows without an outcome are then undecided.
    pub most: Duration,
}

impl Limits {
    /// Upper bound on the duration of a survey, whatever the round trip.
    pub fn longest(&self) -> Duration {
        self.most.saturating_add(LONGEST_EXTENSION)
    }
}

/// One direction of a path: both ends, and the port and secret of the far responder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathDirection {
    /// The sending host, and the source address of its probes.
    pub from: PathEnd,
    /// The host at the far end.
    pub to: PathEnd,
    /// UDP port of the far responder.
    pub port: u16,
    /// Secret of both responders of the check.
    pub secret: Secret,
}

impl PathDirection {
    /// Address and port of the far responder.
    pub fn target(&self) -> SocketAddr {
        SocketAddr::new(self.to.address, self.port)
    }
}

/// An order to survey one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SurveyOrder {
    /// The path, in this direction.
    pub way: PathDirection,
    /// MTU that the path should carry, bytes; `None`: that of the sender's device or route.
    pub expect: Option<u32>,
    /// Number of flows, at least 1, each from a port that the kernel picks in `net.ipv4.ip_local_port_range`, which is
    /// also the range for the source ports of its tunnels (include/net/udp.h, `udp_flow_src_port`). Where the tunnel
    /// with the destination port has a range of its own, ports are from that range, and the flows are at most as many
    /// as its ports.
    pub flows: u32,
    /// Rate and time limits.
    pub limits: Limits,
    /// Whether to count only the loss of small datagrams.
    pub count: bool,
}

/// Result of the kernel's search for the neighbour (next hop) of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NeighbourSearch {
    /// The kernel was not searching for it.
    Known,
    /// It answered during the wait.
    Found,
    /// Nobody answers for this address.
    Missing(IpAddr),
}

/// An order to locate the loss of a size on one flow of the last survey.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocateOrder {
    /// The path, in this direction.
    pub way: PathDirection,
    /// Number of the flow, from 0.
    pub flow: u32,
    /// Packet size that is lost, bytes.
    pub failing: u32,
}

/// An order to trace a path hop by hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceOrder {
    /// The sending host.
    pub from: PathEnd,
    /// The far end.
    pub to: PathEnd,
    /// Port and secret of the far responder, and the number of a flow of the last survey, from 0; `None`: a closed port
    /// answers.
    pub responder: Option<(u16, Secret, u32)>,
    /// Packet sizes to try in addition to likely ones, bytes: what the path carries, and what this host sends.
    pub sizes: Vec<u32>,
}

/// An order to check a path over TCP to an open port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TcpOrder {
    /// The sending host.
    pub from: PathEnd,
    /// The far end.
    pub to: PathEnd,
    /// TCP port at the far end.
    pub port: u16,
    /// MTU that the path should carry, bytes; `None`: that of the sender's device or route.
    pub expect: Option<u32>,
    /// Rate limit, bytes per second.
    pub bytes_per_second: f64,
}

/// An order to check a path from one side only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneSidedOrder {
    /// The sending host.
    pub from: PathEnd,
    /// The far end, where no agent runs.
    pub to: PathEnd,
    /// MTU that the path should carry, bytes; `None`: that of the sender's device or route.
    pub expect: Option<u32>,
    /// Rate and time limits.
    pub limits: Limits,
}

/// Requests about the path between two existing hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PathRequest {
    /// Starts the responder of this host, in place of an earlier one; answered with [`PathReply::Responding`].
    Respond {
        /// Address to bind; port 0 for any port.
        address: SocketAddr,
        /// Secret of the probes.
        secret: Secret,
    },
    /// Surveys one direction; answered with [`PathReply::Path`].
    Survey(SurveyOrder),
    /// Waits for the end of the kernel's search for the neighbour (next hop) of packets; answered with
    /// [`PathReply::Neighbour`].
    AwaitNeighbour {
        /// Source address of the packets.
        from: IpAddr,
        /// Destination address.
        to: IpAddr,
    },
    /// Starts a server for short TCP streams, on any port of an address; answered with [`PathReply::Listening`].
    Listen {
        /// Address to bind.
        address: IpAddr,
        /// Secret of the streams.
        secret: Secret,
    },
    /// Sends a short TCP stream; answered with [`PathReply::Streamed`].
    Stream {
        /// Both ends; the port is that of the far end's [`PathReply::Listening`].
        way: PathDirection,
        /// Packet size of full segments, bytes of IP.
        size: u32,
        /// Rate limit, bytes per second.
        bytes_per_second: f64,
    },
    /// Counts packets with a wrong checksum since the first responder was started; answered with
    /// [`PathReply::BadChecksums`].
    BadChecksums,
    /// Finds out which TCP segments pass; answered with [`PathReply::Segments`].
    Segments {
        /// Both ends, as in [`PathRequest::Stream`].
        way: PathDirection,
        /// Packet size of the largest segments to try, bytes of IP.
        size: u32,
        /// Whether to search for a smaller size where `size` does not pass.
        smaller: bool,
        /// Rate limit, bytes per second.
        bytes_per_second: f64,
    },
    /// Returns what has arrived for the responder since its start or the last such request; answered with
    /// [`PathReply::Arrivals`].
    Arrivals,
    /// Lets the sockets of the last survey answer probes, in place of the responder; answered with
    /// [`super::Reply::Done`].
    AnswerOnFlows {
        /// Secret of the probes.
        secret: Secret,
    },
    /// Surveys the path back to a host behind address translation, in place of the responder; answered with
    /// [`PathReply::Path`].
    SurveyMapped {
        /// Both ends; the port is that of the responder that was started here.
        way: PathDirection,
        /// Translated addresses of the other host's flows, as they were seen here.
        to: Vec<SocketAddr>,
        /// Rate and time limits.
        limits: Limits,
    },
    /// Lists the rules of the host's firewall that drop packets; answered with [`PathReply::Rules`].
    Rules,
    /// Locates the loss of a size; answered with [`PathReply::Located`].
    Locate(LocateOrder),
    /// Binds all sockets with a link-local address to this device; answered with [`PathReply::OnLink`].
    OnLink {
        /// Name of the device.
        device: String,
        /// The address; `None`: the link-local address of the device.
        address: Option<IpAddr>,
    },
    /// Looks up the largest IP packet that this host sends to an address unfragmented; answered with
    /// [`PathReply::Sends`].
    Sends {
        /// Source address.
        from: IpAddr,
        /// Destination address.
        to: IpAddr,
    },
    /// Traces a path hop by hop; answered with [`PathReply::Traced`].
    Trace(TraceOrder),
    /// Checks a path over TCP to an open port; answered with [`PathReply::Tcp`].
    Tcp(TcpOrder),
    /// Checks a path from one side only; answered with [`PathReply::OneSided`].
    OneSided(OneSidedOrder),
    /// Starts to read the host's device stack in the background; answered with [`super::Reply::Done`].
    Gather {
        /// Name of the host in the document.
        host: String,
    },
    /// Waits for the device stack; answered with [`PathReply::Stack`].
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

/// The address and way in which a responder receives probes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Responding {
    /// Through a socket of its own.
    At(SocketAddr),
    /// Through a packet socket, on a port that is in use on this host, by a live tunnel for example.
    Tapped(SocketAddr),
    /// Not at all: the port is in use, and no packet socket can receive its datagrams; the text says why.
    Taken(String),
}

/// Replies to [`PathRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum PathReply {
    /// How the responder receives probes.
    Responding(Responding),
    /// Report of a survey.
    Path(PathReport),
    /// Result of the search for a neighbour.
    Neighbour(NeighbourSearch),
    /// Packets with a wrong checksum, IPv4 and IPv6 together, in the host's namespace.
    BadChecksums {
        /// UDP datagrams.
        udp: u64,
        /// TCP segments.
        tcp: u64,
    },
    /// TCP segments that pass and that fail.
    Segments(Segments),
    /// What arrived at the host's device for the responder's port, before its firewall.
    Arrivals {
        /// Number of probes; `None`: packet sockets are not permitted.
        probes: Option<u32>,
        /// Source address of each flow's probes, by flow.
        sources: Vec<SocketAddr>,
    },
    /// Firewall rules that drop packets.
    Rules(Vec<DropRule>),
    /// Address of the server for streams.
    Listening(SocketAddr),
    /// Result of a stream.
    Streamed(Stream),
    /// The routers between which the size is lost; `None`: a packet of this size arrived after all.
    Located(Option<LossLocation>),
    /// The link-local address in use; `None`: the device does not have it, or does not exist.
    OnLink(Option<IpAddr>),
    /// Size of the packet, bytes.
    Sends(u32),
    /// The hops, by distance.
    Traced(Vec<HopReport>),
    /// Report of a check over TCP.
    Tcp(TcpReport),
    /// Report of a check from one side.
    OneSided(OneSidedReport),
    /// The host's device stack, a [`wirecost_audit::HostStack`] as JSON: that document omits absent fields, which this
    /// protocol's encoding cannot.
    Stack(String),
}
