//! The state machine for one flow: a proof, a search, or a comparison with another flow. It sends
//! rounds of probes, each planned from the results of the ones before.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::config::{Arrival, Config, Probe};
use crate::evidence::{ERROR, ERROR_IN_SEARCH, LossCount, copies_to_decide};
use crate::outcome::{CannotTellReason, Limit, Outcome, TooBig};
use crate::rounds::Rounds;
use crate::rtt::Rtt;
use crate::sizes::between;

/// Number of sizes in a round that are sent before the largest two.
const BEFORE_LARGEST: usize = 6;

/// Proves or searches a path MTU. The crate's documentation shows the loop around it.
///
/// `now` is the time since any fixed moment, and never goes back.
#[derive(Debug)]
pub struct Prober {
    rounds: Rounds,
    /// The largest size of interest: the one to prove, or the upper end of the search.
    high: u32,
    stage: Stage,
    /// Whether `high` was to be proven first.
    proof: bool,
    search: Option<Search>,
    /// Largest probability that a search calls a size too big that passes.
    error: f64,
    outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Proof,
    Search,
    /// Whether the path carries this size and no more.
    Confirm(u32),
}

#[derive(Debug)]
struct Search {
    low: u32,
    likely: Vec<u32>,
}

impl Prober {
    /// A proof that the path carries IP packets of exactly `size` bytes: [`Outcome::Proven`] with
    /// the first acknowledgement, [`Outcome::TooBig`] when it is certain that they do not pass.
    pub fn verify(size: u32, config: Config) -> Self {
        Self::new(size, Stage::Proof, None, config)
    }

    /// A search for the largest packet that passes, from `low` to `high` bytes, that tries
    /// `likely_sizes` first: [`Outcome::Carries`]. Where not even `low` passes, the search
    /// continues below it.
    pub fn search(low: u32, high: u32, likely_sizes: Vec<u32>, config: Config) -> Self {
        let search = Search {
            low: low.min(high),
            likely: likely_sizes,
        };
        Self::new(high, Stage::Search, Some(search), config)
    }

    /// A check whether the path carries `mtu` bytes and, where `high` is larger, no more:
    /// [`Outcome::Carries`] if so (or with [`Limit::NotSought`] if one byte more passes),
    /// [`Outcome::TooBig`] if the path carries less.
    pub fn confirm(mtu: u32, high: u32, config: Config) -> Self {
        Self::new(high.max(mtu), Stage::Confirm(mtu), None, config)
    }

    /// Lets a failed proof continue with a search from `low` bytes up, so that [`Outcome::TooBig`]
    /// tells what the path does carry.
    #[must_use]
    pub fn or_search(mut self, low: u32, likely_sizes: Vec<u32>) -> Self {
        self.search = Some(Search {
            low: low.min(self.high),
            likely: likely_sizes,
        });
        self
    }

    /// Divides the probability of a wrong verdict by the number of probers whose verdicts are reported together.
    #[must_use]
    pub fn with_error_shared_by(mut self, probers: u32) -> Self {
        self.error = ERROR_IN_SEARCH / f64::from(probers.max(1));
        self
    }

    fn new(high: u32, stage: Stage, search: Option<Search>, config: Config) -> Self {
        Self {
            rounds: Rounds::new(Config {
                control_size: config.control_size.min(high),
                ..config
            }),
            high,
            stage,
            proof: stage == Stage::Proof,
            search,
            error: ERROR_IN_SEARCH,
            outcome: None,
        }
    }

    /// The next probe to send. `None`: wait for an answer or for
    /// [`next_timeout`](Self::next_timeout), unless there is an [`outcome`](Self::outcome).
    pub fn poll_transmit(&mut self, now: Duration) -> Option<Probe> {
        self.on_timeout(now);
        self.rounds.transmit(now)
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if no answer comes: the end of the current round.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.rounds
            .deadline()
            .filter(|_| self.outcome.is_none() && !self.is_due())
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) has a probe to send or a round to plan now.
    pub fn is_due(&self) -> bool {
        self.outcome.is_none() && self.rounds.is_due()
    }

    /// The outcome, once there is one.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Number of probes handed out so far.
    pub fn probes(&self) -> u32 {
        self.rounds.log.probes()
    }

    /// Number of rounds begun so far.
    pub fn rounds(&self) -> u32 {
        self.rounds.log.rounds()
    }

    /// Records the acknowledgement of a probe that arrived whole. Duplicates and late ones are
    /// allowed, unknown ids are ignored.
    pub fn on_acked(&mut self, probe: u64, now: Duration) {
        self.on_arrived(probe, Arrival::Whole, now);
    }

    /// Records the acknowledgement of a probe, and how the probe arrived. A size that arrives in
    /// fragments does not pass.
    pub fn on_arrived(&mut self, probe: u64, arrival: Arrival, now: Duration) {
        if !self.rounds.on_acked(probe, arrival, now) {
            return;
        }
        let passes = self.rounds.log.largest_answered();
        if passes >= Some(self.high) {
            self.end(match self.stage {
                Stage::Proof => Outcome::Proven { size: self.high },
                _ => Outcome::Carries {
                    mtu: self.high,
                    limit: Limit::NotSought,
                },
            });
        } else if let Stage::Confirm(mtu) = self.stage
            && passes > Some(mtu)
        {
            self.end(Outcome::Carries {
                mtu: mtu + 1,
                limit: Limit::NotSought,
            });
        } else {
            self.conclude_at_device();
        }
    }

    /// Concludes at once where this host does not send one byte more than what was acknowledged.
    fn conclude_at_device(&mut self) {
        let next = self.rounds.log.largest_answered().map(|mtu| mtu + 1);
        if self.outcome.is_some() || next.is_none() || self.rounds.refused() != next {
            return;
        }
        match self.stage {
            Stage::Proof => {}
            Stage::Search => self.conclude_search(),
            Stage::Confirm(mtu) => self.conclude_comparison(mtu),
        }
    }

    /// Records a message that a packet was too big. It guides the search and is kept for the
    /// outcome, but is no proof.
    pub fn on_too_big(&mut self, message: TooBig) {
        self.rounds.on_too_big(message);
    }

    /// Records that this host refused to send a probe because of its size (`EMSGSIZE`), with the
    /// limit it named, if any. Nothing of that size or more will be sent.
    pub fn on_send_refused(&mut self, probe: u64, mtu: Option<u32>) {
        let Some(size) = self.rounds.on_refused(probe, mtu) else {
            return;
        };
        if size <= self.rounds.control_size() {
            self.give_up(CannotTellReason::Refused);
            return;
        }
        match self.stage {
            Stage::Proof => self.proof_failed(),
            Stage::Confirm(mtu) if size <= mtu => self.end(self.too_big_without_search(mtu)),
            _ => self.conclude_at_device(),
        }
    }

    /// Ends the round if it is over at `now`, and plans the next one.
    /// [`poll_transmit`](Self::poll_transmit) does this by itself.
    pub fn on_timeout(&mut self, now: Duration) {
        if self.outcome.is_some() || !self.rounds.is_over(now) {
            return;
        }
        self.rounds.mark_losses(now);
        if self.rounds.log.rounds() > 0 {
            self.conclude();
        }
        if self.outcome.is_none() {
            if self.rounds.last_round_is_unanswered() {
                // Control probes alone: a dead path gets no probes that it may not carry.
                self.rounds.plan(&[], None);
                return;
            }
            let sizes = self.sizes();
            let deciding = self.stage != Stage::Proof && sizes.len() <= 2;
            let copies = deciding.then(|| copies_to_decide(self.error));
            self.rounds.plan(&sizes, copies);
        }
    }

    /// Ends without an answer, unless there is an outcome.
    pub fn give_up(&mut self, reason: CannotTellReason) {
        // The proof failed before, and stands even if the search that followed fails.
        let refuted = self.proof && self.stage == Stage::Search;
        self.end(if refuted {
            self.too_big_without_search(self.high)
        } else {
            Outcome::CannotTell {
                reason,
                at_least: self.rounds.log.largest_answered(),
            }
        });
    }

    /// Sends no more probes in this round.
    pub(crate) fn end_round_early(&mut self) {
        self.rounds.stop();
    }

    /// Takes over round trips measured on all flows.
    pub(crate) fn add_rtt(&mut self, rtt: Rtt) {
        self.rounds.add_rtt(rtt);
    }

    /// Whether a round has passed and nothing was ever answered.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.rounds.is_unanswered()
    }

    /// Loss of the probes of sizes that are known to pass.
    pub(crate) fn passing(&self) -> LossCount {
        self.rounds.log.passing()
    }

    /// The smallest size above the largest that passes that is known or suspected not to pass;
    /// `high + 1` without one.
    fn ceiling(&self) -> u32 {
        let passes = self.rounds.log.largest_answered();
        let refused = self.rounds.refused().filter(|&size| Some(size) > passes);
        let known = [self.rounds.log.smallest_lost(), refused];
        known.into_iter().flatten().min().unwrap_or(self.high + 1)
    }

    fn is_too_big(&self, size: u32, error: f64) -> bool {
        self.rounds.refused() == Some(size) || self.rounds.log.is_too_big(size, error)
    }

    fn conclude(&mut self) {
        if self.rounds.reason_to_give_up() == Some(CannotTellReason::NoAnswer) {
            self.give_up(CannotTellReason::NoAnswer);
            return;
        }
        match self.stage {
            Stage::Proof if self.rounds.log.is_too_big(self.high, ERROR) => self.proof_failed(),
            Stage::Proof => {}
            Stage::Search => self.conclude_search(),
            Stage::Confirm(mtu) => self.conclude_comparison(mtu),
        }
        if self.outcome.is_none()
            && let Some(reason) = self.rounds.reason_to_give_up()
        {
            self.give_up(reason);
        }
    }

    fn conclude_search(&mut self) {
        let (ceiling, Some(mtu)) = (self.ceiling(), self.rounds.log.largest_answered()) else {
            return;
        };
        if ceiling == mtu + 1 && self.is_too_big(ceiling, self.error) {
            let limit = self.rounds.limit_above(mtu);
            self.end(if self.proof {
                Outcome::TooBig {
                    size: self.high,
                    carries: Some(mtu),
                    limit,
                }
            } else {
                Outcome::Carries { mtu, limit }
            });
        }
    }

    fn conclude_comparison(&mut self, mtu: u32) {
        let passes = self.rounds.log.largest_answered() >= Some(mtu);
        if passes && self.is_too_big(mtu + 1, self.error) {
            let limit = self.rounds.limit_above(mtu);
            self.end(Outcome::Carries { mtu, limit });
        } else if !passes && self.is_too_big(mtu, self.error) {
            self.end(self.too_big_without_search(mtu));
        }
    }

    fn proof_failed(&mut self) {
        self.stage = Stage::Search;
        if self.search.is_none() {
            self.end(self.too_big_without_search(self.high));
        }
    }

    fn too_big_without_search(&self, size: u32) -> Outcome {
        Outcome::TooBig {
            size,
            carries: None,
            limit: self.rounds.limit_of(size),
        }
    }

    fn end(&mut self, outcome: Outcome) {
        self.outcome.get_or_insert(outcome);
        self.rounds.stop();
    }

    /// The sizes of the next round.
    fn sizes(&self) -> Vec<u32> {
        match (self.stage, &self.search) {
            (Stage::Search, Some(search)) => {
                let mut sizes: Vec<u32> = self.candidates(search).into_iter().collect();
                // The largest two may end the search, but on a slow path they would delay the
                // others. Some small sizes go before them: with their answers the pace rises.
                if sizes.len() > BEFORE_LARGEST + 2 {
                    sizes[BEFORE_LARGEST..].rotate_right(2);
                }
                sizes
            }
            (Stage::Confirm(mtu), _) => {
                let above = (mtu < self.high && self.rounds.refused().is_none()).then_some(mtu + 1);
                std::iter::once(mtu).chain(above).collect()
            }
            _ => vec![self.high],
        }
    }

    fn candidates(&self, search: &Search) -> BTreeSet<u32> {
        let ceiling = self.ceiling();
        let passes = self.rounds.log.largest_answered().unwrap_or(0);
        if ceiling == passes + 1 {
            return BTreeSet::from([passes, ceiling]);
        }
        let floor = if ceiling > search.low {
            passes.max(search.low.saturating_sub(1))
        } else {
            passes
        };
        let hinted = self
            .rounds
            .hints()
            .flat_map(|mtu| [mtu, mtu.saturating_add(1)]);
        // One byte more than the largest that passes: if a likely size was right, this is all that
        // is left to be shown.
        let likely = search.likely.iter().copied();
        // Sizes above the likely ones would fill a slow path and be lost: they wait until anything has passed.
        let unlikely = search.likely.last().filter(|_| passes == 0);
        let spread =
            between(floor, ceiling).filter(move |size| unlikely.is_none_or(|it| size <= it));
        likely
            .chain(hinted)
            .chain([floor + 1, self.high])
            .chain(spread)
            .filter(|size| (floor + 1..ceiling).contains(size))
            // The largest size that this host sends: on a lossy path its answer ends the search.
            .chain([self.rounds.refused().map_or(self.high, |size| size - 1)])
            .filter(|&size| size > passes)
            .collect()
    }
}
