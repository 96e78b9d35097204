//! Where a size is lost.

use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{LocateOrder, PathReply, PathRequest, Way};
use wirecost_check::{FlowReport, Kind, PathReport};

use super::Session;
use crate::path::step::Step;

/// How long looking for the place of a loss may take.
const LOCATING: Duration = Duration::from_secs(30);

impl Session<'_> {
    /// Where sizes are lost that the sender's device takes and nobody reports.
    pub(super) fn locate(
        &mut self,
        ways: &[Way; 2],
        paths: &mut [PathReport],
        told: &mut dyn FnMut(Step),
    ) -> Result<(), LinkError> {
        let orders: Vec<Option<PathRequest>> = ways
            .iter()
            .zip(&*paths)
            .map(|(way, path)| {
                let wanted = path.wanted.bytes();
                let fails = |flow: &FlowReport| {
                    flow.kind == Kind::SILENT && flow.mtu.is_none_or(|mtu| mtu < wanted)
                };
                let flow = path.flows.iter().position(fails)?;
                let silent = path.flows[flow];
                // Of what is lost the smallest: a larger one may be lost elsewhere as well.
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
        told(Step::Locating);
        let asked: Vec<usize> = (0..orders.len())
            .filter(|index| orders[*index].is_some())
            .collect();
        let replies = match self.ask_some(orders, LOCATING) {
            Err(LinkError::Refused { .. }) => return Ok(()),
            replies => replies?,
        };
        for (index, reply) in asked.iter().zip(replies) {
            let PathReply::Located(located) = reply else {
                return Err(self.links[0].confused("Locate"));
            };
            // Not found, or it arrived after all: the path's line stands without a place.
            paths[*index].stretch = located.ok();
        }
        Ok(())
    }
}
