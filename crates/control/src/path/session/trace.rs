//! Traces directions hop by hop.

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathDirection, PathReply, PathRequest, TRACING, TraceOrder};
use wirecost_check::{PathReport, TraceReport};

use super::{CheckResults, Session};
use crate::timeouts::PROMPT;

impl Session<'_> {
    /// Traces both directions, each on its flow with the smallest path MTU.
    pub(super) fn trace(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &[PathReport],
    ) -> Result<Vec<TraceReport>, LinkError> {
        let order = |index: usize| {
            let (way, path) = (&ways[index], &paths[index]);
            let flows = path.flows.iter().enumerate();
            let (flow, _) = flows.min_by_key(|(_, flow)| (!flow.kind.is_known(), flow.mtu))?;
            // Behind a NAT mapping only the flow that created it is answered.
            path.through_mapping.is_none().then(|| {
                PathRequest::Trace(TraceOrder {
                    from: way.from.clone(),
                    to: way.to.clone(),
                    responder: Some((way.port, way.secret, flow as u32)),
                    sizes: sizes(path),
                })
            })
        };
        self.traced(vec![order(0), order(1)])
    }

    /// Traces from the first host, without a responder at the other end.
    pub(super) fn trace_one_side(
        &mut self,
        results: &CheckResults,
    ) -> Result<Vec<TraceReport>, LinkError> {
        let one_sided = results.one_sided.as_ref().map(|report| &report.path);
        let Some(path) = one_sided.or(results.tcp.as_ref().map(|report| &report.path)) else {
            return Ok(Vec::new());
        };
        let order = PathRequest::Trace(TraceOrder {
            from: path.from.clone(),
            to: path.to.clone(),
            responder: None,
            sizes: sizes(path),
        });
        let mut traces = self.traced(vec![Some(order)])?;
        // Closed ports answer at a limited rate; sizes that the probes proved have reached the destination too.
        let hops = traces.iter_mut().flat_map(|trace| &mut trace.hops);
        for hop in hops.filter(|hop| hop.destination) {
            hop.mtu = hop.mtu.max(path.mtu());
        }
        Ok(traces)
    }

    fn traced(&mut self, orders: Vec<Option<PathRequest>>) -> Result<Vec<TraceReport>, LinkError> {
        let asked: Vec<usize> = (0..orders.len())
            .filter(|index| orders[*index].is_some())
            .collect();
        let mut traces = Vec::new();
        let replies = self.ask_some(orders, TRACING + PROMPT)?;
        for (index, reply) in asked.into_iter().zip(replies) {
            let PathReply::Traced(hops) = reply else {
                return Err(self.links[index].unexpected_reply("Trace"));
            };
            // A size that reached a hop passed the hops before it, even where those answer too rarely to show it.
            let mut hops = hops;
            let mut most = None;
            for hop in hops.iter_mut().rev().filter(|hop| hop.address.is_some()) {
                most = most.max(hop.mtu);
                hop.mtu = most;
            }
            let [from, to] = [index, 1 - index].map(|at| self.ends[at].host.clone());
            traces.push(TraceReport { from, to, hops });
        }
        Ok(traces)
    }
}

/// Packet sizes to trace with, bytes: the largest that the sender sends, and the path MTU of each flow.
fn sizes(path: &PathReport) -> Vec<u32> {
    let device = path.leaving.as_ref().and_then(|way| way.device_mtu);
    let sent = device.map_or(path.required.bytes(), |device| {
        device.min(path.required.bytes())
    });
    let carried = path.flows.iter().filter_map(|flow| flow.mtu);
    carried.chain([sent]).collect()
}
