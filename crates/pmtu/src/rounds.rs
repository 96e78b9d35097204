//! Rounds of probes over one flow, as every kind of probing needs them: how long to wait, and what was heard.

use std::collections::VecDeque;
use std::time::Duration;

use crate::config::{Arrival, Config, Probe};
use crate::evidence::Log;
use crate::outcome::{CannotTellReason, Limit, Source, TooBig};
use crate::rtt::Rtt;

/// Rounds without an answer in a row after which the path counts as dead. They are waited for 1, 1,
/// 2, 4, 4 and 4 times [`Config::wait`], 0.8 s in all by default: on a busy machine the other end
/// may stand still for a while. Where a round trip is known, each is waited for at least that long,
/// and then nothing is left that could answer. Where none is known, more rounds may follow, each waited
/// for [`LATER_WAIT_FACTOR`] times as long, until [`Config::patience`] is over.
const SILENT_ROUNDS: usize = 6;
const LATER_WAIT_FACTOR: u32 = 14;
/// Number of other probes per control probe, at most.
const CONTROL_EVERY: usize = 8;
/// Number of ICMP messages that are kept: a path has few routers, and forged messages must not fill the memory.
const MAX_MESSAGES: usize = 16;

/// Rounds of probes over one flow.
#[derive(Debug)]
pub(crate) struct Rounds {
    config: Config,
    queue: VecDeque<(u32, bool)>,
    pub(crate) log: Log,
    last_sent: Option<Duration>,
    /// When the answer to the last probe sent arrived.
    last_answered: Option<Duration>,
    rtt: Rtt,
    messages: Vec<TooBig>,
    /// The smallest size that this host refused to send, and the limit that it named, bytes.
    refused: Option<(u32, u32)>,
}

impl Rounds {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config: Config {
                copies: config.copies.max(1),
                ..config
            },
            queue: VecDeque::new(),
            log: Log::default(),
            last_sent: None,
            last_answered: None,
            rtt: Rtt::default(),
            messages: Vec::new(),
            refused: None,
        }
    }

    /// Plans a round. The copies of a size are spread over the round, so that a burst of loss does
    /// not take all of them, with control probes between them. Every copy begins at another size,
    /// so that a host that answers only the first of many probes favours none.
    ///
    /// `deciding` is the number of copies where the round is to decide at once, and not after
    /// another wait. A size that passes is then sent as often, so that one control probe per copy
    /// is enough.
    pub(crate) fn plan(&mut self, sizes: &[u32], deciding: Option<u32>) {
        self.log.start_round();
        let copies = if let Some(copies) = deciding {
            self.config.copies.max(copies)
        } else if sizes.len() > CONTROL_EVERY {
            self.config.copies.min(2)
        } else {
            self.config.copies
        };
        let control = (self.config.control_size, true);
        for copy in 0..copies as usize {
            let mut turned = sizes.to_vec();
            turned.rotate_left(copy * sizes.len() / copies as usize);
            for sizes in turned.chunks(CONTROL_EVERY) {
                self.queue.push_back(control);
                self.queue.extend(sizes.iter().map(|&size| (size, false)));
            }
            if deciding.is_none() || copy + 1 == copies as usize {
                self.queue.push_back(control);
            }
        }
    }

    pub(crate) fn transmit(&mut self, now: Duration) -> Option<Probe> {
        let (size, control) = self.queue.pop_front()?;
        (self.last_sent, self.last_answered) = (Some(now), None);
        Some(Probe {
            id: self.log.sent(size, now),
            size,
            control,
        })
    }

    /// Whether there is work before any answer: to send, or to plan a round.
    pub(crate) fn is_due(&self) -> bool {
        !self.queue.is_empty() || self.log.rounds() == 0 || self.log.current_round_is_answered()
    }

    /// Whether the current round is over, or none was begun.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        self.queue.is_empty()
            && (self.log.rounds() == 0
                || self.deadline().is_none_or(|deadline| now >= deadline)
                || self.log.current_round_is_answered())
    }

    /// When the current round ends if nothing more is heard; `None` while probes are left to send.
    /// Once its last probe is answered, the unanswered ones before it were overtaken: they are
    /// waited for only as long as packets may be reordered (RFC 8985).
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let sent = self.last_sent.filter(|_| self.queue.is_empty())?;
        let silence = self.silence(self.log.unanswered_rounds());
        let waited = sent + self.wait().unwrap_or(self.config.wait).max(silence);
        Some(self.overtaken().map_or(waited, |over| over.min(waited)))
    }

    /// When all unanswered probes of the current round count as overtaken, and so as lost.
    fn overtaken(&self) -> Option<Duration> {
        let answered = self.last_answered.filter(|_| self.queue.is_empty())?;
        Some(answered + self.rtt.reordering(self.config.min_wait))
    }

    /// Least wait for the nth round in a row without an answer.
    fn silence(&self, round: usize) -> Duration {
        if round > SILENT_ROUNDS {
            return self.config.wait * LATER_WAIT_FACTOR;
        }
        self.config.wait * (1 << round.saturating_sub(2).min(2))
    }

    fn wait(&self) -> Option<Duration> {
        self.rtt.wait(self.config.min_wait)
    }

    /// Takes over round trips measured on all flows.
    pub(crate) fn add_rtt(&mut self, rtt: Rtt) {
        self.rtt = rtt;
    }

    /// Marks as lost what has been waited for long enough.
    pub(crate) fn mark_losses(&mut self, now: Duration) {
        let until = self.wait().and_then(|wait| now.checked_sub(wait));
        self.log.overdue_until(until);
        if self.overtaken().is_some_and(|over| now >= over) {
            self.log.overdue_until(self.last_sent);
        }
    }

    /// Whether the last round, which is over, was not answered at all: then only control probes are worth sending.
    pub(crate) fn last_round_is_unanswered(&self) -> bool {
        self.log.unanswered_rounds() > 0
    }

    /// Whether a round is over and nothing was ever answered whole.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.log.largest_answered().is_none() && self.log.rounds() > 1
    }

    /// Records an answer and returns whether it is the first one to a known probe.
    pub(crate) fn on_acked(&mut self, probe: u64, arrival: Arrival, now: Duration) -> bool {
        let Some(sent) = self.log.answered(probe, arrival) else {
            return false;
        };
        self.rtt.measured(sent, now);
        if probe + 1 == u64::from(self.log.probes()) {
            self.last_answered = Some(now);
        }
        true
    }

    pub(crate) fn on_too_big(&mut self, message: TooBig) {
        if self.messages.len() < MAX_MESSAGES && !self.messages.contains(&message) {
            self.messages.push(message);
        }
    }

    /// Records a refused probe and returns its size; nothing of that size or more will be sent.
    pub(crate) fn on_refused(&mut self, probe: u64, mtu: Option<u32>) -> Option<u32> {
        let size = self.log.refused(probe)?;
        let below = size.saturating_sub(1);
        let said = mtu.map_or(below, |mtu| mtu.min(below));
        if self.refused.is_none_or(|(known, _)| size < known) {
            self.refused = Some((size, said));
        }
        self.queue.retain(|&(queued, _)| queued < size);
        Some(size)
    }

    /// The smallest size that this host refused to send.
    pub(crate) fn refused(&self) -> Option<u32> {
        self.refused.map(|(size, _)| size)
    }

    /// MTUs named by messages or by this host: candidates for the search.
    pub(crate) fn hints(&self) -> impl Iterator<Item = u32> {
        let refused = self.refused.map(|(_, mtu)| mtu);
        self.messages
            .iter()
            .map(|message| message.mtu)
            .chain(refused)
    }

    /// Why packets larger than `mtu` do not pass. Of several messages one that names `mtu` is
    /// preferred; otherwise the one with the smallest MTU is reported, which differs from the MTU
    /// found.
    pub(crate) fn limit_above(&self, mtu: u32) -> Limit {
        if self.refused() == Some(mtu + 1) {
            return Limit::Device {
                mtu: self.refused.map_or(mtu, |(_, said)| said),
            };
        }
        if let Some((size, largest)) = self.log.fragmented()
            && size == mtu + 1
        {
            return Limit::Fragmented { largest };
        }
        self.reported_limit(mtu).unwrap_or(Limit::BlackHole)
    }

    /// Why a packet of `size` bytes does not pass, where the largest size that passes is unknown.
    pub(crate) fn limit_of(&self, size: u32) -> Limit {
        match (self.refused, self.log.fragmented()) {
            (Some((refused, mtu)), _) if refused <= size => Limit::Device { mtu },
            (_, Some((fragmented, largest))) if fragmented <= size => Limit::Fragmented { largest },
            _ => self
                .reported_limit(size.saturating_sub(1))
                .unwrap_or(Limit::BlackHole),
        }
    }

    fn reported_limit(&self, mtu: u32) -> Option<Limit> {
        let messages = self.messages.iter();
        let best = messages.min_by_key(|message| (message.mtu != mtu, message.mtu))?;
        Some(match best.source {
            Source::Local => Limit::Device { mtu: best.mtu },
            Source::Router(by) => Limit::Signalled { by, mtu: best.mtu },
        })
    }

    /// The reason to give up, once there is one.
    pub(crate) fn reason_to_give_up(&self) -> Option<CannotTellReason> {
        let silent = self.log.unanswered_rounds();
        let is_over = if self.rtt.is_known() {
            self.log.overdue_rounds() >= SILENT_ROUNDS
        } else {
            let waited: Duration = (1..=silent).map(|round| self.silence(round)).sum();
            waited >= self.config.patience
        };
        if is_over {
            return Some(CannotTellReason::NoAnswer);
        }
        (self.log.rounds() >= self.config.max_rounds).then(|| {
            let passing = self.log.passing();
            CannotTellReason::Undecided {
                rounds: self.log.rounds(),
                sent: passing.sent,
                lost: passing.lost,
            }
        })
    }

    pub(crate) fn control_size(&self) -> u32 {
        self.config.control_size
    }

    pub(crate) fn stop(&mut self) {
        self.queue.clear();
    }
}
