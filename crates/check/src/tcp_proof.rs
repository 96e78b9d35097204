//! A path probed over TCP to an open port of the far end, and its findings.

use serde::{Deserialize, Serialize};
use wirecost_audit::Finding;
use wirecost_pmtu::Limit;

use crate::judge::{add, ends, judge};
use crate::observations::Segments;
use crate::report::{FlowKind, FlowReport, PathEnd, PathReport, RequiredMtu, Stream};

/// Measurements over TCP. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpMeasurements {
    /// Why no connection was made: `NotConnected` or `Refused`; `None`: a connection was made.
    pub failed: Option<Stream>,
    /// Size of the IP packet of a full segment.
    pub full: u32,
    /// Which segments pass, as sizes of their IP packets.
    pub segments: Segments,
    /// Bytes of a full segment that were acknowledged.
    pub acknowledged: u64,
    /// Retransmitted segments.
    pub retransmits: u32,
    /// MSS of the segments that this end sends.
    pub snd_mss: u32,
    /// MSS that this end announced, which the far end keeps to.
    pub adv_mss: u32,
    /// The socket's path MTU when the connection was made, and at the end.
    pub pmtu: (u32, u32),
}

/// A path probed over TCP to one port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TcpReport {
    /// The path's report, with segments as the probes of one flow.
    pub path: PathReport,
    /// The measurements.
    pub shown: TcpMeasurements,
}

impl TcpReport {
    /// The report on measurements that took `seconds`.
    pub fn new(
        ends: (PathEnd, PathEnd),
        port: u16,
        required: RequiredMtu,
        shown: TcpMeasurements,
        seconds: f64,
    ) -> Self {
        let Segments { passes, fails } = shown.segments;
        let kind = match (shown.failed, passes, fails) {
            (Some(_), ..) => FlowKind::Dead,
            (None, None, _) => FlowKind::Undecided,
            (None, Some(_), Some(_)) => FlowKind::BLACK_HOLE,
            (None, Some(passes), None) if matches!(required, RequiredMtu::Expected(mtu) if passes >= mtu) => {
                FlowKind::Known(Limit::NotSought)
            }
            // The device, or the MSS that the far end announced, limits what was sent.
            (None, Some(passes), None) if passes >= required.bytes() => {
                FlowKind::Known(Limit::Device { mtu: passes })
            }
            (None, Some(_), None) => FlowKind::Known(Limit::NotSought),
        };
        let flow = FlowReport {
            port: 0,
            mtu: passes,
            kind,
            probes: 0,
            seconds,
        };
        Self {
            path: PathReport {
                seconds,
                paths_met: (1, 1),
                ..PathReport::of(ends, port, required, vec![flow])
            },
            shown,
        }
    }

    /// The report of a sender that has no route to the other end.
    pub fn without_route(ends: (PathEnd, PathEnd), port: u16, required: RequiredMtu) -> Self {
        let shown = TcpMeasurements {
            failed: Some(Stream::NotConnected),
            full: 0,
            segments: Segments {
                passes: None,
                fails: None,
            },
            acknowledged: 0,
            retransmits: 0,
            snd_mss: 0,
            adv_mss: 0,
            pmtu: (0, 0),
        };
        Self {
            path: PathReport::without_route(ends, port, required, 1),
            shown,
        }
    }
}

/// Notes on a probe over TCP.
pub fn tcp_notes(report: &TcpReport) -> Vec<String> {
    let TcpReport { path, shown } = report;
    if shown.failed.is_some() {
        return Vec::new();
    }
    let (host, other) = (&path.from.host, &path.to.host);
    let mut notes = vec![format!(
        "over TCP to port {}: {host} sends segments of {} bytes and announced {} to {other}; its path MTU is {}; {} bytes of a \
         full segment were acknowledged, {} segments were sent again",
        path.port,
        shown.snd_mss,
        shown.adv_mss,
        shown.pmtu.1,
        shown.acknowledged,
        shown.retransmits
    )];
    if shown.full < path.required.bytes() && shown.pmtu.0 > shown.full {
        notes.push(format!(
            "{other} announced an MSS that limits packets of {host} to {} bytes, below the {} that it would send: larger ones were \
             not tried (an MSS clamp on the path, or the far end's own device)",
            shown.full, shown.pmtu.0
        ));
    }
    if shown.pmtu.1 < shown.pmtu.0 {
        notes.push(format!(
            "{host} received a too-big message (ICMP) during the test and lowered its path MTU to {}; it was {} before",
            shown.pmtu.1, shown.pmtu.0
        ));
    }
    notes
}

/// Every finding about a path probed over TCP, the worst first.
pub fn judge_tcp(report: &TcpReport) -> Vec<Finding> {
    let TcpReport { path, shown } = report;
    let mut found = Vec::new();
    let ends = ends(path);
    let port = path.port;
    match (shown.failed, path.hint) {
        (Some(Stream::Refused), None) => {
            let evidence = format!(
                "{ends}: TCP port {port} refuses connections, by a reset or an ICMP message: nothing can be tested there"
            );
            let look =
                "# name a port where something listens: ss -ltn on the other host".to_owned();
            add(&mut found, "path-undecided", path, evidence, vec![look]);
        }
        (Some(_), None) => {
            let evidence = format!(
                "{ends}: no answer to connection requests on TCP port {port}: the host is down, or a filter drops them"
            );
            let look = "# filters between the hosts: security groups, a distributed firewall, network policies";
            let fix = vec![path.route_command(), look.to_owned()];
            add(&mut found, "path-dead", path, evidence, fix);
        }
        (None, _) if shown.segments.passes.is_none() => {
            let evidence = format!(
                "{ends}: connections to TCP port {port} open, and no segment of any size is acknowledged"
            );
            let look =
                "# a proxy or filter that accepts connections in place of the far end".to_owned();
            add(&mut found, "path-undecided", path, evidence, vec![look]);
        }
        (_, _) => return judge(std::slice::from_ref(path)),
    }
    found
}
