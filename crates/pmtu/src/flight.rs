//! Probes in flight over all flows: when the next probe may leave, how long its answer is waited
//! for, and what was lost.
//!
//! What a path carries is unknown at first, so the pace follows the answers. It begins slowly, and
//! doubles when the probes sent at one pace are answered, and the answers arrive as fast as the
//! probes were sent (otherwise a shaper's queue is filling). The bytes unanswered at a time are at
//! most those of the pace in a round trip and [`MAX_QUEUE_DELAY`]. When more than a third is lost beyond the
//! loss at the first pace, our probes have filled a short queue or emptied a policer's bucket: the
//! pace returns to the first one, and from then on stays at or below half of the pace that was too
//! high. Random loss does not depend on the pace and does not slow it down.

mod slowing;

use std::time::Duration;

use crate::config::Config;
use crate::evidence::LossCount;
use crate::pacing::{Pacer, RateLimit};
use crate::rtt::Rtt;

use slowing::RateReduction;

/// A pace is doubled once the bytes of this time at that pace are answered, plus those of four
/// times the variation of round trips.
const PACE_PROOF: Duration = Duration::from_millis(2);
/// The same after a pace was too high: a token bucket that is filling lets much pass at first.
const PACE_PROOF_AFTER_LOSS: Duration = Duration::from_millis(100);
/// Time that our own probes may wait in queues on the path.
const MAX_QUEUE_DELAY: Duration = Duration::from_millis(20);
/// Bytes sent before the first answer is waited for: TCP's initial window (RFC 6928), and a jumbo frame.
const INITIAL_BYTES: u64 = 20_000;
/// Answers are too slow if they come in more than this many times the time in which their probes were sent, plus
/// [`ANSWER_SPREAD_SLACK`] and the variation of round trips.
const MAX_ANSWER_SPREAD: f64 = 1.5;
const ANSWER_SPREAD_SLACK: Duration = Duration::from_millis(1);

/// All probes of all flows, and the pace at which they are sent.
#[derive(Debug)]
pub(crate) struct Flight {
    config: Config,
    pacer: Pacer,
    rtt: Rtt,
    /// Probes in the order of sending.
    sent: Vec<Sent>,
    flows: Vec<Flow>,
    /// Index in `sent`: every probe before it is answered, overtaken by an answer, or overdue.
    first_open: usize,
    /// Index in `sent`: every probe before it is overdue, and its loss has been evaluated.
    evaluated: usize,
    level: RateStep,
    /// Upper bound of the pace, bytes per second: higher paces lost too much.
    most: f64,
    is_lifted: bool,
    /// When the pace was last lowered. The loss of probes sent before that is accounted for.
    slowed_at: Duration,
    /// The last lowering, in case it has to be undone.
    slowed: Option<RateReduction>,
    /// Loss of the last large probes: a bit for each, set if it was lost, and their number. Only sizes
    /// that pass and are at least half of the largest that does: small probes pass where there is no
    /// room for large ones.
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
    /// Bytes of all probes sent up to and including this one.
    until: u64,
    state: ProbeState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeState {
    Open,
    Answered,
    /// The probe never left this host.
    Refused,
}

#[derive(Debug, Default)]
struct Flow {
    /// Index in `sent` of each probe id.
    places: Vec<u32>,
    largest_answered: Option<u32>,
}

/// Answers to probes sent at one pace.
#[derive(Debug, Default, Clone, Copy)]
struct RateStep {
    number: u32,
    bytes: u64,
    /// When the first answer came, and when the probe that it answers was sent.
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
            evaluated: 0,
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

    /// The current pace, bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        self.pacer.rate()
    }

    /// How long an answer is waited for.
    pub(crate) fn wait(&self) -> Duration {
        self.rtt
            .wait(self.config.min_wait)
            .unwrap_or(self.config.wait)
    }

    /// When the next datagram may leave unless answers come earlier.
    pub(crate) fn free_at(&self) -> Duration {
        let free = self.pacer.free_at();
        match self.sent.get(self.first_open) {
            Some(open) if self.is_full() => free.max(open.at + self.leaves_within()),
            _ => free,
        }
    }

    /// How long an unanswered probe counts as in flight. Where probes of a size that does not pass
    /// fill the window, no later probe is sent whose answer could overtake them: so the latest
    /// round trip counts, and not the slowest one.
    fn leaves_within(&self) -> Duration {
        self.wait().min(self.rtt.latest() * 2 + MAX_QUEUE_DELAY)
    }

    /// Whether [`INITIAL_BYTES`] bytes were sent and none was answered.
    pub(crate) fn is_unanswered(&self) -> bool {
        !self.rtt.is_known() && self.bytes() >= INITIAL_BYTES
    }

    /// Whether as many bytes are unanswered as the pace allows.
    fn is_full(&self) -> bool {
        if !self.rtt.is_known() {
            return false;
        }
        let before = self.first_open.checked_sub(1).map(|at| self.sent[at].until);
        let open = self.bytes() - before.unwrap_or(0);
        let allowed = self.pacer.rate() * (self.rtt.least() + MAX_QUEUE_DELAY).as_secs_f64();
        open as f64 > allowed
    }

    fn bytes(&self) -> u64 {
        self.sent.last().map_or(0, |sent| sent.until)
    }

    /// Records a probe of a flow as sent and returns its id.
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
            state: ProbeState::Open,
        });
        id
    }

    fn place(&self, flow: u32, id: u64) -> Option<usize> {
        let places = &self.flows.get(flow as usize)?.places;
        Some(*places.get(usize::try_from(id).ok()?)? as usize)
    }

    /// Records that the last probe did not leave this host after all.
    pub(crate) fn refused(&mut self, flow: u32, id: u64) {
        self.pacer.refund();
        let Some(place) = self.place(flow, id) else {
            return;
        };
        let sent = &mut self.sent[place];
        if sent.state == ProbeState::Open {
            sent.state = ProbeState::Refused;
            sent.until -= u64::from(sent.size);
        }
    }

    /// Records an answer and returns whether it is the first one to its probe.
    pub(crate) fn answered(&mut self, flow: u32, id: u64, whole: bool, now: Duration) -> bool {
        let Some(place) = self.place(flow, id) else {
            return false;
        };
        let sent = self.sent[place];
        if sent.state != ProbeState::Open {
            return false;
        }
        self.sent[place].state = ProbeState::Answered;
        if place < self.evaluated {
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

    /// Doubles the pace once enough of its bytes are answered, unless the answers came too slowly.
    fn raise_rate_if_proven(&mut self, first: (Duration, Duration), sent: Duration, now: Duration) {
        let rate = self.pacer.rate();
        let proven = if self.slowed_at.is_zero() {
            PACE_PROOF
        } else {
            PACE_PROOF_AFTER_LOSS
        };
        let proven = proven + self.rtt.varies() * 4;
        if (self.level.bytes as f64) < rate * proven.as_secs_f64() {
            return;
        }
        let came_in = now.saturating_sub(first.0);
        let sent_in = sent.saturating_sub(first.1);
        let allowed = sent_in.mul_f64(MAX_ANSWER_SPREAD) + ANSWER_SPREAD_SLACK + self.rtt.varies();
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

    /// Evaluates the loss of probes that are overdue; to be called before a probe is sent.
    pub(crate) fn evaluate_losses(&mut self, now: Duration) {
        if !self.rtt.is_known() {
            return;
        }
        let wait = self.wait();
        while let Some(&sent) = self.sent.get(self.evaluated) {
            if sent.at + wait > now {
                break;
            }
            self.evaluated += 1;
            self.first_open = self.first_open.max(self.evaluated);
            self.evaluate_loss(sent, now);
        }
    }

    /// Caps the pace for the rest of the survey; later loss is not attributed to a higher pace.
    pub(crate) fn cap_pace(&mut self, rate: f64, now: Duration) {
        self.most = rate;
        self.pacer.set_rate(rate, now);
        self.next_level();
    }

    /// Loss of the probes from index `before` on whose size passes on their flow and whose answer came or is overdue.
    pub(crate) fn overdue(&self, before: usize, now: Duration) -> LossCount {
        let mut tally = LossCount::default();
        let wait = self.wait();
        for sent in self.sent.iter().skip(before) {
            let passes = Some(sent.size) <= self.flows[sent.flow as usize].largest_answered;
            let over = sent.state == ProbeState::Answered || sent.at + wait <= now;
            if passes && over && sent.state != ProbeState::Refused && self.rtt.is_known() {
                tally += LossCount {
                    sent: 1,
                    lost: u32::from(sent.state == ProbeState::Open),
                };
            }
        }
        tally
    }

    /// Whether a probe of this size or a larger one was answered on the flow.
    pub(crate) fn passes(&self, flow: u32, size: u32) -> bool {
        self.flows[flow as usize].largest_answered >= Some(size)
    }

    /// Number of probes recorded, those that did not leave this host included.
    pub(crate) fn count(&self) -> usize {
        self.sent.len()
    }

    /// Number of datagrams that left this host.
    pub(crate) fn datagrams(&self) -> u32 {
        self.pacer.sent()
    }

    /// Sends at a quarter of the pace from now on.
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
