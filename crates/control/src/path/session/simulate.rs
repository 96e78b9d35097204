//! Simulates TCP: a transfer in both directions at once, for each value of `net.ipv4.tcp_mtu_probing`.

use std::net::SocketAddr;
use std::time::Duration;

use wirecost_agent::link::LinkError;
use wirecost_agent::protocol::{
    Reply, Request, TransferOrder, TransferReceived, TransferReply, TransferRequest, TransferSent,
};
use wirecost_check::{PathEnd, Simulated};

use super::Session;
use crate::path::step::Simulation;
use crate::random;
use crate::timeouts::PROMPT;

/// Values of `net.ipv4.tcp_mtu_probing`: 0 off, 1 only once a PMTU black hole is detected, 2 always.
const PROBING: [u8; 3] = [0, 1, 2];

impl Session<'_> {
    /// Transfers in both directions for each of these values, sorted by direction.
    pub(in crate::path) fn simulate(
        &mut self,
        wanted: Simulation,
    ) -> Result<Vec<Simulated>, LinkError> {
        self.may_change_settings(true);
        let mut simulated = Vec::new();
        for probing in PROBING {
            simulated.extend(self.under(probing, wanted)?);
        }
        self.may_change_settings(false);
        let first = self.ends[0].host.clone();
        simulated.sort_by_key(|transfer| transfer.from != first);
        Ok(simulated)
    }

    /// Tells the links that the agents must restore the sysctl before they end, which may take longer.
    fn may_change_settings(&mut self, may: bool) {
        for link in &mut self.links {
            link.set_settings_applied(may);
        }
    }

    fn under(&mut self, probing: u8, wanted: Simulation) -> Result<Vec<Simulated>, LinkError> {
        let secret = random::secret(&self.links[0])?;
        let receive = |index: usize| TransferRequest::Receive {
            address: SocketAddr::new(self.ends[index].address, 0),
            secret,
        };
        let requests = [receive(0), receive(1)];
        let listening = self.transfer(requests, PROMPT, |reply| match reply {
            TransferReply::Listening(address) => Some(address),
            _ => None,
        })?;
        let order = |from: usize, to: usize| {
            TransferRequest::Send(TransferOrder {
                from: self.ends[from].address,
                to: listening[to],
                bytes: wanted.bytes,
                limit: wanted.limit,
                secret,
                tcp_mtu_probing: probing,
            })
        };
        let requests = [order(0, 1), order(1, 0)];
        let sent = self.transfer(requests, wanted.limit + PROMPT, |reply| match reply {
            TransferReply::Sent(sent) => Some(sent),
            _ => None,
        })?;
        let requests = [TransferRequest::Received, TransferRequest::Received];
        let [at_first, at_second] = self.transfer(requests, PROMPT, |reply| match reply {
            TransferReply::Received(received) => Some(received),
            _ => None,
        })?;
        let ways = [(0, 1, at_second), (1, 0, at_first)];
        let told = ways.into_iter().zip(sent);
        Ok(told
            .map(|((from, to, received), sent)| {
                let ends = [&self.ends[from], &self.ends[to]];
                said(ends, (probing, wanted.bytes), sent, &received)
            })
            .collect())
    }

    /// Sends one request to each host and waits for both answers. Both are read, also after an error, unless an
    /// interrupt ends the wait.
    fn transfer<T>(
        &mut self,
        requests: [TransferRequest; 2],
        within: Duration,
        wanted: impl Fn(TransferReply) -> Option<T>,
    ) -> Result<[T; 2], LinkError> {
        for (link, request) in self.links.iter_mut().zip(requests) {
            link.send(&Request::Transfer(Box::new(request)))?;
        }
        let mut replies = Vec::new();
        for link in &mut self.links {
            let reply = link.receive(within, self.interrupt);
            if matches!(reply, Err(LinkError::Interrupted)) {
                return Err(LinkError::Interrupted);
            }
            replies.push(reply.and_then(|reply| match reply {
                Reply::Transfer(reply) => {
                    wanted(*reply).ok_or_else(|| link.unexpected_reply("a transfer"))
                }
                _ => Err(link.unexpected_reply("a transfer")),
            }));
        }
        let replies: Vec<T> = replies.into_iter().collect::<Result<_, _>>()?;
        <[T; 2]>::try_from(replies).map_err(|_| self.links[0].unexpected_reply("a transfer"))
    }
}

fn said(
    [from, to]: [&PathEnd; 2],
    (probing, of_bytes): (u8, u64),
    sent: TransferSent,
    received: &TransferReceived,
) -> Simulated {
    let opened = sent.heartbeats == sent.of_heartbeats;
    let recovered = if received.stalled.is_zero() {
        Some(Duration::ZERO)
    } else {
        received.flows_since
    };
    Simulated {
        from: from.host.clone(),
        to: to.host.clone(),
        tcp_mtu_probing: probing,
        congestion_control: sent.congestion_control,
        heartbeats: sent.heartbeats,
        of_heartbeats: sent.of_heartbeats,
        bytes: received.bytes,
        of_bytes,
        seconds: received.took.as_secs_f64(),
        stalled_seconds: received.stalled.as_secs_f64(),
        recovered_after_seconds: recovered
            .filter(|_| opened)
            .map(|after| after.as_secs_f64()),
        mss_before: sent.mss_before,
        mss_after: sent.mss_after,
        retransmits: sent.retransmits,
    }
}
