//! One direction of a path as an agent reports it: plain data.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wirecost_audit::EgressRoute;
use wirecost_pmtu::{CannotTell, Limit, Located, Outcome, PathPoint, SurveyResult, likely_sizes};

use crate::seen::{Cut, Seen, Segments, TAG_BYTES};

/// One end of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathEnd {
    /// The host's name.
    pub host: String,
    /// Its address.
    pub address: IpAddr,
}

/// The result of a flow's probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowKind {
    /// What it carries, and this is why it carries no more.
    Told(Limit),
    /// No answer, not even to small packets.
    Dead,
    /// The probes do not say.
    Undecided,
}

impl FlowKind {
    /// PMTU black hole: larger packets are dropped without ICMP.
    pub const BLACK_HOLE: Self = Self::Told(Limit::BlackHole);

    /// The word for it in JSON documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Told(limit) => limit.word(),
            Self::Dead => "dead",
            Self::Undecided => "undecided",
        }
    }

    /// Whether this tells what the flow carries.
    pub const fn is_told(self) -> bool {
        matches!(self, Self::Told(_))
    }
}

/// The kind of an outcome. A flow that answered at first is not dead.
pub(crate) fn kind_of(outcome: &Outcome) -> FlowKind {
    match outcome {
        Outcome::CannotTell {
            reason: CannotTell::NoAnswer,
            at_least: None,
        } => FlowKind::Dead,
        Outcome::CannotTell { .. } => FlowKind::Undecided,
        other => FlowKind::Told(other.limit().unwrap_or(Limit::NotSought)),
    }
}

/// One flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Its source port.
    pub port: u16,
    /// The largest packet that is known to pass, bytes; `None`: none is.
    pub mtu: Option<u32>,
    /// Why no larger one does.
    pub kind: FlowKind,
    /// Datagrams sent on it.
    pub probes: u32,
    /// Seconds from the survey's start until its answer was known.
    pub seconds: f64,
}

/// Between which two places a size is lost: in words that a reader can act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossLocation {
    /// The last router that large packets reach, and its distance; `None`: the sender itself.
    pub after: Option<(u8, IpAddr)>,
    /// The first router that they do not; `None`: the destination.
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
    /// What the user expects of it, bytes.
    Expected(u32),
    /// What the sender's own device takes, bytes: the sender's hosts will send as much.
    Device(u32),
    /// What the sender's route, or IPv6 on its device, takes, bytes, which is less than the device does: the sender sends
    /// no more.
    Route(u32),
}

impl RequiredMtu {
    /// Bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Expected(mtu) | Self::Device(mtu) | Self::Route(mtu) => mtu,
        }
    }
}

/// What came of a short TCP stream, small segments and then full ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// No connection was made, and nothing was heard.
    NotConnected,
    /// No connection was made: a reset, or an ICMP message.
    Refused,
    /// Everything arrived as it was sent.
    Passed,
    /// Not even the small ones arrived in time.
    SmallStalled,
    /// The full ones did not arrive in time.
    FullStalled,
    /// Something else arrived than what was sent.
    Changed,
}

impl Stream {
    /// The word for it in JSON documents.
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

/// What is known where nothing passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReachabilityHint {
    /// The sender has no route there.
    NoRoute,
    /// Nobody on the sender's link answers for this address: the destination's, or that of the router on the way.
    NoNeighbour(IpAddr),
    /// Another destination port is answered.
    OtherPort(u16),
    /// Echo requests (ICMP) are answered.
    Echo,
}

/// One direction of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// The sending end.
    pub from: PathEnd,
    /// The receiving end.
    pub to: PathEnd,
    /// Destination port of the probes; 0 for echo requests.
    pub port: u16,
    /// What it has to carry.
    pub wanted: RequiredMtu,
    /// Every flow that was asked.
    pub flows: Vec<FlowReport>,
    /// Where the failing size is lost, if that was looked for and found.
    pub stretch: Option<LossLocation>,
    /// Where nothing passes, what does.
    pub hint: Option<ReachabilityHint>,
    /// The VRF that the sender's address is in.
    pub vrf: Option<String>,
    /// How packets leave the sender, where that was read.
    pub leaving: Option<EgressRoute>,
    /// Datagrams with a wrong UDP checksum that the receiving host's namespace counted meanwhile.
    pub bad_checksums: u64,
    /// What came of a TCP stream, where there was one: with a fault of size there is none.
    pub stream: Option<Stream>,
    /// Which sizes of TCP segments pass, where that was asked: beside a fault of one protocol.
    pub segments: Option<Segments>,
    /// What ICMP messages and packet sockets told.
    pub seen: Seen,
    /// The sender's address as the far end sees it, where it is another: address translation.
    pub mapped: Option<IpAddr>,
    /// Where the receiver is behind address translation, and probes took the mappings that its own flows made: the address
    /// that they were sent to.
    pub through_mapping: Option<IpAddr>,
    /// What this host fragments of what it sends.
    pub cut: Option<Cut>,
    /// Segments with a wrong checksum that the receiving host's namespace counted meanwhile.
    pub bad_segments: u64,
    /// How long it took.
    pub seconds: f64,
    /// Datagrams sent.
    pub probes: u32,
    /// Datagrams of sizes that pass whose answers came, or were waited for in vain.
    pub awaited: u32,
    /// How many of these were not answered.
    pub missing: u32,
    /// The largest numbers of equal paths of which every one was met at 95 and 99 % confidence.
    pub paths_met: (u32, u32),
}

impl PathReport {
    /// What shows the sender's route.
    pub(crate) fn route_command(&self) -> String {
        let vrf = self.vrf.as_ref().map(|vrf| format!(" vrf {vrf}"));
        format!(
            "ip route get {} from {}{}",
            self.to.address,
            self.from.address,
            vrf.unwrap_or_default()
        )
    }

    /// What flows came to, and nothing that is looked for afterwards.
    pub(crate) fn of(
        ends: (PathEnd, PathEnd),
        port: u16,
        wanted: RequiredMtu,
        flows: Vec<FlowReport>,
    ) -> Self {
        Self {
            from: ends.0,
            to: ends.1,
            port,
            wanted,
            flows,
            stretch: None,
            hint: None,
            vrf: None,
            leaving: None,
            bad_checksums: 0,
            stream: None,
            segments: None,
            seen: Seen::default(),
            mapped: None,
            through_mapping: None,
            cut: None,
            bad_segments: 0,
            seconds: 0.0,
            probes: 0,
            awaited: 0,
            missing: 0,
            paths_met: (0, 0),
        }
    }

    /// From a survey's answers and the flows' source ports.
    pub fn new(
        ends: (PathEnd, PathEnd),
        port: u16,
        wanted: RequiredMtu,
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
            ..Self::of(ends, port, wanted, flows.collect())
        }
    }

    /// A direction in which no packet could leave, because the sender has no route.
    pub fn without_route(
        ends: (PathEnd, PathEnd),
        port: u16,
        wanted: RequiredMtu,
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
            ..Self::of(ends, port, wanted, vec![dead; flows.max(1) as usize])
        }
    }

    /// Whether no flow got an answer.
    pub fn is_dead(&self) -> bool {
        self.flows.iter().all(|flow| flow.kind == FlowKind::Dead)
    }

    /// What every flow that told carries: the narrowest, bytes.
    pub fn mtu(&self) -> Option<u32> {
        let told = self.flows.iter().filter(|flow| flow.kind.is_told());
        told.filter_map(|flow| flow.mtu).min()
    }

    /// What a host should send to this path at most: what passes, but not what the receiving device takes beyond its own
    /// MTU, which is no promise. `back`: the other direction, which knows that MTU.
    pub fn advised(&self, back: Option<&Self>) -> Option<u32> {
        let mtu = self.mtu()?;
        let device = back.and_then(|back| back.leaving.as_ref()?.device_mtu);
        let slack = |device: u32| (device + 1..=device + TAG_BYTES).contains(&mtu);
        let likely = likely_sizes();
        let usual = mtu.saturating_sub(TAG_BYTES);
        Some(match device.filter(|&device| slack(device)) {
            Some(device) => device,
            // A router's or switch's port, likely.
            None if likely.contains(&usual) && !likely.contains(&mtu) => usual,
            None => mtu,
        })
    }

    /// Whether large TCP segments that the sender sends vanish.
    pub fn loses_large_segments(&self) -> bool {
        let black_hole = self.failing().any(|flow| flow.kind == FlowKind::BLACK_HOLE);
        let passes = self.segments.and_then(|segments| segments.passes);
        // TCP's may be another matter, either way.
        if let Some(Segments { fails: Some(_), .. }) = self.segments {
            return true;
        }
        // Of several equal paths TCP's may have been a good one.
        let every = self.failing().count() == self.flows.len();
        black_hole && (!every || passes <= self.mtu())
    }

    /// The flows that carry less than is wanted.
    pub fn failing(&self) -> impl Iterator<Item = &FlowReport> {
        let wanted = self.wanted.bytes();
        self.flows
            .iter()
            .filter(move |flow| flow.kind.is_told() && flow.mtu.is_none_or(|mtu| mtu < wanted))
    }
}
