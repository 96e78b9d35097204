//! What is asked beside probes: a path hop by hop, and TCP to an open port.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use wirecost_check::{HopReport, RequiredMtu, Segments, Stream, TcpReport, TcpShown};
use wirecost_pmtu::{TraceConfig, likely_sizes};
use wirecost_probe::message::Secret;
use wirecost_probe::{ProbeError, StreamPath, tcp_proof, trace, trace_on};

use super::{HOP_WAIT, is_without_route, leaving, said, wanted};
use crate::protocol::{TcpOrder, TraceOrder};
use crate::prove::smallest;

/// Routers of an unknown distance answer within this time, or their answer is not told.
const UNKNOWN: Duration = Duration::from_millis(500);

/// A path hop by hop: on a flow of the last survey, which took `wait` for an answer, or to a closed port.
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

/// A path over TCP to an open port.
pub(super) fn tcp(order: &TcpOrder) -> Result<TcpReport, ProbeError> {
    let to = SocketAddr::new(order.to.address, order.port);
    let ends = (order.from.clone(), order.to.clone());
    let leaving = leaving(order.from.address, order.to.address);
    let wanted = match wanted(order.expect, (order.from.address, to), leaving.as_ref()) {
        Err(ProbeError::Flow { source, .. }) if is_without_route(&source) => {
            let wanted = RequiredMtu::Expected(order.expect.unwrap_or(0));
            return Ok(TcpReport::without_route(ends, order.port, wanted));
        }
        wanted => wanted?.0,
    };
    let path = StreamPath {
        size: wanted.bytes(),
        bytes_per_second: order.bytes_per_second,
        wait: Duration::ZERO,
    };
    let began = Instant::now();
    let proof = tcp_proof(order.from.address, to, &path, smallest(order.to.address))?;
    let shown = TcpShown {
        failed: proof.failed.map(said),
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
    let mut report = TcpReport::new(ends, order.port, wanted, shown, seconds);
    report.path.leaving = leaving;
    if shown.failed == Some(Stream::NotConnected)
        && let crate::protocol::NeighbourSearch::Missing(next) =
            super::wait_for_neighbour(order.from.address, order.to.address)
    {
        report.path.hint = Some(wirecost_check::ReachabilityHint::NoNeighbour(next));
    }
    Ok(report)
}
