//! Locates where packets of a size are lost.

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{LOCATING, LocateOrder, PathDirection, PathReply, PathRequest};
use wirecost_check::{FlowKind, FlowReport, PathReport};

use super::Session;
use crate::path::step::CheckStep;
use crate::timeouts::PROMPT;

impl Session<'_> {
    /// Locates PMTU black holes: between which routers packets are dropped without ICMP.
    pub(super) fn locate(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &mut [PathReport],
        on_step: &mut dyn FnMut(CheckStep),
    ) -> Result<(), LinkError> {
        let orders: Vec<Option<PathRequest>> = ways
            .iter()
            .zip(&*paths)
            .map(|(way, path)| {
                let wanted = path.required.bytes();
                let fails = |flow: &FlowReport| {
                    flow.kind == FlowKind::BLACK_HOLE && flow.mtu.is_none_or(|mtu| mtu < wanted)
                };
                let flow = path.flows.iter().position(fails)?;
                let silent = path.flows[flow];
                // The smallest size that is lost: larger packets may be lost at another place too.
                let failing = silent.mtu.map_or(wanted, |carried| carried + 1);
                Some(PathRequest::Locate(LocateOrder {
                    way: way.clone(),
                    flow: flow as u32,
                    failing,
                }))
            })
            .collect();
        if orders.iter().all(Option::is_none) {
            return Ok(());
        }
        on_step(CheckStep::Locating);
        let asked: Vec<usize> = (0..orders.len())
            .filter(|index| orders[*index].is_some())
            .collect();
        let replies = match self.ask_some(orders, LOCATING + PROMPT) {
            Err(LinkError::Refused { .. }) => return Ok(()),
            replies => replies?,
        };
        for (index, reply) in asked.iter().zip(replies) {
            let PathReply::Located(located) = reply else {
                return Err(self.links[0].unexpected_reply("Locate"));
            };
            paths[*index].loss_location = located;
        }
        Ok(())
    }
}
