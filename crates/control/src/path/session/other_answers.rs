//! Looks for other answers (another UDP port, ICMP echo) where no probe is answered.

use std::net::SocketAddr;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{
    OneSidedOrder, PathDirection, PathReply, PathRequest, Responding, SurveyOrder,
};
use wirecost_check::{PathReport, ReachabilityHint};

use super::Session;
use crate::calls::PROMPT;

/// An IP packet that passes wherever anything does, bytes; large enough for a probe over either version.
const SMALL: u32 = 128;

/// An answer that took longer than this, in seconds, found a neighbour first, or came from far away; both together
/// outlast a flow's patience.
const SLOW: f64 = 0.25;

impl Session<'_> {
    /// Where nothing passes: whether another port does where one was asked for, or else echo requests. Which directions
    /// are answered so slowly, or not at all, that what was asked first may only have been given up too early.
    pub(super) fn look_for_other_answers(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &mut [PathReport],
    ) -> Result<[bool; 2], LinkError> {
        let mut slow = [false; 2];
        // What arrives spoiled, or whose answers do, is explained.
        let spoiled = paths.iter().any(|path| path.bad_checksums > 1);
        let mut dead: Vec<usize> = (0..paths.len())
            .filter(|index| !spoiled && is_unexplained(&paths[*index]))
            .collect();
        let asked_for = |index: &usize| Some(ways[*index].port) == self.asked.port;
        if dead.iter().any(asked_for) {
            let others = self.other_ports(ways, &dead)?;
            for (index, report) in others {
                paths[index].hint = Some(ReachabilityHint::OtherPort(report.port));
                slow[index] = report.seconds > SLOW;
            }
            dead.retain(|index| paths[*index].hint.is_none());
        }
        for index in &dead {
            slow[*index] = true;
        }
        let mut orders = vec![None, None];
        for index in &dead {
            orders[*index] = Some(PathRequest::OneSided(OneSidedOrder {
                from: ways[*index].from.clone(),
                to: ways[*index].to.clone(),
                expect: Some(SMALL),
                limits: self.limits(),
            }));
        }
        let within = self.limits().longest() + PROMPT;
        let replies = match self.ask_some(orders, within) {
            // Not allowed to, perhaps: it would have said more, and what was found stands without it.
            Err(LinkError::Refused { .. }) => return Ok(slow),
            replies => replies?,
        };
        for (index, reply) in dead.into_iter().zip(replies) {
            if let PathReply::OneSided(report) = reply
                && report.path.mtu().is_some()
            {
                paths[index].hint = Some(ReachabilityHint::Echo);
                slow[index] = report.path.seconds > SLOW;
            }
        }
        Ok(slow)
    }

    /// Those of the dead directions that another port is answered in, and what is known of it.
    pub(super) fn other_ports(
        &mut self,
        ways: &[PathDirection; 2],
        dead: &[usize],
    ) -> Result<Vec<(usize, PathReport)>, LinkError> {
        // The responder of a direction is at the other host.
        let mut requests = vec![None, None];
        for index in dead {
            let way = &ways[*index];
            requests[1 - index] = Some(PathRequest::Respond {
                address: SocketAddr::new(way.to.address, 0),
                secret: way.secret,
            });
        }
        let mut moved = self.ask_some(requests, PROMPT)?.into_iter();
        let mut orders = vec![None, None];
        // Answers come in the order of the hosts, which is the reverse of the directions'.
        for host in 0..2 {
            let index = 1 - host;
            if !dead.contains(&index) {
                continue;
            }
            let Some(PathReply::Responding(Responding::At(address))) = moved.next() else {
                return Err(self.links[host].unexpected_reply("Respond"));
            };
            orders[index] = Some(PathRequest::Survey(SurveyOrder {
                way: PathDirection {
                    port: address.port(),
                    ..ways[index].clone()
                },
                expect: Some(SMALL),
                flows: 1,
                limits: self.limits(),
                count: false,
            }));
        }
        let mut asked: Vec<usize> = dead.to_vec();
        asked.sort_unstable();
        let replies = self.ask_some(orders, self.limits().longest() + PROMPT)?;
        let answered = asked
            .into_iter()
            .zip(replies)
            .filter_map(|(index, reply)| match reply {
                PathReply::Path(report) if report.mtu().is_some() => Some((index, report)),
                _ => None,
            });
        Ok(answered.collect())
    }
}

/// Whether nothing is known yet of why there is no answer.
fn is_unexplained(path: &PathReport) -> bool {
    path.is_dead() && path.hint.is_none() && path.seen.refused.is_none()
}
