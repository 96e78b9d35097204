//! The machine: rounds of probes, each planned from what the ones before have shown.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::config::{Config, Probe};
use crate::evidence::{ERROR, ERROR_IN_SEARCH, Log};
use crate::outcome::{CannotTell, Outcome, Source, TooBig};
use crate::sizes::between;

/// Consecutive rounds without a single answer after which nothing is there to answer.
const SILENT_ROUNDS: usize = 3;
/// At least one control probe is sent for this many others.
const CONTROL_EVERY: usize = 8;
/// Answers slower than half the wait stretch it, at most to this many times what was configured.
const MAX_STRETCH: u32 = 8;

/// Proves or searches a path MTU: see the crate's documentation for the loop around it.
///
/// `now` is the time since any fixed moment, and never goes back.
#[derive(Debug)]
pub struct Prober {
    config: Config,
    /// The largest size of interest: the one to prove, or the upper end of the search.
    high: u32,
    /// Whether `high` is to be proven; a search may follow.
    proof: bool,
    stage: Stage,
    search: Option<Search>,
    queue: VecDeque<(u32, bool)>,
    log: Log,
    wait: Duration,
    deadline: Option<Duration>,
    hint: Option<TooBig>,
    /// The smallest size that this host refused to send.
    refused: Option<u32>,
    outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Proof,
    Search,
}

#[derive(Debug)]
struct Search {
    low: u32,
    likely: Vec<u32>,
}

impl Prober {
    /// Proves that the path carries IP packets of exactly `size` bytes: [`Outcome::Proven`] with the first
    /// acknowledgement, [`Outcome::TooBig`] when it is sure that they do not pass.
    pub fn verify(size: u32, config: Config) -> Self {
        Self::new(size, Stage::Proof, None, config)
    }

    /// Searches the largest packet that passes, from `low` to `high` bytes, trying `likely_sizes` first:
    /// [`Outcome::Carries`]. Where not even `low` passes, the search goes on below it.
    pub fn search(low: u32, high: u32, likely_sizes: Vec<u32>, config: Config) -> Self {
        let search = Search {
            low: low.min(high),
            likely: likely_sizes,
        };
        Self::new(high, Stage::Search, Some(search), config)
    }

    /// Lets a failed proof go on to search what the path does carry, from `low` bytes up, so that
    /// [`Outcome::TooBig`] can tell.
    #[must_use]
    pub fn or_search(mut self, low: u32, likely_sizes: Vec<u32>) -> Self {
        self.search = Some(Search {
            low: low.min(self.high),
            likely: likely_sizes,
        });
        self
    }

    fn new(high: u32, stage: Stage, search: Option<Search>, config: Config) -> Self {
        Self {
            config: Config {
                copies: config.copies.max(1),
                control_size: config.control_size.min(high),
                ..config
            },
            high,
            proof: stage == Stage::Proof,
            stage,
            search,
            queue: VecDeque::new(),
            log: Log::default(),
            wait: config.wait,
            deadline: None,
            hint: None,
            refused: None,
            outcome: None,
        }
    }

    /// The next probe to send, `None` when there is nothing to send now: then wait for an answer or
    /// [`next_timeout`](Self::next_timeout), unless there is an [`outcome`](Self::outcome).
    pub fn poll_transmit(&mut self, now: Duration) -> Option<Probe> {
        self.on_timeout(now);
        let (size, control) = self.queue.pop_front()?;
        self.deadline = Some(now + self.wait);
        Some(Probe {
            id: self.log.sent(size, now),
            size,
            control,
        })
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if nothing is heard: the end of the current round.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.deadline
            .filter(|_| self.outcome.is_none() && self.queue.is_empty())
    }

    /// How it ended, once it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Probes handed out so far.
    pub fn probes(&self) -> u32 {
        self.log.probes()
    }

    /// Rounds begun so far.
    pub fn rounds(&self) -> u32 {
        self.log.rounds()
    }

    /// The other end acknowledged a probe. Duplicates and late ones are welcome, unknown ids are ignored.
    pub fn on_acked(&mut self, probe: u64, now: Duration) {
        let Some(sent) = self.log.answered(probe) else {
            return;
        };
        let slow = now.saturating_sub(sent) * 2;
        if slow > self.wait {
            let wait = slow.min(self.config.wait * MAX_STRETCH).max(self.wait);
            self.deadline = self
                .deadline
                .map(|deadline| deadline + wait.saturating_sub(self.wait));
            self.wait = wait;
        }
        if self.log.largest_answered() >= Some(self.high) {
            self.end(if self.proof {
                Outcome::Proven { size: self.high }
            } else {
                Outcome::Carries {
                    mtu: self.high,
                    verified_above: false,
                    hint: None,
                }
            });
        }
    }

    /// A message said that a packet was too big. It guides the search and is kept for the outcome, never believed.
    pub fn on_too_big(&mut self, message: TooBig) {
        if self.hint.is_none_or(|known| message.mtu < known.mtu) {
            self.hint = Some(message);
        }
    }

    /// This host refused to send a probe because of its size (`EMSGSIZE`), and said its limit if it knows one. Nothing
    /// of that size or more will be sent.
    pub fn on_send_refused(&mut self, probe: u64, mtu: Option<u32>) {
        let Some(size) = self.log.refused(probe) else {
            return;
        };
        let below = size.saturating_sub(1);
        self.on_too_big(TooBig {
            mtu: mtu.map_or(below, |mtu| mtu.min(below)),
            source: Source::Local,
        });
        self.refused = Some(self.refused.map_or(size, |known| known.min(size)));
        self.queue.retain(|&(queued, _)| queued < size);
        if size <= self.config.control_size {
            self.give_up(CannotTell::Refused);
        } else if self.stage == Stage::Proof {
            self.proof_failed();
        }
    }

    /// Ends the round if it is over at `now`, and plans the next one.
    /// [`poll_transmit`](Self::poll_transmit) does this by itself.
    pub fn on_timeout(&mut self, now: Duration) {
        if self.outcome.is_some() || !self.queue.is_empty() {
            return;
        }
        if self.log.rounds() > 0 {
            let over = self.deadline.is_none_or(|deadline| now >= deadline);
            if !over && !self.log.current_round_is_answered() {
                return;
            }
            self.conclude();
        }
        if self.outcome.is_none() {
            self.plan_round();
        }
    }

    /// The smallest size above what passes that is known or suspected not to.
    fn ceiling(&self) -> u32 {
        let passes = self.log.largest_answered();
        let refused = self.refused.filter(|&size| Some(size) > passes);
        let known = [self.log.smallest_lost(), refused];
        known.into_iter().flatten().min().unwrap_or(self.high + 1)
    }

    fn conclude(&mut self) {
        if self.log.silent_rounds() >= SILENT_ROUNDS {
            self.give_up(CannotTell::Silent);
            return;
        }
        match self.stage {
            Stage::Proof if self.log.is_too_big(self.high, ERROR) => self.proof_failed(),
            Stage::Search => self.conclude_search(),
            Stage::Proof => {}
        }
        if self.outcome.is_none() && self.log.rounds() >= self.config.max_rounds {
            let passing = self.log.passing();
            self.give_up(CannotTell::Undecided {
                rounds: self.log.rounds(),
                sent: passing.sent,
                lost: passing.lost,
            });
        }
    }

    fn conclude_search(&mut self) {
        let (ceiling, Some(mtu)) = (self.ceiling(), self.log.largest_answered()) else {
            return;
        };
        let sure = self.refused == Some(ceiling) || self.log.is_too_big(ceiling, ERROR_IN_SEARCH);
        if ceiling == mtu + 1 && sure {
            let hint = self.hint;
            self.end(if self.proof {
                Outcome::TooBig {
                    size: self.high,
                    carries: Some(mtu),
                    hint,
                }
            } else {
                Outcome::Carries {
                    mtu,
                    verified_above: true,
                    hint,
                }
            });
        }
    }

    fn proof_failed(&mut self) {
        self.stage = Stage::Search;
        if self.search.is_none() {
            self.end(self.too_big_without_search());
        }
    }

    fn too_big_without_search(&self) -> Outcome {
        Outcome::TooBig {
            size: self.high,
            carries: None,
            hint: self.hint,
        }
    }

    /// A search that fails takes nothing back from the proof that failed before it.
    fn give_up(&mut self, reason: CannotTell) {
        let refuted = self.proof && self.stage == Stage::Search;
        self.end(if refuted {
            self.too_big_without_search()
        } else {
            Outcome::CannotTell {
                reason,
                at_least: self.log.largest_answered(),
            }
        });
    }

    fn end(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
        self.queue.clear();
    }

    /// Copies are spread over the round, so that a burst of loss does not take all of one size, and controls are put
    /// between them.
    fn plan_round(&mut self) {
        self.log.start_round();
        let sizes: Vec<u32> = match (self.stage, &self.search) {
            (Stage::Search, Some(search)) => self.candidates(search).into_iter().collect(),
            _ => vec![self.high],
        };
        let control = (self.config.control_size, true);
        for _ in 0..self.config.copies {
            for sizes in sizes.chunks(CONTROL_EVERY) {
                self.queue.push_back(control);
                self.queue.extend(sizes.iter().map(|&size| (size, false)));
            }
            self.queue.push_back(control);
        }
    }

    fn candidates(&self, search: &Search) -> BTreeSet<u32> {
        let ceiling = self.ceiling();
        let passes = self.log.largest_answered().unwrap_or(0);
        if ceiling == passes + 1 {
            return BTreeSet::from([passes, ceiling]);
        }
        let floor = if ceiling > search.low {
            passes.max(search.low.saturating_sub(1))
        } else {
            passes
        };
        let hinted = self
            .hint
            .into_iter()
            .flat_map(|hint| [hint.mtu, hint.mtu.saturating_add(1)]);
        // One more than what passes: if a likely size was right, this is the last to be shown.
        let likely = search.likely.iter().copied();
        likely
            .chain(hinted)
            .chain([floor + 1, self.high])
            .chain(between(floor, ceiling))
            .filter(|size| (floor + 1..ceiling).contains(size))
            .collect()
    }
}
