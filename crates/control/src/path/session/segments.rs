//! Whether TCP segments arrive unchanged, and whether lost packets arrived with a wrong checksum.

use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{PathDirection, PathReply, PathRequest};
use wirecost_check::{FlowKind, PathReport, ReachabilityHint, Stream};

use super::Session;
use crate::timeouts::PROMPT;

/// Time-out of a short TCP stream; longer than it takes, since each of its steps has a limit of its own.
const STREAMING: Duration = Duration::from_mins(2);

impl Session<'_> {
    /// Sends a short TCP stream, small segments and then full ones, in directions where datagrams of every size pass or
    /// none does.
    pub(super) fn stream(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &mut [PathReport],
    ) -> Result<(), LinkError> {
        let wanted = |index: usize| {
            let path = &paths[index];
            let every = path.flows.iter().all(|flow| flow.kind.is_known());
            let passes = every && path.failing().next().is_none();
            // No connection can be opened to a host behind NAT.
            let translated = paths[1 - index].mapped.is_some();
            // Wrong checksums already explain the fault.
            let spoiled = paths.iter().any(|path| path.bad_checksums > 1);
            !translated && (passes || (is_unanswered(path) && !spoiled))
        };
        let wanted: Vec<usize> = (0..2).filter(|index| wanted(*index)).collect();
        let mut orders = vec![None, None];
        for (index, way) in self.listen(ways, &wanted)? {
            orders[index] = Some(PathRequest::Stream {
                way,
                size: paths[index].required.bytes(),
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

    /// Finds which TCP segment sizes pass, in directions with a PMTU black hole for datagrams or a stream that stalled
    /// with full segments.
    pub(super) fn segments(
        &mut self,
        ways: &[PathDirection; 2],
        paths: &mut [PathReport],
    ) -> Result<(), LinkError> {
        let wanted = |path: &PathReport| {
            let vanish = path.failing().any(|flow| flow.kind == FlowKind::BLACK_HOLE);
            vanish || path.stream == Some(Stream::FullStalled)
        };
        let wanted: Vec<usize> = (0..2).filter(|index| wanted(&paths[*index])).collect();
        let mut orders = vec![None, None];
        for (index, way) in self.listen(ways, &wanted)? {
            orders[index] = Some(PathRequest::Segments {
                way,
                size: paths[index].required.bytes(),
                smaller: paths[index].stream == Some(Stream::FullStalled),
                bytes_per_second: self.asked.bytes_per_s,
            });
        }
        let asked: Vec<usize> = (0..2).filter(|index| orders[*index].is_some()).collect();
        for (index, reply) in asked.into_iter().zip(self.ask_some(orders, STREAMING)?) {
            let PathReply::Segments(segments) = reply else {
                return Err(self.links[index].unexpected_reply("Segments"));
            };
            paths[index].segments = Some(segments);
        }
        Ok(())
    }

    /// Has the receiving hosts of these directions listen for TCP; returns each direction's index, and the direction
    /// with the listening port.
    fn listen(
        &mut self,
        ways: &[PathDirection; 2],
        wanted: &[usize],
    ) -> Result<Vec<(usize, PathDirection)>, LinkError> {
        // The listening host of a direction is its receiver. Answers are in the order of the hosts.
        let listen = |host: usize| {
            wanted.contains(&(1 - host)).then(|| PathRequest::Listen {
                address: self.ends[host].address,
                secret: ways[0].secret,
            })
        };
        let requests = vec![listen(0), listen(1)];
        let hosts: Vec<usize> = (0..2).filter(|host| requests[*host].is_some()).collect();
        let mut listening = Vec::new();
        for (host, reply) in hosts.iter().zip(self.ask_some(requests, PROMPT)?) {
            let PathReply::Listening(address) = reply else {
                return Err(self.links[*host].unexpected_reply("Listen"));
            };
            let index = 1 - host;
            let port = address.port();
            listening.push((
                index,
                PathDirection {
                    port,
                    ..ways[index].clone()
                },
            ));
        }
        Ok(listening)
    }

    /// Reads the checksum error counters of the hosts where packets are lost without ICMP or a stream failed: whether
    /// the receiving host dropped packets that arrived.
    pub(super) fn count_bad_checksums(
        &mut self,
        paths: &mut [PathReport],
    ) -> Result<(), LinkError> {
        let lossy = |path: &PathReport| {
            let wrong = matches!(
                path.stream,
                Some(
                    Stream::SmallStalled
                        | Stream::FullStalled
                        | Stream::Changed
                        | Stream::NotConnected
                )
            );
            wrong
                || is_unanswered(path)
                || matches!(path.hint, Some(ReachabilityHint::NoNeighbour(_)))
                || path.failing().any(|flow| flow.kind == FlowKind::BLACK_HOLE)
        };
        if !paths.iter().any(lossy) {
            return Ok(());
        }
        // A host's counters include probes that it receives and answers to its own probes.
        let requests = vec![PathRequest::BadChecksums, PathRequest::BadChecksums];
        for (host, reply) in self.ask(requests, PROMPT)?.into_iter().enumerate() {
            let PathReply::BadChecksums { udp, tcp } = reply else {
                return Err(self.links[host].unexpected_reply("BadChecksums"));
            };
            paths[1 - host].bad_checksums = udp;
            paths[1 - host].bad_segments = tcp;
        }
        Ok(())
    }
}

/// Whether datagrams leave the sender, and none is answered.
fn is_unanswered(path: &PathReport) -> bool {
    path.is_dead()
        && !matches!(
            path.hint,
            Some(ReachabilityHint::NoRoute | ReachabilityHint::NoNeighbour(_))
        )
}
