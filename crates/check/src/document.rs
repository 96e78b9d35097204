//! What a check prints for programs: a contract, with its JSON Schema.

use std::net::IpAddr;

use serde::Serialize;
use wirecost_audit::checklist::Item;
use wirecost_audit::{Finding, Severity};
use wirecost_pmtu::Limit;

use crate::encapsulation::EncapsulationReport;
use crate::one_sided::OneSidedReport;
use crate::recommend::{self, Recommendation};
use crate::report::{FlowKind, PathReport, Stream};
use crate::simulation::Simulated;
use crate::tcp_proof::TcpShown;
use crate::trace::TraceReport;

/// Version of [`Document`]: it changes where a reader of the one before would be misled.
pub const FORMAT: u32 = 1;

/// JSON Schema (draft 2020-12) of [`Document`].
pub const SCHEMA: &str = include_str!("../schema.json");

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of the program.
    pub program_version: &'static str,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// How long it took, agents' start included and simulations not.
    pub seconds: f64,
    /// The parameters of the check.
    pub asked: CheckParameters,
    /// Both ends.
    pub hosts: Vec<HostReport>,
    /// Every flow in every direction.
    pub paths: Vec<PathFlowReport>,
    /// The same by direction.
    pub directions: Vec<DirectionReport>,
    /// What guests behind an encapsulation can have, where one was named.
    pub encapsulation: Option<EncapsulationReport>,
    /// The largest MTU of guests that fits every path, where that was asked.
    pub recommendation: Option<Recommendation>,
    /// What was counted of TCP to an open port, where that was asked.
    pub tcp: Vec<TcpPortReport>,
    /// Each direction hop by hop, where that was asked.
    pub traces: Vec<TraceReport>,
    /// The worst first.
    pub findings: Vec<Finding>,
    /// What TCP transfers over the path came to, where they were asked for.
    pub simulations: Vec<Simulated>,
    /// The list for large frames, by host.
    pub checklist: Vec<Checklist>,
    /// What could not be read on the hosts; nothing is concluded from it.
    pub unread: Vec<UnreadReport>,
    /// What has to be known about the answers, in words.
    pub notes: Vec<String>,
}

/// The parameters of the check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckParameters {
    /// What every direction should carry, bytes; `None`: what the sender's device or route takes.
    pub expect: Option<u32>,
    /// Flows of each direction.
    pub flows: u32,
    /// Destination port of the probes; `None`: any.
    pub port: Option<u16>,
    /// Datagrams per second of each direction at most.
    pub datagrams_per_s: f64,
    /// Bytes per second of each direction at most.
    pub bytes_per_s: f64,
}

/// TCP to an open port; bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TcpPortReport {
    /// The host that connected.
    pub from: String,
    /// The other one.
    pub to: String,
    /// The port there.
    pub port: u16,
    /// Whether a connection was made.
    pub connected: bool,
    /// The IP packet of a full segment.
    pub full_size: u32,
    /// Bytes of a full segment that were acknowledged.
    pub acknowledged: u64,
    /// The largest packet that was acknowledged, and the smallest whose every copy was lost.
    pub passes: Option<u32>,
    /// See `passes`.
    pub fails: Option<u32>,
    /// Segments sent again.
    pub retransmits: u32,
    /// MSS of what `from` sends.
    pub snd_mss: u32,
    /// MSS that `from` announced, which `to` keeps to.
    pub adv_mss: u32,
    /// The socket's path MTU when the connection was made.
    pub pmtu_before: u32,
    /// The same at the end: less where a router's message came.
    pub pmtu: u32,
}

impl TcpPortReport {
    /// From what TCP showed between two hosts.
    pub fn new(path: &PathReport, shown: &TcpShown) -> Self {
        Self {
            from: path.from.host.clone(),
            to: path.to.host.clone(),
            port: path.port,
            connected: shown.failed.is_none(),
            full_size: shown.full,
            acknowledged: shown.acknowledged,
            passes: shown.segments.passes,
            fails: shown.segments.fails,
            retransmits: shown.retransmits,
            snd_mss: shown.snd_mss,
            adv_mss: shown.adv_mss,
            pmtu_before: shown.pmtu.0,
            pmtu: shown.pmtu.1,
        }
    }
}

/// One end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostReport {
    /// As `from`, `to` and the findings call it.
    pub host: String,
    /// Its address.
    pub address: IpAddr,
    /// The device of a link-local address.
    pub device: Option<String>,
    /// Whether an agent was there: without one only what the other side knows is told.
    pub agent: bool,
}

/// One flow in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathFlowReport {
    /// The sending host.
    pub from: String,
    /// The receiving one.
    pub to: String,
    /// Counts from 0 in each direction.
    pub flow: u32,
    /// The largest IP packet that passes, bytes; `None`: not even small ones do.
    pub mtu: Option<u32>,
    /// Why no larger one does: `ok` (none was asked for), `device`, `signalled`, `fragmented`, `silent`, `dead`,
    /// `undecided`.
    pub kind: &'static str,
    /// Seconds until the flow's answer was known, from the start of the direction's probes.
    pub seconds: f64,
    /// Datagrams sent on it.
    pub probes: u32,
    /// Its source port; 0 for echo requests.
    pub source_port: u16,
    /// Of `signalled`: who says so.
    pub signalled_by: Option<IpAddr>,
    /// Of `signalled`: what passes by that word, bytes; of `device` the device's MTU; of `fragmented` the largest
    /// fragment.
    pub limit: Option<u32>,
}

/// One direction, all flows together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionReport {
    /// The sending host.
    pub from: String,
    /// The receiving one.
    pub to: String,
    /// Destination port of the probes; 0 for echo requests.
    pub port: u16,
    /// What it has to carry, bytes.
    pub wanted: u32,
    /// What every flow that told carries, bytes.
    pub mtu: Option<u32>,
    /// Of the narrowest flow.
    pub kind: &'static str,
    /// Flows asked.
    pub flows: u32,
    /// Flows that carry less than is wanted.
    pub failing: u32,
    /// Flows that do not tell, or give no answer.
    pub untold: u32,
    /// Seconds from the first probe to the last answer.
    pub seconds: f64,
    /// Datagrams sent.
    pub probes: u32,
    /// Datagrams of sizes that pass whose answers came, or were waited for in vain; 0 for echo requests.
    pub awaited: u32,
    /// How many of these were not answered: lost there or back.
    pub missing: u32,
    /// So many equal paths were each met with a probability of 95 % at least, if there are so many.
    pub paths_met_95: u32,
    /// The same at 99 %.
    pub paths_met_99: u32,
    /// Where a size is lost: behind this router; `None`: behind the sender, or not looked for.
    pub lost_after: Option<IpAddr>,
    /// Before this one; `None`: before the destination, or not looked for.
    pub lost_before: Option<IpAddr>,
    /// What came of a short TCP stream, small segments and then full ones (`passed`, `small-stalled`, `full-stalled`,
    /// `changed`, `not-connected`, `refused`); `None`: there was none, as where a size fails.
    pub tcp: Option<&'static str>,
    /// Of a path that was asked from one side: which way is the narrow one (`neither`, `there`, `back`,
    /// `cannot-tell`).
    pub narrow: Option<&'static str>,
}

/// The list for large frames, of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checklist {
    /// The host.
    pub host: String,
    /// Its entries.
    pub items: Vec<Item>,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadReport {
    /// On which host.
    pub host: String,
    /// What.
    pub what: String,
    /// Why, and what would help.
    pub why: String,
}

impl Document {
    /// Adds another pair's result, so that there is one document of all.
    pub fn join(&mut self, other: Self) {
        fn add<T: PartialEq>(all: &mut Vec<T>, others: Vec<T>) {
            for one in others {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        self.seconds += other.seconds;
        add(&mut self.hosts, other.hosts);
        self.paths.extend(other.paths);
        self.directions.extend(other.directions);
        if let (Some(ours), Some(theirs)) = (&mut self.encapsulation, other.encapsulation) {
            ours.guest_mtu = ours.guest_mtu.zip(theirs.guest_mtu).map(|(a, b)| a.min(b));
        }
        self.recommendation = recommend::join(self.recommendation.take(), other.recommendation);
        self.tcp.extend(other.tcp);
        self.traces.extend(other.traces);
        add(&mut self.findings, other.findings);
        self.findings
            .sort_by_key(|finding| (finding.elsewhere, std::cmp::Reverse(finding.severity)));
        self.simulations.extend(other.simulations);
        add(&mut self.checklist, other.checklist);
        add(&mut self.unread, other.unread);
        add(&mut self.notes, other.notes);
    }

    /// Whether something was found about the asked pair that is more than information.
    pub fn has_findings(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity > Severity::Info && !finding.elsewhere)
    }
}

impl PathFlowReport {
    /// Every flow of a direction.
    pub fn of(path: &PathReport) -> impl Iterator<Item = Self> + '_ {
        (0..).zip(&path.flows).map(|(number, flow)| {
            let (signalled_by, limit) = match flow.kind {
                FlowKind::Told(Limit::Signalled { by, mtu }) => (Some(by), Some(mtu)),
                FlowKind::Told(Limit::Device { mtu }) => (None, Some(mtu)),
                FlowKind::Told(Limit::Fragmented { largest }) => (None, Some(largest)),
                _ => (None, None),
            };
            Self {
                from: path.from.host.clone(),
                to: path.to.host.clone(),
                flow: number,
                mtu: flow.mtu,
                kind: flow.kind.word(),
                seconds: flow.seconds,
                probes: flow.probes,
                source_port: flow.port,
                signalled_by,
                limit,
            }
        })
    }
}

impl DirectionReport {
    /// A direction that was asked by its own agent.
    pub fn of(path: &PathReport) -> Self {
        let narrowest = path
            .flows
            .iter()
            .min_by_key(|flow| (flow.kind.is_told(), flow.mtu));
        let untold = path.flows.iter().filter(|flow| !flow.kind.is_told());
        let router = |place: Option<(u8, IpAddr)>| place.map(|(_, address)| address);
        let stretch = path.stretch.as_ref();
        Self {
            from: path.from.host.clone(),
            to: path.to.host.clone(),
            port: path.port,
            wanted: path.wanted.bytes(),
            mtu: path.mtu(),
            kind: narrowest
                .map_or(FlowKind::Undecided, |flow| flow.kind)
                .word(),
            flows: path.flows.len() as u32,
            failing: path.failing().count() as u32,
            untold: untold.count() as u32,
            seconds: path.seconds,
            probes: path.probes,
            awaited: path.awaited,
            missing: path.missing,
            paths_met_95: path.paths_met.0,
            paths_met_99: path.paths_met.1,
            lost_after: stretch.and_then(|stretch| router(stretch.after)),
            lost_before: stretch.and_then(|stretch| router(stretch.before)),
            tcp: path.stream.map(Stream::word),
            narrow: None,
        }
    }

    /// A path that was asked from one side.
    pub fn from_one_side(report: &OneSidedReport) -> Self {
        Self {
            narrow: Some(report.narrow.word()),
            ..Self::of(&report.path)
        }
    }
}
