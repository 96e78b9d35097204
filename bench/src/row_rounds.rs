//! One row: rounds in which ours and each opponent run once, in random order.
//!
//! An opponent's pair is its sample and ours of the same round, so that ours is not measured again for each.

use wirecost_stats::{Stopping, order};

use crate::comparison::{Comparison, Pair, is_settled, still};
use crate::error::BenchError;
use crate::measure::Bench;
use crate::peer::{Ours, Peer};
use crate::random::random;
use crate::report::{Outcome, OutcomeKind};
use crate::row::{Opponents, Row};
use crate::sample::Sample;

/// An opponent may break once in so many rounds.
const BREAKS_IN: u32 = 5;

/// An opponent.
pub(crate) struct Opponent<'a> {
    name: &'static str,
    peer: &'a dyn Peer,
    /// Of its own round each.
    pairs: Vec<Pair>,
    /// What it said each time that it broke and was started again.
    broken: Vec<String>,
    /// Why there are no more rounds for it.
    out: Option<OutcomeKind>,
    /// It had its rounds, and more of them would change nothing.
    settled: bool,
}

/// The rounds of one row.
pub(crate) struct RowRounds<'a> {
    pub(crate) row: &'a Row,
    /// Rounds, that is pairs with each opponent.
    pub(crate) pairs: u32,
    /// Rounds at most with those of whom nothing is settled by then.
    pub(crate) most: u32,
    pub(crate) seed: u64,
}

impl<'a> Opponent<'a> {
    /// `here`: why it is absent, in words.
    pub(crate) fn new(name: &'static str, peer: &'a dyn Peer, here: Result<(), String>) -> Self {
        Self {
            name,
            peer,
            pairs: Vec::new(),
            broken: Vec::new(),
            out: here.err().map(OutcomeKind::Absent),
            settled: false,
        }
    }

    fn goes_on(&self) -> bool {
        self.out.is_none() && !self.settled
    }

    fn outcome(self, row: &Row, window: Option<f64>, stopping: Stopping) -> Outcome {
        let what = self.out.unwrap_or_else(|| {
            Comparison::new(row.bound_against(self.name), window, stopping, self.pairs).map_or_else(
                |error| OutcomeKind::Failed(error.to_string()),
                |comparison| OutcomeKind::Compared(Box::new(comparison)),
            )
        });
        Outcome {
            opponent: self.name,
            what,
            broken: self.broken,
        }
    }

    /// Its sample of a round. One that breaks now and then (uperf's connections stall once in a while) is started
    /// again; where it breaks more often than `allowed`, it is out.
    ///
    /// # Errors
    /// What ends the other rounds too.
    fn sample(
        &mut self,
        bench: &mut Bench<'_>,
        row: &Row,
        allowed: usize,
    ) -> Result<Option<Sample>, BenchError> {
        loop {
            match unless_fatal(take(bench, self.peer, row))? {
                Ok(sample) => return Ok(Some(sample)),
                Err(message) if self.broken.len() < allowed => {
                    eprintln!("    {message}: again");
                    self.broken.push(message);
                }
                Err(message) => {
                    self.out = Some(OutcomeKind::Failed(message));
                    return Ok(None);
                }
            }
        }
    }
}

impl RowRounds<'_> {
    /// All rounds; what ended them early comes beside what there is.
    pub(crate) fn run(
        &self,
        bench: &mut Bench<'_>,
        mut opponents: Vec<Opponent<'_>>,
    ) -> (Vec<Outcome>, Option<BenchError>) {
        for opponent in opponents
            .iter_mut()
            .filter(|opponent| opponent.out.is_none())
        {
            let setting = bench.setting(self.row.load, [0; 16]);
            opponent.out = opponent
                .peer
                .plan(self.row.load, &setting)
                .err()
                .map(OutcomeKind::Cannot);
        }
        let mut stopped = None;
        for round in 0..self.most.max(self.pairs) {
            let live = opponents
                .iter()
                .filter(|opponent| opponent.goes_on())
                .count();
            if live == 0 {
                break;
            }
            if round < self.pairs {
                eprintln!("    round {} of {}", round + 1, self.pairs);
            } else {
                eprintln!("    round {}, not settled: {live}", round + 1);
            }
            if let Err(error) = self.round(bench, &mut opponents, round) {
                stopped = Some(error);
                break;
            }
            if round + 1 >= self.pairs {
                for opponent in &mut opponents {
                    if still(&opponent.pairs).count() < self.pairs as usize {
                        continue;
                    }
                    // A figure without a logarithm is said with the outcome.
                    opponent.settled =
                        is_settled(self.row.bound_against(opponent.name), &opponent.pairs)
                            .unwrap_or(true);
                }
            }
        }
        let stopping = if self.most > self.pairs {
            Stopping::Sequential
        } else {
            Stopping::Fixed
        };
        let window = self.row.judges_cpu.then_some(bench.seconds);
        let outcomes = opponents
            .into_iter()
            // What ended everything took the first round with it.
            .filter(|opponent| {
                stopped.is_none() || opponent.out.is_some() || !opponent.pairs.is_empty()
            })
            .map(|opponent| opponent.outcome(self.row, window, stopping))
            .collect();
        (outcomes, stopped)
    }

    /// # Errors
    /// What ends the other rounds too; an opponent that keeps breaking is out, and the others go on.
    fn round(
        &self,
        bench: &mut Bench<'_>,
        opponents: &mut [Opponent<'_>],
        round: u32,
    ) -> Result<(), BenchError> {
        let ours = Ours {
            spin: self.row.opponents == Opponents::OurselvesAsleep,
        };
        let mut live: Vec<&mut Opponent<'_>> = opponents
            .iter_mut()
            .filter(|opponent| opponent.goes_on())
            .collect();
        let mut own = None;
        let mut others: Vec<Option<Sample>> = live.iter().map(|_| None).collect();
        let allowed = (self.pairs / BREAKS_IN).max(1) as usize;
        for index in order(1 + live.len(), round, self.seed) {
            let Some(other) = index.checked_sub(1) else {
                own = Some(unless_fatal(take(bench, &ours, self.row))?);
                continue;
            };
            others[other] = live[other].sample(bench, self.row, allowed)?;
        }
        for (opponent, other) in live.iter_mut().zip(others) {
            match (&own, other) {
                (Some(Ok(ours)), Some(other)) => opponent.pairs.push(Pair {
                    ours: ours.clone(),
                    other,
                }),
                (Some(Err(message)), _) => {
                    opponent.out = Some(OutcomeKind::Failed(format!("ours: {message}")));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A failure of one does not end the others, unless it is the lab's: the inner error is that one's, in words.
pub(crate) fn unless_fatal<T>(
    taken: Result<T, BenchError>,
) -> Result<Result<T, String>, BenchError> {
    match taken {
        Ok(taken) => Ok(Ok(taken)),
        Err(error) if error.is_fatal() => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}

pub(crate) fn take(bench: &mut Bench<'_>, who: &dyn Peer, row: &Row) -> Result<Sample, BenchError> {
    let plan = who.plan(row.load, &bench.setting(row.load, random()?));
    let plan = plan.map_err(|message| BenchError::Tool {
        name: who.name().to_owned(),
        message,
    })?;
    bench.take(who, row.load, &plan)
}
