//! Directions without answers whose packets still wait for neighbour resolution, which the kernel gives up after three
//! seconds.

use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{NeighbourSearch, PathDirection, PathReply, PathRequest};
use wirecost_check::{PathReport, ReachabilityHint};

use super::Session;
use crate::timeouts::PROMPT;

/// Time-out of neighbour resolution: the kernel asks three times, a second apart.
const SEARCHING: Duration = Duration::from_secs(5);

impl Session<'_> {
    /// Waits for the end of neighbour resolution, unless wrong checksums already explain the missing answers.
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
        let replies = self.ask_some(orders, SEARCHING + PROMPT)?;
        for (index, reply) in wanted.into_iter().zip(replies) {
            match reply {
                PathReply::Neighbour(NeighbourSearch::Missing(next)) => {
                    paths[index].hint = Some(ReachabilityHint::NoNeighbour(next));
                }
                PathReply::Neighbour(_) => {}
                _ => return Err(self.links[index].unexpected_reply("AwaitNeighbour")),
            }
        }
        Ok(())
    }
}
