//! Checks in addition to a survey: a trace of the hops, TCP to an open port, and probes from one side only.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use wirecost_check::{
    HopReport, OneSidedReport, ReachabilityHint, RequiredMtu, Segments, Stream, TcpMeasurements,
    TcpReport,
};
use wirecost_pmtu::{TraceConfig, likely_sizes};
use wirecost_probe::message::Secret;
use wirecost_probe::{ProbeError, StreamPath, one_sided, tcp_proof, trace, trace_on};

use super::survey::{add_captured, config, is_without_route, leaving, pace, required_mtu};
use super::{HOP_WAIT, stream_report, wait_for_neighbour};
use crate::protocol::{NeighbourSearch, OneSidedOrder, TcpOrder, TraceOrder};
use crate::prove::smallest;

/// How long to wait for routers where the distance is unknown; later answers are not reported.
const UNKNOWN: Duration = Duration::from_millis(500);

/// Traces the hops of a path: on a flow of the last survey, whose answers took `wait`, or to a closed port.
pub(super) fn trace_path(
    order: &TraceOrder,
    flows: &[UdpSocket],
    (wait, _): (Duration, f64),
) -> Result<Vec<HopReport>, ProbeError> {
    let mut sizes = order.sizes.clone();
    let most = sizes.iter().copied().max().unwrap_or(0);
    sizes.extend(likely_sizes().into_iter().filter(|&size| size < most));
    let config = TraceConfig {
        passing: 0,
        sizes,
        max_ttl: 30,
        wait: if wait.is_zero() {
            UNKNOWN
        } else {
            wait.max(HOP_WAIT)
        },
    };
    let hops = if let Some((port, secret, flow)) = order.responder {
        let to = SocketAddr::new(order.to.address, port);
        let socket = flows.get(flow as usize);
        let hops = socket.map(|socket| trace_on(socket, to, config, &secret));
        hops.transpose()?.unwrap_or_default()
    } else {
        let secret = Secret {
            probe: [0; 16],
            acknowledgement: [0; 8],
        };
        trace(order.from.address, order.to.address, config, &secret)?
    };
    Ok(hops.iter().map(HopReport::from).collect())
}

/// Checks a path over TCP to an open port.
pub(super) fn tcp(order: &TcpOrder) -> Result<TcpReport, ProbeError> {
    let to = SocketAddr::new(order.to.address, order.port);
    let ends = (order.from.clone(), order.to.clone());
    let leaving = leaving(order.from.address, order.to.address);
    let required = match required_mtu(order.expect, (order.from.address, to), leaving.as_ref()) {
        Err(ProbeError::Flow { source, .. }) if is_without_route(&source) => {
            let required = RequiredMtu::Expected(order.expect.unwrap_or(0));
            return Ok(TcpReport::without_route(ends, order.port, required));
        }
        required => required?.0,
    };
    let path = StreamPath {
        size: required.bytes(),
        bytes_per_second: order.bytes_per_second,
        wait: Duration::ZERO,
    };
    let began = Instant::now();
    let proof = tcp_proof(order.from.address, to, &path, smallest(order.to.address))?;
    let shown = TcpMeasurements {
        failed: proof.failed.map(stream_report),
        full: proof.full,
        segments: Segments {
            passes: proof.segments.passes,
            fails: proof.segments.fails,
        },
        acknowledged: proof.acknowledged,
        retransmits: proof.retransmits,
        snd_mss: proof.snd_mss,
        adv_mss: proof.adv_mss,
        pmtu: proof.pmtu,
    };
    let seconds = began.elapsed().as_secs_f64();
    let mut report = TcpReport::new(ends, order.port, required, shown, seconds);
    report.path.leaving = leaving;
    if shown.failed == Some(Stream::NotConnected)
        && let NeighbourSearch::Missing(next) =
            wait_for_neighbour(order.from.address, order.to.address)
    {
        report.path.hint = Some(ReachabilityHint::NoNeighbour(next));
    }
    Ok(report)
}

/// Checks a path from this side alone.
pub(super) fn from_one_side(order: &OneSidedOrder) -> Result<OneSidedReport, ProbeError> {
    let (from, to) = (order.from.address, order.to.address);
    let leaving = leaving(from, to);
    // The discard port (RFC 863): nothing is sent to it.
    let between = (from, SocketAddr::new(to, 9));
    let ends = (order.from.clone(), order.to.clone());
    let (required, high) = match required_mtu(order.expect, between, leaving.as_ref()) {
        Err(ProbeError::Flow { source, .. }) if is_without_route(&source) => {
            let required = RequiredMtu::Expected(order.expect.unwrap_or(0));
            return Ok(OneSidedReport::without_route(ends, required));
        }
        required => required?,
    };
    let low = smallest(to).min(high);
    let began = Instant::now();
    let (config, pace) = (config(&order.limits), pace(&order.limits));
    let ask = || one_sided(from, to, (low, high), config, pace);
    let (mut result, mut captured) = ask()?;
    let mut hint = None;
    if result.is_dead() {
        match wait_for_neighbour(from, to) {
            NeighbourSearch::Found => (result, captured) = ask()?,
            NeighbourSearch::Missing(next) => hint = Some(ReachabilityHint::NoNeighbour(next)),
            NeighbourSearch::Known => {}
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut report = OneSidedReport::new(ends, required, &result, seconds);
    report.path.hint = hint;
    report.path.leaving = leaving;
    add_captured(&mut report.path, None, captured.as_ref());
    Ok(report)
}
