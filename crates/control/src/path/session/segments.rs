//! Whether TCP's segments arrive as they are sent, and whether what vanishes arrived with a wrong checksum.

use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathDirection, PathReply, PathRequest};
use wirecost_check::{FlowKind, PathReport, Stream};

use super::Session;
use crate::calls::PROMPT;

/// Longer than a stream takes, whose every step waits for two answers.
const STREAMING: Duration = Duration::from_mins(2);

impl Session<'_> {
    /// Where every size passes: whether TCP's small and full segments arrive as they are sent.
    pub(super) fn stream(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &mut [PathReport],
    ) -> Result<(), LinkError> {
        let passes = |path: &PathReport| {
            path.flows.iter().all(|flow| flow.kind.is_told()) && path.failing().next().is_none()
        };
        // The listening host of a direction is the other one, and answers come in the order of the hosts.
        let listen = |host: usize| {
            passes(&paths[1 - host]).then(|| PathRequest::Listen {
                address: self.ends[host].address,
                secret: ways[0].secret,
            })
        };
        let requests = vec![listen(0), listen(1)];
        let wanted: Vec<usize> = (0..2).filter(|host| requests[*host].is_some()).collect();
        let mut orders = vec![None, None];
        for (host, reply) in wanted.iter().zip(self.ask_some(requests, PROMPT)?) {
            let PathReply::Listening(address) = reply else {
                return Err(self.links[*host].unexpected_reply("Listen"));
            };
            let index = 1 - host;
            orders[index] = Some(PathRequest::Stream {
                way: PathDirection {
                    port: address.port(),
                    ..ways[index].clone()
                },
                size: paths[index].wanted.bytes(),
                bytes_per_second: self.asked.bytes_per_s,
            });
        }
        let asked: Vec<usize> = (0..2).filter(|index| orders[*index].is_some()).collect();
        for (index, reply) in asked.into_iter().zip(self.ask_some(orders, STREAMING)?) {
            let PathReply::Streamed(streamed) = reply else {
                return Err(self.links[index].unexpected_reply("Stream"));
            };
            paths[index].stream = Some(streamed);
        }
        Ok(())
    }

    /// Where packets are lost without a word, or a stream was not right: whether they arrived, and the receiving host
    /// dropped them.
    pub(super) fn count_bad_checksums(
        &mut self,
        paths: &mut [PathReport],
    ) -> Result<(), LinkError> {
        let lossy = |path: &PathReport| {
            let stalled = matches!(
                path.stream,
                Some(Stream::SmallStalled | Stream::FullStalled | Stream::Changed)
            );
            stalled || path.failing().any(|flow| flow.kind == FlowKind::BLACK_HOLE)
        };
        let lossy: Vec<usize> = (0..paths.len())
            .filter(|index| lossy(&paths[*index]))
            .collect();
        // As above.
        let requests = (0..2)
            .map(|host| {
                lossy
                    .contains(&(1 - host))
                    .then_some(PathRequest::BadChecksums)
            })
            .collect();
        for (index, reply) in lossy.iter().rev().zip(self.ask_some(requests, PROMPT)?) {
            let PathReply::BadChecksums { udp, tcp } = reply else {
                return Err(self.links[1 - index].unexpected_reply("BadChecksums"));
            };
            paths[*index].bad_checksums = udp;
            paths[*index].bad_segments = tcp;
        }
        Ok(())
    }
}
