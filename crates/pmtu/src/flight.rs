//! What is under way, over all flows: when the next probe may leave, how long its answer is waited for, and what was
//! lost.
//!
//! The pace follows what is answered, because what a path carries is not known before: it begins slowly, and doubles
//! when what was sent at one pace is answered, and as fast as it was sent (a shaper's queue would be filling
//! otherwise). What may be unanswered at a time is what the pace allows in a round trip and [`QUEUED`]. Where more than a third is lost that
//! was not at the first pace, a queue was too short or a policer's bucket empty, and that was us: it goes back to the
//! first pace, and from then on only up to half of what was too much. Random loss does not follow the pace and does
//! not slow it down.

mod slowing;

use std::time::Duration;

use crate::config::Config;
use crate::evidence::LossCount;
use crate::pacing::{Pacer, RateLimit};
use crate::rtt::Rtt;

use slowing::Slowed;

/// What an answer has to come for at a pace before that is doubled: so long's worth of bytes, and four times what
/// round trips vary by.
const PROVEN: Duration = Duration::from_millis(2);
/// The same once a pace was too much: a bucket that is filling lets much pass at first.
const PROVEN_AGAIN: Duration = Duration::from_millis(100);
/// How long probes may wait in queues on the way that are ours alone.
const QUEUED: Duration = Duration::from_millis(20);
/// Bytes after which it is waited for the first answer: what TCP sends at once (RFC 6928), and a jumbo frame.
const UNHEARD: u64 = 20_000;
/// Answers that come in this many times what it took to send what they answer are too slow.
const SPREAD: f64 = 1.5;
const SPREAD_BESIDE: Duration = Duration::from_millis(1);

/// Everything that was sent, and at which pace.
#[derive(Debug)]
pub(crate) struct Flight {
    config: Config,
    pacer: Pacer,
    rtt: Rtt,
    /// In the order of sending.
    sent: Vec<Sent>,
    flows: Vec<Flow>,
    /// Everything before this one is answered, or was overtaken by an answer, or is overdue.
    first_open: usize,
    /// Everything before this one is overdue, and was looked at.
    looked: usize,
    level: RateStep,
    /// No pace above this one: it was too much.
    most: f64,
    is_lifted: bool,
    /// Loss of what was sent before is known and was acted on.
    slowed_at: Duration,
    /// What it was, to take it back.
    slowed: Option<Slowed>,
    /// The last probes that can pass, of those that are half as large as the largest or more: a bit for each that was
    /// lost. Small ones pass where there is no room for large ones.
    last: (u32, u32),
    at_first_pace: LossCount,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    flow: u32,
    size: u32,
    at: Duration,
    level: u32,
    rate: f64,
    /// Bytes sent until then, with this one.
    until: u64,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Answered,
    /// Never left this host.
    Refused,
}

#[derive(Debug, Default)]
struct Flow {
    /// Where each id is in `sent`.
    places: Vec<u32>,
    largest_answered: Option<u32>,
}

/// What is answered at one pace.
#[derive(Debug, Default, Clone, Copy)]
struct RateStep {
    number: u32,
    bytes: u64,
    /// When the first answer came, and when its probe was sent.
    first: Option<(Duration, Duration)>,
}

impl Flight {
    pub(crate) fn new(flows: u32, config: Config, pace: RateLimit) -> Self {
        Self {
            config,
            pacer: Pacer::new(pace),
            rtt: Rtt::default(),
            sent: Vec::new(),
            flows: (0..flows).map(|_| Flow::default()).collect(),
            first_open: 0,
            looked: 0,
            level: RateStep::default(),
            most: f64::INFINITY,
            is_lifted: false,
            slowed_at: Duration::ZERO,
            slowed: None,
            last: (0, 0),
            at_first_pace: LossCount::default(),
        }
    }

    pub(crate) fn rtt(&self) -> Rtt {
        self.rtt
    }

    /// Bytes per second that the path was found to carry, or that it is asked at.
    pub(crate) fn rate(&self) -> f64 {
        self.pacer.rate()
    }

    /// How long an answer may take.
    pub(crate) fn wait(&self) -> Duration {
        self.rtt
            .wait(self.config.min_wait)
            .unwrap_or(self.config.wait)
    }

    /// When the next datagram may leave, unless answers come before.
    pub(crate) fn free_at(&self) -> Duration {
        let free = self.pacer.free_at();
        match self.sent.get(self.first_open) {
            Some(open) if self.is_full() => free.max(open.at + self.leaves_within()),
            _ => free,
        }
    }

    /// How long a probe counts as on its way. Where one of a size that does not pass fills what may be unanswered, no later
    /// one is sent whose answer would overtake it: then the round trips of now count, and not those of a while ago.
    fn leaves_within(&self) -> Duration {
        self.wait().min(self.rtt.latest() * 2 + QUEUED)
    }

    /// Whether enough was sent to be answered, and nothing was.
    pub(crate) fn is_unheard(&self) -> bool {
        !self.rtt.is_known() && self.bytes() >= UNHEARD
    }

    /// Whether as much is unanswered as may be.
    fn is_full(&self) -> bool {
        if !self.rtt.is_known() {
            return false;
        }
        let before = self.first_open.checked_sub(1).map(|at| self.sent[at].until);
        let open = self.bytes() - before.unwrap_or(0);
        let allowed = self.pacer.rate() * (self.rtt.least() + QUEUED).as_secs_f64();
        open as f64 > allowed
    }

    fn bytes(&self) -> u64 {
        self.sent.last().map_or(0, |sent| sent.until)
    }

    /// A probe of a flow leaves; its id.
    pub(crate) fn sent(&mut self, flow: u32, size: u32, now: Duration) -> u64 {
        let until = self.bytes() + u64::from(size);
        self.pacer.charge(size, now);
        let places = &mut self.flows[flow as usize].places;
        let id = places.len() as u64;
        places.push(self.sent.len() as u32);
        self.sent.push(Sent {
            flow,
            size,
            at: now,
            level: self.level.number,
            rate: self.pacer.rate(),
            until,
            fate: Fate::Open,
        });
        id
    }

    fn place(&self, flow: u32, id: u64) -> Option<usize> {
        let places = &self.flows.get(flow as usize)?.places;
        Some(*places.get(usize::try_from(id).ok()?)? as usize)
    }

    /// The last probe did not leave this host after all.
    pub(crate) fn refused(&mut self, flow: u32, id: u64) {
        self.pacer.refund();
        let Some(place) = self.place(flow, id) else {
            return;
        };
        let sent = &mut self.sent[place];
        if sent.fate == Fate::Open {
            sent.fate = Fate::Refused;
            sent.until -= u64::from(sent.size);
        }
    }

    /// A probe was answered; whether that is the first answer to it.
    pub(crate) fn answered(&mut self, flow: u32, id: u64, whole: bool, now: Duration) -> bool {
        let Some(place) = self.place(flow, id) else {
            return false;
        };
        let sent = self.sent[place];
        if sent.fate != Fate::Open {
            return false;
        }
        self.sent[place].fate = Fate::Answered;
        if place < self.looked {
            self.was_late(sent, now);
        }
        self.rtt.measured(sent.at, now);
        let flow = &mut self.flows[flow as usize];
        if whole {
            flow.largest_answered = flow.largest_answered.max(Some(sent.size));
        }
        self.first_open = self.first_open.max(place + 1);
        if sent.level == self.level.number {
            self.level.bytes += u64::from(sent.size);
            let first = *self.level.first.get_or_insert((now, sent.at));
            self.raise_rate_if_proven(first, sent.at, now);
        }
        true
    }

    /// Doubles the pace where it is proven.
    fn raise_rate_if_proven(&mut self, first: (Duration, Duration), sent: Duration, now: Duration) {
        let rate = self.pacer.rate();
        let proven = if self.slowed_at.is_zero() {
            PROVEN
        } else {
            PROVEN_AGAIN
        };
        let proven = proven + self.rtt.varies() * 4;
        if (self.level.bytes as f64) < rate * proven.as_secs_f64() {
            return;
        }
        let came_in = now.saturating_sub(first.0);
        let sent_in = sent.saturating_sub(first.1);
        let allowed = sent_in.mul_f64(SPREAD) + SPREAD_BESIDE + self.rtt.varies();
        if came_in <= allowed && rate < self.most {
            self.pacer.set_rate((rate * 2.0).min(self.most), now);
        }
        self.next_level();
    }

    fn next_level(&mut self) {
        self.level = RateStep {
            number: self.level.number + 1,
            ..RateStep::default()
        };
    }

    /// Looks at what is overdue; to be called before something is sent.
    pub(crate) fn look(&mut self, now: Duration) {
        if !self.rtt.is_known() {
            return;
        }
        let wait = self.wait();
        while let Some(&sent) = self.sent.get(self.looked) {
            if sent.at + wait > now {
                break;
            }
            self.looked += 1;
            self.first_open = self.first_open.max(self.looked);
            self.look_at_loss(sent, now);
        }
    }

    /// Back to the first pace, for good: what is lost then is not lost to the pace.
    pub(crate) fn stay_slow(&mut self, rate: f64, now: Duration) {
        self.most = rate;
        self.pacer.set_rate(rate, now);
        self.next_level();
    }

    /// Probes sent, but for the `before` first: those of sizes that pass whose answers are there or overdue, and how many
    /// are missing.
    pub(crate) fn overdue(&self, before: usize, now: Duration) -> LossCount {
        let mut tally = LossCount::default();
        let wait = self.wait();
        for sent in self.sent.iter().skip(before) {
            let passes = Some(sent.size) <= self.flows[sent.flow as usize].largest_answered;
            let over = sent.fate == Fate::Answered || sent.at + wait <= now;
            if passes && over && sent.fate != Fate::Refused && self.rtt.is_known() {
                tally += LossCount {
                    sent: 1,
                    lost: u32::from(sent.fate == Fate::Open),
                };
            }
        }
        tally
    }

    /// Flows on which something of this size was answered, or larger.
    pub(crate) fn passes(&self, flow: u32, size: u32) -> bool {
        self.flows[flow as usize].largest_answered >= Some(size)
    }

    /// How many are in the order of sending.
    pub(crate) fn count(&self) -> usize {
        self.sent.len()
    }

    /// Datagrams that left this host.
    pub(crate) fn datagrams(&self) -> u32 {
        self.pacer.sent()
    }

    /// Sends more slowly from now on than it would.
    pub(crate) fn slow_down(&mut self) {
        self.pacer.slow_down();
    }

    pub(crate) fn is_exhausted(&self, now: Duration) -> bool {
        self.pacer.is_exhausted(now, self.wait())
    }

    pub(crate) fn ends_at(&self) -> Option<Duration> {
        self.pacer.ends_at(self.wait())
    }

    pub(crate) fn is_free(&self, now: Duration) -> bool {
        now >= self.free_at()
    }
}
