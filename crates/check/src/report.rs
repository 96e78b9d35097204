//! Agents' reports on one direction of a path: plain data.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wirecost_audit::EgressRoute;
use wirecost_pmtu::{
    CannotTellReason, Limit, Located, Outcome, PathPoint, SurveyResult, likely_sizes,
};

use crate::observations::{Observations, Segments, SenderFragmentation, TAG_BYTES};

/// Most flows of a direction; each has a socket.
pub const MAX_FLOWS: u32 = 1024;

/// One end of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathEnd {
    /// The host's name.
    pub host: String,
    /// The host's data-plane address.
    pub address: IpAddr,
}

/// The result of a flow's probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowKind {
    /// The flow's path MTU is known; this limits it.
    #[serde(rename = "told")]
    Known(Limit),
    /// No answer, not even to small packets.
    Dead,
    /// The probes did not determine the path MTU.
    Undecided,
}

impl FlowKind {
    /// PMTU black hole: larger packets are dropped without ICMP.
    pub const BLACK_HOLE: Self = Self::Known(Limit::BlackHole);

    /// Name of the kind in JSON documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Known(limit) => limit.word(),
            Self::Dead => "dead",
            Self::Undecided => "undecided",
        }
    }

    /// Whether the flow's path MTU is known.
    pub const fn is_known(self) -> bool {
        matches!(self, Self::Known(_))
    }
}

/// The kind of an outcome. A flow that was answered at least once is undecided, not dead.
pub(crate) fn kind_of(outcome: &Outcome) -> FlowKind {
    match outcome {
        Outcome::CannotTell {
            reason: CannotTellReason::NoAnswer,
            at_least: None,
        } => FlowKind::Dead,
        Outcome::CannotTell { .. } => FlowKind::Undecided,
        other => FlowKind::Known(other.limit().unwrap_or(Limit::NotSought)),
    }
}

/// The result of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Source port of the flow; 0 for echo requests and TCP.
    pub port: u16,
    /// The largest IP packet that is known to pass, bytes; `None`: none is.
    pub mtu: Option<u32>,
    /// Why no larger packet passes.
    pub kind: FlowKind,
    /// Datagrams sent on the flow.
    pub probes: u32,
    /// Seconds from the start of the direction's probes until the flow's result was known.
    pub seconds: f64,
}

/// The two places on the path between which packets of a size are lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossLocation {
    /// The last router that large packets reach, with its distance in hops; `None`: the sender itself.
    pub after: Option<(u8, IpAddr)>,
    /// The first router that large packets do not reach, with its distance in hops; `None`: the destination.
    pub before: Option<(u8, IpAddr)>,
}

impl From<&Located> for LossLocation {
    fn from(located: &Located) -> Self {
        let router = |place: PathPoint| match place {
            PathPoint::Router { ttl, address } => Some((ttl, address)),
            PathPoint::Sender | PathPoint::Destination => None,
        };
        Self {
            after: router(located.after),
            before: router(located.before),
        }
    }
}

/// The size that a path is required to carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequiredMtu {
    /// The size that the user expects the path to carry, bytes.
    Expected(u32),
    /// MTU of the sender's own device, bytes: programs on the host send packets of that size.
    Device(u32),
    /// MTU of the sender's route, or of IPv6 on its device, bytes, where it is smaller than the device's: the sender
    /// sends no larger packets.
    Route(u32),
}

impl RequiredMtu {
    /// The required size, bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Expected(mtu) | Self::Device(mtu) | Self::Route(mtu) => mtu,
        }
    }
}

/// Result of a short TCP stream, small segments and then full ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// No connection was made, and no error arrived.
    NotConnected,
    /// The connection was refused, by a TCP reset or an ICMP message.
    Refused,
    /// Everything arrived unchanged.
    Passed,
    /// Not even the small segments arrived in time.
    SmallStalled,
    /// The full segments did not arrive in time.
    FullStalled,
    /// The content that arrived differs from what was sent.
    Changed,
}

impl Stream {
    /// Name of the result in JSON documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotConnected => "not-connected",
            Self::Refused => "refused",
            Self::Passed => "passed",
            Self::SmallStalled => "small-stalled",
            Self::FullStalled => "full-stalled",
            Self::Changed => "changed",
        }
    }
}

/// What is known about a direction without answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReachabilityHint {
    /// The sender has no route to the destination.
    NoRoute,
    /// No host on the sender's link answers neighbour requests for this address: the destination, or the next router.
    NoNeighbour(IpAddr),
    /// Another destination port is answered.
    OtherPort(u16),
    /// Echo requests (ICMP) are answered.
    Echo,
}

/// The report on one direction of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// The sending end.
    pub from: PathEnd,
    /// The receiving end.
    pub to: PathEnd,
    /// Destination port of the probes; 0 for echo requests.
    pub port: u16,
    /// The size that the direction must carry.
    #[serde(rename = "wanted")]
    pub required: RequiredMtu,
    /// Results of the flows that were probed.
    pub flows: Vec<FlowReport>,
    /// Where packets of the failing size are lost; `None`: not located.
    #[serde(rename = "stretch")]
    pub loss_location: Option<LossLocation>,
    /// What is known where no flow is answered.
    pub hint: Option<ReachabilityHint>,
    /// The VRF of the sender's address; `None`: it is in none.
    pub vrf: Option<String>,
    /// The route by which packets leave the sender; `None`: not read.
    pub leaving: Option<EgressRoute>,
    /// Datagrams with a wrong UDP checksum that the receiving host's namespace counted during the check.
    pub bad_checksums: u64,
    /// Result of a short TCP stream; `None`: none was sent, as where a size of datagrams fails.
    pub stream: Option<Stream>,
    /// Which sizes of TCP segments pass; `None`: not probed, as only where datagrams or full segments fail.
    pub segments: Option<Segments>,
    /// What ICMP messages and packet sockets showed.
    #[serde(rename = "seen")]
    pub observations: Observations,
    /// The sender's address as the far end sees it, where NAT translates it.
    pub mapped: Option<IpAddr>,
    /// Where the receiver is behind NAT: the translated address that probes were sent to, through mappings that the
    /// receiver's own flows created.
    pub through_mapping: Option<IpAddr>,
    /// How the sender fragments its own packets; `None`: it does not, as far as known.
    #[serde(rename = "cut")]
    pub sender_fragmentation: Option<SenderFragmentation>,
    /// TCP segments with a wrong checksum that the receiving host's namespace counted during the check.
    pub bad_segments: u64,
    /// Duration of the probes, seconds.
    pub seconds: f64,
    /// Datagrams sent.
    pub probes: u32,
    /// Datagrams of passing sizes that were answered or timed out.
    pub awaited: u32,
    /// Those of `awaited` that were not answered: lost on the way there or back.
    pub missing: u32,
    /// The largest numbers of equal-cost paths each of which the flows met, with 95 % and with 99 % probability.
    pub paths_met: (u32, u32),
}

impl PathReport {
    /// The command that shows the sender's route to the other end.
    pub(crate) fn route_command(&self) -> String {
        let vrf = self.vrf.as_ref().map(|vrf| format!(" vrf {vrf}"));
        format!(
            "ip route get {} from {}{}",
            self.to.address,
            self.from.address,
            vrf.unwrap_or_default()
        )
    }

    /// A report with the results of flows only; everything else is empty.
    pub(crate) fn of(
        ends: (PathEnd, PathEnd),
        port: u16,
        required: RequiredMtu,
        flows: Vec<FlowReport>,
    ) -> Self {
        Self {
            from: ends.0,
            to: ends.1,
            port,
            required,
            flows,
            loss_location: None,
            hint: None,
            vrf: None,
            leaving: None,
            bad_checksums: 0,
            stream: None,
            segments: None,
            observations: Observations::default(),
            mapped: None,
            through_mapping: None,
            sender_fragmentation: None,
            bad_segments: 0,
            seconds: 0.0,
            probes: 0,
            awaited: 0,
            missing: 0,
            paths_met: (0, 0),
        }
    }

    /// The report on the result of a survey; `ports` are the flows' source ports.
    pub fn new(
        ends: (PathEnd, PathEnd),
        port: u16,
        required: RequiredMtu,
        result: &SurveyResult,
        ports: &[u16],
    ) -> Self {
        let flows = result.outcomes.iter().map(|answer| FlowReport {
            port: ports.get(answer.flow as usize).copied().unwrap_or(0),
            mtu: answer.outcome.mtu(),
            probes: answer.probes,
            seconds: answer.took.as_secs_f64(),
            kind: kind_of(&answer.outcome),
        });
        Self {
            seconds: result.took.as_secs_f64(),
            probes: result.probes,
            awaited: result.awaited,
            missing: result.missing,
            paths_met: (result.paths_met(0.95), result.paths_met(0.99)),
            ..Self::of(ends, port, required, flows.collect())
        }
    }

    /// A direction in which no packet could leave, because the sender has no route.
    pub fn without_route(
        ends: (PathEnd, PathEnd),
        port: u16,
        required: RequiredMtu,
        flows: u32,
    ) -> Self {
        let dead = FlowReport {
            port: 0,
            mtu: None,
            kind: FlowKind::Dead,
            probes: 0,
            seconds: 0.0,
        };
        Self {
            hint: Some(ReachabilityHint::NoRoute),
            ..Self::of(ends, port, required, vec![dead; flows.max(1) as usize])
        }
    }

    /// Whether no flow got an answer.
    pub fn is_dead(&self) -> bool {
        self.flows.iter().all(|flow| flow.kind == FlowKind::Dead)
    }

    /// The smallest path MTU of the flows with a result, bytes.
    pub fn mtu(&self) -> Option<u32> {
        let decided = self.flows.iter().filter(|flow| flow.kind.is_known());
        decided.filter_map(|flow| flow.mtu).min()
    }

    /// The MTU that hosts should use on this path, bytes: what passes, without the bytes that the receiving device
    /// takes beyond its MTU for a VLAN tag. `back`: the opposite direction, whose report has the receiver's MTU.
    pub fn advised(&self, back: Option<&Self>) -> Option<u32> {
        let mtu = self.mtu()?;
        let device = back.and_then(|back| back.leaving.as_ref()?.device_mtu);
        let slack = |device: u32| (device + 1..=device + TAG_BYTES).contains(&mtu);
        let likely = likely_sizes();
        let usual = mtu.saturating_sub(TAG_BYTES);
        Some(match device.filter(|&device| slack(device)) {
            Some(device) => device,
            // Likely the tag allowance of a router's or switch's port.
            None if likely.contains(&usual) && !likely.contains(&mtu) => usual,
            None => mtu,
        })
    }

    /// Whether large TCP segments of the sender are lost.
    pub fn loses_large_segments(&self) -> bool {
        let black_hole = self.failing().any(|flow| flow.kind == FlowKind::BLACK_HOLE);
        let passes = self.segments.and_then(|segments| segments.passes);
        // The path may treat TCP segments differently from datagrams, either way.
        if let Some(Segments { fails: Some(_), .. }) = self.segments {
            return true;
        }
        // Of several equal-cost paths, the TCP stream may have met a good one.
        let every = self.failing().count() == self.flows.len();
        black_hole && (!every || passes <= self.mtu())
    }

    /// The flows whose path MTU is smaller than required.
    pub fn failing(&self) -> impl Iterator<Item = &FlowReport> {
        let required = self.required.bytes();
        self.flows
            .iter()
            .filter(move |flow| flow.kind.is_known() && flow.mtu.is_none_or(|mtu| mtu < required))
    }
}
