//! A path as it may be: it drops what is too big, and some of the rest; repeats, reorders, tells, or does not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;
use std::ops::Range;
use std::time::Duration;

use crate::{Outcome, Probe, Prober, Source, TooBig};

/// A simulated path and its responder.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) mtu: u32,
    /// What the sender's own device takes.
    pub(super) local_mtu: u32,
    /// Share of packets lost at random, each way.
    pub(super) loss: f64,
    /// Share of acknowledgements that arrive twice.
    pub(super) duplicate: f64,
    /// One-way delay.
    pub(super) delay: Duration,
    /// The most that is added to it at random, which reorders.
    pub(super) jitter: Duration,
    /// The router that reports too-big packets, if one does.
    pub(super) too_big_from: Option<IpAddr>,
    /// What it reports, if that is not the truth.
    pub(super) claimed_mtu: Option<u32>,
    /// While nothing is sent that arrives.
    pub(super) still: Range<Duration>,
    pub(super) seed: u64,
}

/// How probing a path went.
pub(super) struct Run {
    pub(super) outcome: Outcome,
    pub(super) rounds: u32,
    pub(super) sent: Vec<Probe>,
    pub(super) took: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ack(u64),
    TooBig(u32),
}

/// `SplitMix64`.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Between 0 and 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn happens(&mut self, share: f64) -> bool {
        self.next() < share
    }
}

impl Path {
    pub(super) fn new(mtu: u32) -> Self {
        Self {
            mtu,
            local_mtu: 65_535,
            loss: 0.0,
            duplicate: 0.0,
            delay: Duration::from_micros(100),
            jitter: Duration::ZERO,
            too_big_from: None,
            claimed_mtu: None,
            still: Duration::ZERO..Duration::ZERO,
            seed: 0,
        }
    }

    /// Lets a prober work until it has an outcome.
    pub(super) fn run(&self, mut prober: Prober) -> Run {
        let mut random = Random(self.seed);
        let mut flight = BinaryHeap::new();
        let mut sent = Vec::new();
        let mut now = Duration::ZERO;
        loop {
            while let Some(probe) = prober.poll_transmit(now) {
                sent.push(probe);
                if probe.size > self.local_mtu {
                    prober.on_send_refused(probe.id, Some(self.local_mtu));
                    continue;
                }
                if self.still.contains(&now) {
                    continue;
                }
                for event in self.fate(probe, &mut random) {
                    let jitter = self.jitter.mul_f64(random.next());
                    flight.push(Reverse((now + self.delay * 2 + jitter, event)));
                }
            }
            if let Some(outcome) = prober.outcome() {
                let (outcome, rounds) = (outcome.clone(), prober.rounds());
                assert_eq!(prober.probes() as usize, sent.len());
                return Run {
                    outcome,
                    rounds,
                    sent,
                    took: now,
                };
            }
            let timeout = prober.next_timeout().expect("a timeout while undecided");
            match flight.peek() {
                Some(&Reverse((at, event))) if at <= timeout => {
                    flight.pop();
                    now = now.max(at);
                    self.deliver(event, &mut prober, now);
                }
                _ => now = timeout,
            }
        }
    }

    fn fate(&self, probe: Probe, random: &mut Random) -> Vec<Event> {
        if random.happens(self.loss) || random.happens(self.loss) {
            return Vec::new();
        }
        if probe.size > self.mtu {
            let told = self
                .too_big_from
                .map(|_| self.claimed_mtu.unwrap_or(self.mtu));
            return told.map(Event::TooBig).into_iter().collect();
        }
        let copies = 1 + usize::from(random.happens(self.duplicate));
        vec![Event::Ack(probe.id); copies]
    }

    fn deliver(&self, event: Event, prober: &mut Prober, now: Duration) {
        match (event, self.too_big_from) {
            (Event::Ack(id), _) => prober.on_acked(id, now),
            (Event::TooBig(mtu), Some(router)) => {
                prober.on_too_big(TooBig {
                    mtu,
                    source: Source::Router(router),
                });
            }
            (Event::TooBig(_), None) => {}
        }
    }
}
