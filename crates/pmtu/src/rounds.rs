//! What every question asked of a path shares: rounds of probes, how long to wait for them, and what was heard.

use std::collections::VecDeque;
use std::time::Duration;

use crate::config::{Arrival, Config, Probe};
use crate::evidence::Log;
use crate::outcome::{CannotTell, Limit, Source, TooBig};
use crate::rtt::Rtt;

/// Rounds without a single answer are waited for 1, 1, 2, 4, 4 and 4 times as long as was configured, 0.8 s in all by
/// default: on a busy machine the other end may stand still for a while. Where a round trip is known they are waited for
/// at least as long as an answer takes, and then nothing is there any longer. Where none is, more may follow, each
/// waited for 14 times as long, until the patience is over.
const SILENT_ROUNDS: usize = 6;
const LATER: u32 = 14;
/// At least one control probe is sent for this many others.
const CONTROL_EVERY: usize = 8;
/// Messages that are kept; a path has few routers, and a flood of lies must not fill the memory.
const MAX_MESSAGES: usize = 16;

/// Rounds of probes over one flow.
#[derive(Debug)]
pub(crate) struct Rounds {
    config: Config,
    queue: VecDeque<(u32, bool)>,
    pub(crate) log: Log,
    last_sent: Option<Duration>,
    /// When the answer to the last probe came.
    last_answered: Option<Duration>,
    rtt: Rtt,
    messages: Vec<TooBig>,
    /// The smallest size that this host refused to send, and the limit that it named.
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

    /// Plans a round. Copies are spread over it, so that a burst of loss does not take all of one size, controls are
    /// put between them, and every copy begins elsewhere, so that whoever answers only the first of many answers no
    /// size more often than another.
    ///
    /// `deciding`: the copies of one that is to decide at once, rather than to cost another wait. What passes is sent as
    /// often, so that one control goes with each.
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

    /// Whether there is something to do before anything is heard: to send, or to plan.
    pub(crate) fn is_due(&self) -> bool {
        !self.queue.is_empty() || self.log.rounds() == 0 || self.log.current_round_is_answered()
    }

    /// Whether the current round has come to its end, or none was begun.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        self.queue.is_empty()
            && (self.log.rounds() == 0
                || self.deadline().is_none_or(|deadline| now >= deadline)
                || self.log.current_round_is_answered())
    }

    /// When the current round ends if nothing more is heard; `None` while there is something to send. Where its last
    /// probe is answered, those before it were overtaken: they are waited for as long as packets may be reordered by
    /// (RFC 8985).
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let sent = self.last_sent.filter(|_| self.queue.is_empty())?;
        let silence = self.silence(self.log.silent_rounds());
        let waited = sent + self.wait().unwrap_or(self.config.wait).max(silence);
        Some(self.overtaken().map_or(waited, |over| over.min(waited)))
    }

    /// When everything that is unanswered of the current round counts as overtaken.
    fn overtaken(&self) -> Option<Duration> {
        let answered = self.last_answered.filter(|_| self.queue.is_empty())?;
        Some(answered + self.rtt.reordering(self.config.min_wait))
    }

    /// How long the nth round without an answer is waited for at least.
    fn silence(&self, round: usize) -> Duration {
        if round > SILENT_ROUNDS {
            return self.config.wait * LATER;
        }
        self.config.wait * (1 << round.saturating_sub(2).min(2))
    }

    fn wait(&self) -> Option<Duration> {
        self.rtt.wait(self.config.min_wait)
    }

    /// What round trips were measured, on other flows as well.
    pub(crate) fn add_rtt(&mut self, rtt: Rtt) {
        self.rtt = rtt;
    }

    /// Takes for lost what had its time.
    pub(crate) fn look(&mut self, now: Duration) {
        let until = self.wait().and_then(|wait| now.checked_sub(wait));
        self.log.overdue_until(until);
        if self.overtaken().is_some_and(|over| now >= over) {
            self.log.overdue_until(self.last_sent);
        }
    }

    /// Whether the last round, which is over, was not answered at all: then only a knock is worth sending.
    pub(crate) fn is_silent(&self) -> bool {
        self.log.silent_rounds() > 0
    }

    /// Whether nothing was ever answered, and a round is over.
    pub(crate) fn is_unheard(&self) -> bool {
        self.log.largest_answered().is_none() && self.log.rounds() > 1
    }

    /// Whether this is the first answer to a probe that is known.
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

    /// The size of the refused probe; nothing of that size or more will be sent.
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

    /// What messages say passes: worth a try.
    pub(crate) fn hints(&self) -> impl Iterator<Item = u32> {
        let refused = self.refused.map(|(_, mtu)| mtu);
        self.messages
            .iter()
            .map(|message| message.mtu)
            .chain(refused)
    }

    /// Why packets larger than `mtu` do not pass. Of several messages the one that names `mtu` is the truth;
    /// otherwise the smallest is told, and differs from what was found.
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
        self.told(mtu).unwrap_or(Limit::BlackHole)
    }

    /// Why a packet of `size` bytes does not pass, when nothing is known of what does.
    pub(crate) fn limit_of(&self, size: u32) -> Limit {
        match (self.refused, self.log.fragmented()) {
            (Some((refused, mtu)), _) if refused <= size => Limit::Device { mtu },
            (_, Some((fragmented, largest))) if fragmented <= size => Limit::Fragmented { largest },
            _ => self
                .told(size.saturating_sub(1))
                .unwrap_or(Limit::BlackHole),
        }
    }

    fn told(&self, mtu: u32) -> Option<Limit> {
        let messages = self.messages.iter();
        let best = messages.min_by_key(|message| (message.mtu != mtu, message.mtu))?;
        Some(match best.source {
            Source::Local => Limit::Device { mtu: best.mtu },
            Source::Router(by) => Limit::Signalled { by, mtu: best.mtu },
        })
    }

    /// Why to give up, when it is time to.
    pub(crate) fn reason_to_give_up(&self) -> Option<CannotTell> {
        let silent = self.log.silent_rounds();
        let is_over = if self.rtt.is_known() {
            self.log.overdue_rounds() >= SILENT_ROUNDS
        } else {
            let waited: Duration = (1..=silent).map(|round| self.silence(round)).sum();
            waited >= self.config.patience
        };
        if is_over {
            return Some(CannotTell::NoAnswer);
        }
        (self.log.rounds() >= self.config.max_rounds).then(|| {
            let passing = self.log.passing();
            CannotTell::Undecided {
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
