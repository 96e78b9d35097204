//! Locates where a size is lost: between which two routers, by probes with a rising TTL.
//!
//! A router reports a packet whose TTL ends there whatever the packet's size (RFC 1812, section
//! 4.3.2.7; Linux looks at the TTL before the MTU of the next link, net/ipv4/ip_forward.c). A
//! router that reports a large packet was reached by it: the loss is behind that router, for
//! certain. A router that reports only small ones was not reached: the loss is before it, unless
//! loss or its rate limit suppressed the reports; small packets sent after the large ones show that
//! it still answers. A switch has no TTL: it is placed between two routers.

use std::net::IpAddr;
use std::time::Duration;

/// Options of locating a loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocateConfig {
    /// IP packet size that passes, bytes; small.
    pub passing: u32,
    /// IP packet size that does not pass, bytes; this host must be able to send it.
    pub failing: u32,
    /// Largest TTL to probe.
    pub max_ttl: u8,
    /// Large packets sent to each router that is probed; at 20 % loss each way, all 14 are lost by
    /// chance once in 1.6 million times.
    pub copies: u32,
    /// Wait for an answer.
    pub wait: Duration,
    /// Upper bound on the pace, bytes per second, above 0: a queue that our own probes fill is not
    /// the place of the loss.
    pub bytes_per_second: f64,
}

impl LocateConfig {
    /// 30 hops, 14 copies, 50 ms, 40 MB/s.
    pub const fn new(passing: u32, failing: u32) -> Self {
        Self {
            passing,
            failing,
            max_ttl: 30,
            copies: 14,
            wait: Duration::from_millis(50),
            bytes_per_second: 40e6,
        }
    }
}

/// A packet to send with the given TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopProbe {
    /// Id of the probe, counted from 0.
    pub id: u64,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Size of the IP packet in bytes.
    pub size: u32,
}

/// One end of the path segment on which a size is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathPoint {
    /// The sending host.
    Sender,
    /// A router that reported the end of a TTL.
    Router {
        /// The TTL that ends at the router.
        ttl: u8,
        /// Source address of its reports.
        address: IpAddr,
    },
    /// The destination host.
    Destination,
}

/// The path segment on which a size is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The routers of the path by TTL, from 1; `None` for a hop that does not answer.
    pub hops: Vec<Option<IpAddr>>,
    /// The last point that large packets certainly reach.
    pub after: PathPoint,
    /// The first point that large packets do not reach; it answers small ones before and after.
    pub before: PathPoint,
    /// Number of packets sent.
    pub probes: u32,
}

/// Why the loss could not be located.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotLocated {
    /// The size that should fail arrived.
    #[error("a packet of the failing size arrived while looking for the place")]
    Passes,
}

/// Silent hops in a row after which discovery ends.
const MAX_SILENT_HOPS: usize = 5;
/// Packets sent to discover a hop.
const TRIES: u32 = 3;
/// Reports of small packets that show that a router still answers after large ones. One may be just
/// the report that its rate limit allows at that moment (Linux: 6 at once, then one a second).
const SMALL_REPORTS: u32 = 2;

/// Locates where a size is lost, on one flow.
///
/// One hop and size is probed at a time, so that a report that quotes too little of the packet can still be assigned.
#[derive(Debug)]
pub struct Locator {
    config: LocateConfig,
    stage: Stage,
    /// Packets sent in this stage, how many are sent before answers are waited for, and when the last one was sent.
    sent: u32,
    allowed: u32,
    last: Option<Duration>,
    /// When the next packet may leave.
    free_at: Duration,
    next_id: u64,
    /// Reports in this stage, and the probe id of the last one.
    reports: u32,
    reported: Option<u64>,
    /// First probe id of the current stage.
    first_id: u64,
    hops: Vec<Option<IpAddr>>,
    /// TTLs of the routers that answer, ascending. Those before index `low` are reached by large
    /// packets, those from `high` on are not.
    asked: Vec<u8>,
    low: usize,
    high: usize,
    done: Option<Result<Located, NotLocated>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Discovers the router at a TTL.
    Discover { ttl: u8 },
    /// Probes whether large packets reach a router, an index of `asked`.
    Large { position: usize },
    /// Probes whether that router still answers small packets.
    Still { position: usize },
}

impl Locator {
    /// A locator that begins at TTL 1.
    pub fn new(config: LocateConfig) -> Self {
        Self {
            config: LocateConfig {
                copies: config.copies.max(1),
                max_ttl: config.max_ttl.max(1),
                ..config
            },
            stage: Stage::Discover { ttl: 1 },
            sent: 0,
            allowed: 1,
            last: None,
            free_at: Duration::ZERO,
            next_id: 0,
            reports: 0,
            reported: None,
            first_id: 0,
            hops: Vec::new(),
            asked: Vec::new(),
            low: 0,
            high: 0,
            done: None,
        }
    }

    /// The next packet to send. `None`: wait for an answer or for
    /// [`next_timeout`](Self::next_timeout), unless there is a [`result`](Self::result).
    pub fn poll_transmit(&mut self, now: Duration) -> Option<HopProbe> {
        if self.done.is_some() {
            return None;
        }
        if self.sent >= self.allowed {
            if now < self.next_timeout()? {
                return None;
            }
            self.unanswered();
            if self.done.is_some() {
                return None;
            }
        }
        if now < self.free_at {
            return None;
        }
        let (ttl, size) = match self.stage {
            Stage::Discover { ttl } => (ttl, self.config.passing),
            Stage::Large { position } => (self.asked[position], self.config.failing),
            Stage::Still { position } => (self.asked[position], self.config.passing),
        };
        let id = self.next_id;
        self.next_id += 1;
        self.sent += 1;
        self.last = Some(now);
        let each = f64::from(size) / self.config.bytes_per_second;
        self.free_at = now + Duration::try_from_secs_f64(each).unwrap_or_default();
        Some(HopProbe { id, ttl, size })
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if no answer comes; `None` at the end.
    pub fn next_timeout(&self) -> Option<Duration> {
        if self.done.is_some() {
            return None;
        }
        let last = self.last.unwrap_or_default();
        let complete = self.sent >= self.allowed;
        Some(if complete {
            last + self.config.wait
        } else {
            self.free_at
        })
    }

    /// Records a router's report that a TTL ended. `probe` is `None` where the report quotes too
    /// little to identify it.
    pub fn on_expired(&mut self, probe: Option<u64>, from: IpAddr) {
        if !self.is_current(probe) || (probe.is_none() && self.is_anothers(from)) {
            return;
        }
        match self.stage {
            Stage::Discover { ttl } => {
                self.hops.push(Some(from));
                self.discover(ttl.saturating_add(1));
            }
            Stage::Large { position } => {
                self.low = position + 1;
                self.bisect();
            }
            Stage::Still { position } => {
                if probe.is_some() && probe == self.reported {
                    return;
                }
                self.reported = probe;
                self.reports += 1;
                if self.reports >= SMALL_REPORTS {
                    self.high = position;
                    self.bisect();
                }
            }
        }
    }

    /// Records an answer of the destination.
    pub fn on_arrived(&mut self, probe: u64) {
        if !self.is_current(Some(probe)) {
            return;
        }
        match self.stage {
            Stage::Discover { .. } => self.reached(),
            Stage::Large { .. } => self.done = Some(Err(NotLocated::Passes)),
            Stage::Still { .. } => {}
        }
    }

    /// The result, once there is one.
    pub fn result(&self) -> Option<&Result<Located, NotLocated>> {
        self.done.as_ref()
    }

    fn is_current(&self, probe: Option<u64>) -> bool {
        self.done.is_none()
            && self.sent > 0
            && probe.is_none_or(|id| (self.first_id..self.next_id).contains(&id))
    }

    /// Whether the address belongs to another hop than the one that is being probed.
    fn is_anothers(&self, from: IpAddr) -> bool {
        let asked = match self.stage {
            Stage::Discover { ttl } => ttl,
            Stage::Large { position } | Stage::Still { position } => self.asked[position],
        };
        let mut hops = self.hops.iter().enumerate();
        hops.any(|(index, hop)| *hop == Some(from) && index + 1 != usize::from(asked))
    }

    fn begin(&mut self, stage: Stage) {
        self.stage = stage;
        self.sent = 0;
        (self.reports, self.reported) = (0, None);
        self.allowed = match stage {
            Stage::Large { .. } => self.config.copies,
            Stage::Discover { .. } => 1,
            Stage::Still { .. } => SMALL_REPORTS,
        };
        self.first_id = self.next_id;
    }

    /// The packets of this stage were not answered in time.
    fn unanswered(&mut self) {
        match self.stage {
            Stage::Discover { .. } if self.allowed < TRIES => self.allowed = TRIES,
            Stage::Still { .. } if self.allowed < SMALL_REPORTS + TRIES => {
                self.allowed = SMALL_REPORTS + TRIES;
            }
            Stage::Discover { ttl } => {
                self.hops.push(None);
                self.discover(ttl.saturating_add(1));
            }
            Stage::Large { position } => self.begin(Stage::Still { position }),
            Stage::Still { position } => {
                // The router answers no more, so it is no evidence.
                self.asked.remove(position);
                self.high -= 1;
                self.bisect();
            }
        }
    }

    fn discover(&mut self, ttl: u8) {
        let mute = self.hops.iter().rev().take_while(|hop| hop.is_none());
        if ttl > self.config.max_ttl || mute.count() >= MAX_SILENT_HOPS {
            self.reached();
        } else {
            self.begin(Stage::Discover { ttl });
        }
    }

    /// Discovery has ended: begins the bisection over the routers that answered.
    fn reached(&mut self) {
        self.asked = (1..=self.config.max_ttl)
            .zip(&self.hops)
            .filter_map(|(ttl, hop)| hop.map(|_| ttl))
            .collect();
        (self.low, self.high) = (0, self.asked.len());
        self.bisect();
    }

    fn bisect(&mut self) {
        if self.low < self.high {
            let position = usize::midpoint(self.low, self.high);
            self.begin(Stage::Large { position });
            return;
        }
        let router = |position: usize| {
            let ttl = *self.asked.get(position)?;
            let address = (*self.hops.get(usize::from(ttl) - 1)?)?;
            Some(PathPoint::Router { ttl, address })
        };
        let before_low = self.low.checked_sub(1).and_then(router);
        self.done = Some(Ok(Located {
            after: before_low.unwrap_or(PathPoint::Sender),
            before: router(self.high).unwrap_or(PathPoint::Destination),
            hops: self.hops.clone(),
            probes: self.next_id as u32,
        }));
    }
}

#[cfg(test)]
mod tests;
