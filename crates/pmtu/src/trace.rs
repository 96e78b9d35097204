//! Traces a path: for each hop its address, its round trip, and the largest size that reaches it.
//!
//! As for the [`Locator`](crate::Locator), a router that reports a packet whose TTL ended was
//! reached by it, whatever its size. Routers limit such reports (Linux: 6 at once, then one a
//! second, net/ipv4/icmp.c), so few are provoked: each hop is probed with the size that reached the
//! hop before, and only if that fails with smaller sizes. One hop and size is probed at a time, so
//! that a report that quotes too little of the packet can still be assigned.

use std::net::IpAddr;
use std::time::Duration;

use crate::locate::HopProbe;
use crate::outcome::TooBig;

/// Options of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceConfig {
    /// IP packet size that passes wherever anything does, bytes.
    pub passing: u32,
    /// Sizes that may reach a hop, bytes; this host can send all of them.
    pub sizes: Vec<u32>,
    /// Largest TTL to probe.
    pub max_ttl: u8,
    /// Wait for an answer.
    pub wait: Duration,
}

/// An ICMP message of a hop, or of a router before it, other than the report of an ended TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HopMessage {
    /// A packet is too big; with the MTU that the message names.
    TooBig(TooBig),
    /// The destination is unreachable.
    Unreachable {
        /// Source of the message.
        by: IpAddr,
        /// ICMP code, of type 3 over IPv4 and of type 1 over IPv6.
        code: u8,
    },
}

/// One hop.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedHop {
    /// TTL that ends at the hop, from 1.
    pub ttl: u8,
    /// Source address of the hop's answers; `None` if it does not answer.
    pub address: Option<IpAddr>,
    /// The shortest round trip to the hop.
    pub rtt: Option<Duration>,
    /// Size of the largest packet that reached the hop, bytes.
    pub reached_by: Option<u32>,
    /// The message that came while the hop was probed.
    pub message: Option<HopMessage>,
    /// Whether the hop is the destination.
    pub destination: bool,
}

/// Silent hops in a row after which the trace ends.
const MAX_SILENT_HOPS: usize = 5;
/// Copies of each packet before it counts as unanswered. The second is sent when the wait for the first is over.
const COPIES: u32 = 2;

/// Least wait for an answer.
const MIN_WAIT: Duration = Duration::from_millis(50);

/// Traces one flow.
#[derive(Debug)]
pub struct Tracer {
    config: TraceConfig,
    hops: Vec<TracedHop>,
    /// Sizes still to probe at the current hop: a range of indices of [`TraceConfig::sizes`], which
    /// is ascending. Sizes below the range reached the hop, those above did not.
    range: (usize, usize),
    asking: u32,
    sent: u32,
    last: Option<Duration>,
    first_id: u64,
    next_id: u64,
    done: bool,
}

impl Tracer {
    /// A tracer that begins at TTL 1.
    pub fn new(mut config: TraceConfig) -> Self {
        config.sizes.push(config.passing);
        config.sizes.retain(|&size| size >= config.passing);
        config.sizes.sort_unstable();
        config.sizes.dedup();
        let asking = config.passing;
        let mut tracer = Self {
            config,
            hops: Vec::new(),
            range: (0, 0),
            asking,
            sent: 0,
            last: None,
            first_id: 0,
            next_id: 0,
            done: false,
        };
        tracer.next_hop();
        tracer
    }

    /// The next packet to send. `None`: wait for an answer or for
    /// [`next_timeout`](Self::next_timeout), unless there is a [`result`](Self::result).
    pub fn poll_transmit(&mut self, now: Duration) -> Option<HopProbe> {
        if self.done {
            return None;
        }
        if self.last.is_some_and(|last| now < last + self.wait()) {
            return None;
        }
        if self.sent >= COPIES {
            self.unanswered();
            if self.done {
                return None;
            }
        }
        let id = self.next_id;
        self.next_id += 1;
        self.sent += 1;
        self.last = Some(now);
        Some(HopProbe {
            id,
            ttl: self.hop().ttl,
            size: self.asking,
        })
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if no answer comes; `None` at the end.
    pub fn next_timeout(&self) -> Option<Duration> {
        (!self.done).then(|| self.last.map_or(Duration::ZERO, |last| last + self.wait()))
    }

    /// Records a router's report that a TTL ended. `probe` is `None` where the report quotes too
    /// little to identify it.
    pub fn on_expired(&mut self, probe: Option<u64>, from: IpAddr, now: Duration) {
        let of_another = |hop: &TracedHop| hop.address == Some(from);
        let before = &self.hops[..self.hops.len().saturating_sub(1)];
        if self.done
            || !self.is_current(probe)
            || (probe.is_none() && before.iter().any(of_another))
        {
            return;
        }
        self.hop_mut().address.get_or_insert(from);
        self.reached(now);
    }

    /// Records an answer of the destination; `probe` is `None` where the answer does not identify it.
    pub fn on_arrived(&mut self, probe: Option<u64>, from: IpAddr, now: Duration) {
        if self.done || !self.is_current(probe) {
            return;
        }
        let hop = self.hop_mut();
        hop.destination = true;
        hop.address = Some(from);
        self.reached(now);
    }

    /// Records an ICMP error. Every message, also one of the destination, belongs to the hop that is being probed.
    pub fn on_message(&mut self, message: HopMessage) {
        if self.done {
            return;
        }
        let told = &mut self.hop_mut().message;
        // A message about the size takes precedence over any other.
        if told.is_none() || matches!(message, HopMessage::TooBig(_)) {
            *told = Some(message);
        }
        if let HopMessage::TooBig(too_big) = message
            && self.asking > self.config.passing
        {
            self.add_size(too_big.mtu);
            // The packet that is too big will not be answered.
            self.on_refused();
        }
    }

    /// Adds an MTU named by a router to the sizes to try.
    fn add_size(&mut self, size: u32) {
        let at = self.config.sizes.partition_point(|&known| known < size);
        let is_news = self.config.sizes.get(at) != Some(&size);
        if is_news && (self.config.passing + 1..self.asking).contains(&size) {
            self.config.sizes.insert(at, size);
            self.range.0 += usize::from(at < self.range.0);
            self.range.1 += usize::from(at <= self.range.1);
        }
    }

    /// Records that this host does not send the current size.
    pub fn on_refused(&mut self) {
        if !self.done && self.asking > self.config.passing {
            self.sent = COPIES;
            self.last = None;
        }
    }

    /// Whether an answer to this probe is still waited for.
    pub fn is_awaited(&self, probe: u64) -> bool {
        !self.done && self.last.is_some() && self.is_current(Some(probe))
    }

    /// The hops by distance, once the trace has ended.
    pub fn result(&self) -> Option<&[TracedHop]> {
        self.done.then_some(&self.hops[..])
    }

    /// The hops so far, for when the time runs out.
    pub fn so_far(&self) -> &[TracedHop] {
        &self.hops
    }

    /// Wait for an answer: a large packet takes little longer than a small one did.
    fn wait(&self) -> Duration {
        let known = self.hop().rtt.map(|rtt| (rtt * 3).max(MIN_WAIT));
        known.map_or(self.config.wait, |known| known.min(self.config.wait))
    }

    fn hop(&self) -> &TracedHop {
        &self.hops[self.hops.len() - 1]
    }

    fn hop_mut(&mut self) -> &mut TracedHop {
        let last = self.hops.len() - 1;
        &mut self.hops[last]
    }

    fn is_current(&self, probe: Option<u64>) -> bool {
        self.sent > 0 && probe.is_none_or(|id| (self.first_id..self.next_id).contains(&id))
    }

    fn reached(&mut self, now: Duration) {
        let rtt = self.last.map(|last| now.saturating_sub(last));
        let asking = self.asking;
        let hop = self.hop_mut();
        hop.rtt = hop.rtt.into_iter().chain(rtt).min();
        hop.reached_by = hop.reached_by.max(Some(asking));
        if let Some(position) = self.config.sizes.iter().position(|&size| size == asking) {
            self.range.0 = self.range.0.max(position + 1);
        }
        self.next_size(true);
    }

    fn unanswered(&mut self) {
        if self.hop().reached_by.is_none() {
            // Not even the small packet is answered: the hop is silent, or nothing is there.
            self.finish_hop();
            return;
        }
        let position = self
            .config
            .sizes
            .partition_point(|&size| size < self.asking);
        self.range.1 = self.range.1.min(position);
        self.next_size(false);
    }

    /// Probes the next size of the hop: first the largest possible one, then by bisection.
    fn next_size(&mut self, first: bool) {
        let (low, high) = self.range;
        if low >= high {
            self.finish_hop();
            return;
        }
        let is_first = first && self.hop().reached_by == Some(self.config.passing);
        let at = if is_first {
            high - 1
        } else {
            usize::midpoint(low, high)
        };
        let size = self.config.sizes[at];
        self.ask(size);
    }

    fn ask(&mut self, size: u32) {
        self.asking = size;
        self.sent = 0;
        self.last = None;
        self.first_id = self.next_id;
    }

    fn finish_hop(&mut self) {
        let mute = self.hops.iter().rev();
        let mute = mute.take_while(|hop| hop.address.is_none()).count();
        if self.hop().destination
            || mute >= MAX_SILENT_HOPS
            || self.hop().ttl >= self.config.max_ttl
        {
            if mute >= MAX_SILENT_HOPS {
                let told = self.hops.len() - mute + 1;
                self.hops.truncate(told);
            }
            self.done = true;
        } else {
            self.next_hop();
        }
    }

    /// Begins the next hop. A size that did not reach the hop before is not probed.
    fn next_hop(&mut self) {
        let ttl = self.hops.last().map_or(1, |hop| hop.ttl.saturating_add(1));
        let before = self.hops.iter().rev().find_map(|hop| hop.reached_by);
        let most = before.map_or(self.config.sizes.len(), |most| {
            self.config.sizes.partition_point(|&size| size <= most)
        });
        self.range = (0, most);
        self.hops.push(TracedHop {
            ttl,
            address: None,
            rtt: None,
            reached_by: None,
            message: None,
            destination: false,
        });
        self.ask(self.config.passing);
    }
}

#[cfg(test)]
mod tests;
