//! Directions without answers whose packets still wait for a neighbour: the kernel holds them for three seconds.

use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{NeighbourSearch, PathDirection, PathReply, PathRequest};
use wirecost_check::{PathReport, ReachabilityHint};

use super::Session;
use crate::calls::PROMPT;

/// The kernel asks three times, a second apart.
const SEARCHING: Duration = Duration::from_secs(5);

impl Session<'_> {
    /// Waits for neighbours that are still searched for, unless wrong checksums explain that nothing is answered. Asks
    /// again where one was found late, and in the other direction, whose acknowledgements could not leave before.
    pub(super) fn await_neighbours(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &mut [PathReport],
    ) -> Result<(), LinkError> {
        let unanswered = |path: &PathReport| path.is_dead() && path.hint.is_none();
        if !paths.iter().any(unanswered) {
            return Ok(());
        }
        self.count_bad_checksums(paths)?;
        if paths.iter().any(|path| path.bad_checksums > 1) {
            return Ok(());
        }
        let wanted: Vec<usize> = (0..2).filter(|index| unanswered(&paths[*index])).collect();
        let order = |index: usize| {
            wanted
                .contains(&index)
                .then(|| PathRequest::AwaitNeighbour {
                    from: ways[index].from.address,
                    to: ways[index].to.address,
                })
        };
        let orders = vec![order(0), order(1)];
        let mut late = [false; 2];
        for (index, reply) in wanted
            .iter()
            .zip(self.ask_some(orders, SEARCHING + PROMPT)?)
        {
            match reply {
                PathReply::Neighbour(NeighbourSearch::Known) => {}
                PathReply::Neighbour(NeighbourSearch::Found) => late[*index] = true,
                PathReply::Neighbour(NeighbourSearch::Missing(next)) => {
                    paths[*index].hint = Some(ReachabilityHint::NoNeighbour(next));
                }
                _ => return Err(self.links[*index].unexpected_reply("AwaitNeighbour")),
            }
        }
        if late == [false; 2] {
            return Ok(());
        }
        let again = [0, 1].map(|index| unanswered(&paths[index]));
        let asked = (0..2).filter(|index| again[*index]);
        for (index, report) in asked.zip(self.survey(ways, again, self.limits())?) {
            paths[index] = report;
            paths[index].late = late[index];
        }
        Ok(())
    }
}
