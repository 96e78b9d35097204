//! Counts the loss of packets that are small enough to pass.

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathDirection, PathReply, PathRequest, SurveyOrder};
use wirecost_check::PathReport;

use super::Session;
use crate::timeouts::PROMPT;

/// Size of an IP packet that passes any working path, bytes.
const SMALL: u32 = 128;

impl Session<'_> {
    /// Counts the loss in directions where packets of passing sizes were lost, now that no search loads the path.
    pub(super) fn count_loss(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &mut [PathReport],
    ) -> Result<(), LinkError> {
        let limits = self.patient();
        let order = |index: usize| {
            (paths[index].missing > 0).then(|| {
                PathRequest::Survey(SurveyOrder {
                    way: ways[index].clone(),
                    expect: Some(SMALL),
                    flows: self.asked.flows,
                    limits,
                    count: true,
                })
            })
        };
        let orders = vec![order(0), order(1)];
        let asked: Vec<usize> = (0..2).filter(|index| orders[*index].is_some()).collect();
        let replies = self.ask_some(orders, limits.longest() + PROMPT)?;
        for (index, reply) in asked.into_iter().zip(replies) {
            let PathReply::Path(counted) = reply else {
                return Err(self.links[index].unexpected_reply("Survey"));
            };
            let path = &mut paths[index];
            (path.awaited, path.missing) = (counted.awaited, counted.missing);
            path.probes += counted.probes;
        }
        Ok(())
    }
}
