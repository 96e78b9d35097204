//! The log of probes, and the conclusions from their loss.

use std::time::Duration;

use crate::config::Arrival;

/// Largest probability that a size that passes is called too big.
pub(crate) const ERROR: f64 = 1e-4;
/// The part of [`ERROR`] for one size of a search, which tests several sizes, among them those that random loss has
/// hit already (Bonferroni).
pub(crate) const ERROR_IN_SEARCH: f64 = ERROR / 5.0;

/// Every probe handed out, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Log {
    probes: Vec<Entry>,
    /// By round: whether any of its probes was answered. Silent rounds are no evidence.
    live: Vec<bool>,
    /// By round: when its last probe was sent.
    last: Vec<Duration>,
    /// Unanswered probes sent up to this moment are lost; later ones may be on their way.
    overdue: Option<Duration>,
    largest_answered: Option<u32>,
    /// The smallest size that arrived in fragments, and the size of its largest fragment, bytes.
    fragmented: Option<(u32, u32)>,
}

#[derive(Debug)]
struct Entry {
    size: u32,
    round: usize,
    at: Duration,
    state: ProbeState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProbeState {
    Unanswered,
    Answered,
    /// The probe arrived in fragments.
    Fragmented,
    /// The probe never left this host: it neither passed nor was lost.
    Refused,
}

/// Number of probes of one kind, and of those that were lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LossCount {
    pub(crate) sent: u32,
    pub(crate) lost: u32,
}

impl std::ops::AddAssign for LossCount {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.lost += other.lost;
    }
}

impl Log {
    pub(crate) fn start_round(&mut self) {
        self.live.push(false);
        self.last.push(Duration::ZERO);
    }

    pub(crate) fn rounds(&self) -> u32 {
        self.live.len() as u32
    }

    /// Marks unanswered probes sent up to `at` as lost: the wait for their answers is over.
    pub(crate) fn overdue_until(&mut self, at: Option<Duration>) {
        self.overdue = self.overdue.max(at);
    }

    fn is_lost(&self, entry: &Entry) -> bool {
        entry.state == ProbeState::Unanswered && Some(entry.at) <= self.overdue
    }

    pub(crate) fn probes(&self) -> u32 {
        self.probes.len() as u32
    }

    /// Records a probe of the current round and returns its id.
    pub(crate) fn sent(&mut self, size: u32, at: Duration) -> u64 {
        let id = self.probes.len() as u64;
        let round = self.live.len().saturating_sub(1);
        if let Some(last) = self.last.last_mut() {
            *last = at;
        }
        self.probes.push(Entry {
            size,
            round,
            at,
            state: ProbeState::Unanswered,
        });
        id
    }

    /// Records the first answer to a probe and returns when the probe was sent. `None` for an
    /// unknown id or a later answer.
    pub(crate) fn answered(&mut self, id: u64, arrival: Arrival) -> Option<Duration> {
        let entry = self.open(id)?;
        let (size, round, at) = (entry.size, entry.round, entry.at);
        match arrival {
            Arrival::Whole => {
                entry.state = ProbeState::Answered;
                self.largest_answered = self.largest_answered.max(Some(size));
            }
            Arrival::Fragmented { largest } => {
                entry.state = ProbeState::Fragmented;
                if self.fragmented.is_none_or(|(known, _)| size < known) {
                    self.fragmented = Some((size, largest));
                }
            }
        }
        self.live[round] = true;
        Some(at)
    }

    /// The smallest size that arrived in fragments and its largest fragment, bytes, if larger than
    /// any size that arrived whole.
    pub(crate) fn fragmented(&self) -> Option<(u32, u32)> {
        self.fragmented
            .filter(|&(size, _)| Some(size) > self.largest_answered)
    }

    /// Records that a probe did not leave this host and returns its size.
    pub(crate) fn refused(&mut self, id: u64) -> Option<u32> {
        let entry = self.open(id)?;
        entry.state = ProbeState::Refused;
        Some(entry.size)
    }

    fn open(&mut self, id: u64) -> Option<&mut Entry> {
        let entry = self.probes.get_mut(usize::try_from(id).ok()?)?;
        (entry.state == ProbeState::Unanswered).then_some(entry)
    }

    pub(crate) fn largest_answered(&self) -> Option<u32> {
        self.largest_answered
    }

    /// The smallest size that may be too big: larger than any that arrived whole, and lost in a
    /// round in which others were answered.
    pub(crate) fn smallest_lost(&self) -> Option<u32> {
        let lost = |entry: &&Entry| self.is_lost(entry) && self.live[entry.round];
        let sizes = self.probes.iter().filter(lost).map(|entry| entry.size);
        sizes
            .filter(|&size| Some(size) > self.largest_answered)
            .chain(self.fragmented().map(|(size, _)| size))
            .min()
    }

    pub(crate) fn current_round_is_answered(&self) -> bool {
        let current = self.live.len().saturating_sub(1);
        self.probes
            .iter()
            .rev()
            .take_while(|entry| entry.round == current)
            .all(|entry| entry.state != ProbeState::Unanswered)
    }

    /// Number of rounds since the last one with an answer.
    pub(crate) fn unanswered_rounds(&self) -> usize {
        self.live.iter().rev().take_while(|live| !**live).count()
    }

    /// Number of rounds since the last one with an answer, of those whose wait is over.
    pub(crate) fn overdue_rounds(&self) -> usize {
        let rounds = self.live.iter().zip(&self.last).rev();
        let silent = rounds.take_while(|(live, _)| !**live);
        silent
            .filter(|(_, last)| Some(**last) <= self.overdue)
            .count()
    }

    /// Loss of probes of sizes that are known to pass.
    pub(crate) fn passing(&self) -> LossCount {
        self.tally(|entry| Some(entry.size) <= self.largest_answered)
    }

    /// Whether probes of `size` arrived in fragments, or all were lost and chance alone explains that
    /// with a probability of at most `error`, judged in the rounds in which the size was probed.
    /// Where a size of at least 7/8 of it passes, it is compared with such sizes only: a policer or
    /// a full queue has room for small packets when it has none for large ones.
    pub(crate) fn is_too_big(&self, size: u32, error: f64) -> bool {
        if self.fragmented().is_some_and(|(known, _)| known == size) {
            return true;
        }
        let mut probed = self.live.clone();
        probed.fill(false);
        for entry in self.probes.iter().filter(|entry| entry.size == size) {
            probed[entry.round] = self.live[entry.round];
        }
        let big = self.tally(|entry| entry.size == size && probed[entry.round]);
        let like = size - size / 8;
        let least = self.largest_answered.filter(|&passes| passes >= like);
        let least = least.map_or(0, |_| like);
        let passing = self.tally(|entry| {
            (least..size).contains(&entry.size)
                && Some(entry.size) <= self.largest_answered
                && probed[entry.round]
        });
        big.lost == big.sent && fisher_exact_p(big.sent, passing) <= error
    }

    /// Loss of the probes for which `counts` holds, of those whose state is known.
    fn tally(&self, counts: impl Fn(&Entry) -> bool) -> LossCount {
        let mut tally = LossCount::default();
        for entry in self.probes.iter().filter(|entry| counts(entry)) {
            let lost = self.is_lost(entry);
            let arrived = matches!(entry.state, ProbeState::Answered | ProbeState::Fragmented);
            tally.sent += u32::from(arrived || lost);
            tally.lost += u32::from(lost);
        }
        tally
    }
}

/// Fisher's exact test, one-sided: the probability that the losses include all `big` probes if
/// every probe is equally likely to be lost, given the number of losses. It needs no estimate of
/// the loss rate.
pub(crate) fn fisher_exact_p(big: u32, passing: LossCount) -> f64 {
    (1..=big)
        .map(|i| f64::from(passing.lost + i) / f64::from(passing.sent + i))
        .product()
}

/// Copies of a size that decide in one round that it is too big where nothing else is lost: each
/// copy is accompanied by a probe of a size that passes.
pub(crate) fn copies_to_decide(error: f64) -> u32 {
    const MAX_COPIES: u32 = 16;
    let clean = |copies: u32| LossCount {
        sent: copies,
        lost: 0,
    };
    (1..MAX_COPIES)
        .find(|&copies| fisher_exact_p(copies, clean(copies)) <= error)
        .unwrap_or(MAX_COPIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deciding_round_has_copies_enough_and_no_more() {
        let each = |flows: f64| copies_to_decide(ERROR_IN_SEARCH / flows);
        assert_eq!((each(1.0), each(16.0), each(64.0)), (10, 12, 13));
    }

    #[test]
    fn the_chance_is_that_of_drawing_the_big_ones() {
        let clean = LossCount { sent: 12, lost: 0 };
        // 1 in 18 over 6.
        assert!((fisher_exact_p(6, clean) - 1.0 / 18_564.0).abs() < 1e-12);
        let all_lost = LossCount { sent: 12, lost: 12 };
        assert!(fisher_exact_p(6, all_lost) >= 1.0);
    }

    /// The probability that looking after each round ever finds a passing size too big, at a rate of random loss:
    /// exact, over the number of controls lost while all copies were.
    fn wrong_at(loss: f64, copies: u32, rounds: u32, error: f64) -> f64 {
        let controls = 2 * copies;
        let binomial = |k: u32| {
            let ways: f64 = (1..=k)
                .map(|i| f64::from(controls - k + i) / f64::from(i))
                .product();
            ways * loss.powi(k as i32) * (1.0 - loss).powi((controls - k) as i32)
        };
        let (mut undecided, mut wrong) = (vec![1.0], 0.0);
        for round in 1..=rounds {
            let mut next = vec![0.0; undecided.len() + controls as usize];
            for (lost, weight) in undecided.iter().enumerate() {
                for k in 0..=controls {
                    next[lost + k as usize] += weight * binomial(k) * loss.powi(copies as i32);
                }
            }
            for (lost, weight) in next.iter_mut().enumerate() {
                let passing = LossCount {
                    sent: round * controls,
                    lost: lost as u32,
                };
                if fisher_exact_p(round * copies, passing) <= error {
                    wrong += std::mem::take(weight);
                }
            }
            undecided = next;
        }
        wrong
    }

    #[test]
    fn at_any_rate_of_loss_fewer_than_1_in_10_000_verdicts_are_wrong() {
        for percent in 1..=90 {
            for (copies, rounds) in [(1, 24), (2, 24), (3, 24), (4, 24), (9, 6)] {
                let wrong = wrong_at(f64::from(percent) / 100.0, copies, rounds, ERROR);
                assert!(wrong < ERROR, "{percent} %, {copies} copies: {wrong}");
            }
        }
    }

    #[test]
    fn at_20_percent_loss_each_way_about_1_in_50_000_is_wrong() {
        let wrong = wrong_at(1.0 - 0.8 * 0.8, 3, 24, ERROR);
        assert!((1.5e-5..2.5e-5).contains(&wrong), "{wrong}");
    }

    /// What is allowed is divided among the flows of a survey: together they are wrong no more often than one.
    #[test]
    fn divided_among_64_flows_all_of_them_together_stay_within_1_in_10_000() {
        let each = ERROR_IN_SEARCH / 64.0;
        for percent in [1, 5, 10, 20, 36, 50, 64, 80] {
            let wrong = wrong_at(f64::from(percent) / 100.0, 3, 24, each);
            assert!(64.0 * wrong < ERROR, "{percent} %: {wrong}");
        }
    }
}
