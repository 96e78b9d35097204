//! The JSON document of a check: a contract, with its JSON Schema.

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
use crate::tcp_proof::TcpMeasurements;
use crate::trace::TraceReport;

/// Version of [`Document`]: changes when a reader of the previous version would be misled.
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
    /// Start of the check in UTC, RFC 3339.
    pub started: String,
    /// Duration of the check, seconds, including the agents' start and without simulations.
    pub seconds: f64,
    /// The parameters of the check.
    pub asked: CheckParameters,
    /// Both ends of the path.
    pub hosts: Vec<HostReport>,
    /// Every flow in every direction.
    pub paths: Vec<PathFlowReport>,
    /// Each direction, its flows together.
    pub directions: Vec<DirectionReport>,
    /// The MTU of guests behind an encapsulation, where one was named.
    pub encapsulation: Option<EncapsulationReport>,
    /// The largest guest MTU that fits every path, where that was asked for.
    pub recommendation: Option<Recommendation>,
    /// The probes over TCP to an open port, where that was asked for.
    pub tcp: Vec<TcpPortReport>,
    /// Each direction hop by hop, where that was asked for.
    pub traces: Vec<TraceReport>,
    /// Findings, the worst first.
    pub findings: Vec<Finding>,
    /// Results of the TCP transfers over the path, where they were asked for.
    pub simulations: Vec<Simulated>,
    /// The checklist for large frames, by host.
    pub checklist: Vec<Checklist>,
    /// What could not be read on the hosts; nothing is concluded from it.
    pub unread: Vec<UnreadReport>,
    /// Notes on the results.
    pub notes: Vec<String>,
}

/// The parameters of the check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckParameters {
    /// The size of IP packet that each direction must carry, bytes; `None`: the MTU of the sender's device or route.
    pub expect: Option<u32>,
    /// Flows of each direction.
    pub flows: u32,
    /// Destination port of the probes; `None`: any.
    pub port: Option<u16>,
    /// Upper bound on the probes of each direction, datagrams per second.
    pub datagrams_per_s: f64,
    /// Upper bound on the probes of each direction, bytes per second.
    pub bytes_per_s: f64,
}

/// A probe over TCP to an open port. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TcpPortReport {
    /// The host that connected.
    pub from: String,
    /// The host that it connected to.
    pub to: String,
    /// TCP port on `to`.
    pub port: u16,
    /// Whether a connection was made.
    pub connected: bool,
    /// Size of the IP packet of a full segment.
    pub full_size: u32,
    /// Bytes of a full segment that were acknowledged.
    pub acknowledged: u64,
    /// The largest IP packet that was acknowledged.
    pub passes: Option<u32>,
    /// The smallest IP packet of which every copy was lost.
    pub fails: Option<u32>,
    /// Retransmitted segments.
    pub retransmits: u32,
    /// MSS of the segments that `from` sends.
    pub snd_mss: u32,
    /// MSS that `from` announced, which `to` keeps to.
    pub adv_mss: u32,
    /// The socket's path MTU when the connection was made.
    pub pmtu_before: u32,
    /// The socket's path MTU at the end: smaller where an ICMP too-big message arrived.
    pub pmtu: u32,
}

impl TcpPortReport {
    /// The report on TCP between the ends of `path`.
    pub fn new(path: &PathReport, shown: &TcpMeasurements) -> Self {
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

/// One end of the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostReport {
    /// The host's name in `from`, `to` and the findings.
    pub host: String,
    /// The host's data-plane address.
    pub address: IpAddr,
    /// The device of a link-local address.
    pub device: Option<String>,
    /// Whether the host had an agent: without one, only what the other side measured is reported.
    pub agent: bool,
}

/// One flow in one direction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathFlowReport {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Number of the flow, from 0 in each direction.
    pub flow: u32,
    /// The largest IP packet that passes, bytes; `None`: none is known to pass.
    pub mtu: Option<u32>,
    /// Why no larger packet passes: `ok` (none was asked for), `device`, `signalled`, `fragmented`, `silent`, `dead`,
    /// `undecided`.
    pub kind: &'static str,
    /// Seconds from the start of the direction's probes until the flow's result was known.
    pub seconds: f64,
    /// Datagrams sent on the flow.
    pub probes: u32,
    /// Source port of the flow; 0 for echo requests.
    pub source_port: u16,
    /// Kind `signalled`: the source of the ICMP too-big message.
    pub signalled_by: Option<IpAddr>,
    /// Bytes. Kind `signalled`: the MTU in the ICMP message; `device`: the device's MTU; `fragmented`: the largest
    /// fragment's IP packet.
    pub limit: Option<u32>,
}

/// One direction, all flows together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionReport {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Destination port of the probes; 0 for echo requests.
    pub port: u16,
    /// The size of IP packet that the direction must carry, bytes.
    pub wanted: u32,
    /// The smallest path MTU of the flows with a result, bytes.
    pub mtu: Option<u32>,
    /// Kind of a flow without a result where there is one, else of the flow with the smallest path MTU.
    pub kind: &'static str,
    /// Flows probed.
    pub flows: u32,
    /// Flows whose path MTU is smaller than `wanted`.
    pub failing: u32,
    /// Flows that are undecided or dead.
    #[serde(rename = "untold")]
    pub unresolved: u32,
    /// Seconds from the first probe to the last answer.
    pub seconds: f64,
    /// Datagrams sent.
    pub probes: u32,
    /// Datagrams of passing sizes that were answered or timed out; 0 for echo requests.
    pub awaited: u32,
    /// Those of `awaited` that were not answered: lost on the way there or back.
    pub missing: u32,
    /// The largest number of equal-cost paths each of which the flows met, with 95 % probability.
    pub paths_met_95: u32,
    /// The largest number of equal-cost paths each of which the flows met, with 99 % probability.
    pub paths_met_99: u32,
    /// The last router that packets of a lost size reach; `None`: the sender itself, or not located.
    pub lost_after: Option<IpAddr>,
    /// The first router that packets of a lost size do not reach; `None`: the destination, or not located.
    pub lost_before: Option<IpAddr>,
    /// Result of a short TCP stream, small segments and then full ones (`passed`, `small-stalled`, `full-stalled`,
    /// `changed`, `not-connected`, `refused`); `None`: none was sent, as where a size of datagrams fails.
    pub tcp: Option<&'static str>,
    /// Of a path that was probed from one side: the direction with the smaller path MTU (`neither`, `there`, `back`,
    /// `cannot-tell`).
    pub narrow: Option<&'static str>,
}

/// The checklist for large frames of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checklist {
    /// The host.
    pub host: String,
    /// Entries of the checklist.
    pub items: Vec<Item>,
}

/// Something that could not be read on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadReport {
    /// The host's name.
    pub host: String,
    /// What could not be read.
    pub what: String,
    /// The reason, and what would help.
    pub why: String,
}

impl Document {
    /// Adds the result of another pair of hosts, so that one document covers all pairs.
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
            ours.join(theirs);
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

    /// Whether there is a warning or an error about the checked path itself.
    pub fn has_findings(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity > Severity::Info && !finding.elsewhere)
    }
}

impl PathFlowReport {
    /// Reports on every flow of a direction.
    pub fn of(path: &PathReport) -> impl Iterator<Item = Self> + '_ {
        (0..).zip(&path.flows).map(|(number, flow)| {
            let (signalled_by, limit) = match flow.kind {
                FlowKind::Known(Limit::Signalled { by, mtu }) => (Some(by), Some(mtu)),
                FlowKind::Known(Limit::Device { mtu }) => (None, Some(mtu)),
                FlowKind::Known(Limit::Fragmented { largest }) => (None, Some(largest)),
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
    /// The report on a direction that its sender's agent probed.
    pub fn of(path: &PathReport) -> Self {
        let narrowest = path
            .flows
            .iter()
            .min_by_key(|flow| (flow.kind.is_known(), flow.mtu));
        let unresolved = path.flows.iter().filter(|flow| !flow.kind.is_known());
        let router = |place: Option<(u8, IpAddr)>| place.map(|(_, address)| address);
        let loss_location = path.loss_location.as_ref();
        Self {
            from: path.from.host.clone(),
            to: path.to.host.clone(),
            port: path.port,
            wanted: path.required.bytes(),
            mtu: path.mtu(),
            kind: narrowest
                .map_or(FlowKind::Undecided, |flow| flow.kind)
                .word(),
            flows: path.flows.len() as u32,
            failing: path.failing().count() as u32,
            unresolved: unresolved.count() as u32,
            seconds: path.seconds,
            probes: path.probes,
            awaited: path.awaited,
            missing: path.missing,
            paths_met_95: path.paths_met.0,
            paths_met_99: path.paths_met.1,
            lost_after: loss_location.and_then(|loss_location| router(loss_location.after)),
            lost_before: loss_location.and_then(|loss_location| router(loss_location.before)),
            tcp: path.stream.map(Stream::word),
            narrow: None,
        }
    }

    /// The report on a path that was probed from one side.
    pub fn from_one_side(report: &OneSidedReport) -> Self {
        Self {
            narrow: Some(report.narrow.word()),
            ..Self::of(&report.path)
        }
    }
}
