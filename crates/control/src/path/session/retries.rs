//! Probes directions without an answer again: on another port, and with longer time-outs.

use std::net::SocketAddr;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathDirection, PathReply, PathRequest, Responding, SurveyOrder};
use wirecost_check::{PathReport, ReachabilityHint};

use super::{CheckResults, Session};
use crate::timeouts::PROMPT;

/// Size of an IP packet that passes any working path, bytes; large enough for a probe over IPv4 and IPv6.
const SMALL: u32 = 128;

impl Session<'_> {
    /// Probes directions without an answer once more, for an end that is far away or did not run for a while. The agent
    /// sends echo requests (ICMP) as well and stops early where they are answered.
    pub(super) fn ask_again(
        &mut self,
        ways: &mut [PathDirection; 2],
        results: &mut CheckResults,
    ) -> Result<(), LinkError> {
        let unanswered = self.unanswered(ways, results)?;
        if unanswered == [false; 2] {
            return Ok(());
        }
        let asked = (0..2).filter(|index| unanswered[*index]);
        for (index, report) in asked.zip(self.survey(ways, unanswered, self.patient())?) {
            let path = &mut results.paths[index];
            if report.is_dead() {
                path.hint = path.hint.or(report.hint);
                path.observations.unreachable = path
                    .observations
                    .unreachable
                    .or(report.observations.unreachable);
            } else {
                *path = report;
            }
        }
        Ok(())
    }

    /// Which directions have no answer and no explanation yet. Where the user named a port, tries whether another port
    /// is answered.
    fn unanswered(
        &mut self,
        ways: &mut [PathDirection; 2],
        results: &mut CheckResults,
    ) -> Result<[bool; 2], LinkError> {
        let paths = &mut results.paths;
        let mut unanswered = [false; 2];
        // Wrong checksums of probes or answers already explain the fault.
        let spoiled = paths.iter().any(|path| path.bad_checksums > 1);
        let dead: Vec<usize> = (0..paths.len())
            .filter(|index| !spoiled && is_unexplained(&paths[*index]))
            .collect();
        let asked_for = |index: &usize| Some(ways[*index].port) == self.asked.port;
        if dead.iter().any(asked_for) {
            for (index, report) in self.other_ports(ways, &dead)? {
                paths[index].hint = Some(ReachabilityHint::OtherPort(report.port));
            }
            *ways = self.ways(ways[0].secret, results)?;
        }
        for index in dead {
            unanswered[index] = true;
        }
        Ok(unanswered)
    }

    /// The dead directions in which another port is answered, with the report on that port.
    fn other_ports(
        &mut self,
        ways: &[PathDirection; 2],
        dead: &[usize],
    ) -> Result<Vec<(usize, PathReport)>, LinkError> {
        // The responder of a direction is at its receiving host.
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
        // Answers are in the order of the hosts, which is the reverse order of the directions.
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

/// Whether a dead direction has no explanation yet.
fn is_unexplained(path: &PathReport) -> bool {
    path.is_dead() && path.hint.is_none() && path.observations.unreachable.is_none()
}
