//! One row: rounds in which ours and each opponent run once, in random order.
//!
//! An opponent's pair is its sample and ours of the same round, so that ours is not measured again for each.

use wirecost_stats::order;

use crate::comparison::{Comparison, Pair};
use crate::error::BenchError;
use crate::measure::{Bench, Sample};
use crate::peer::{Ours, Peer};
use crate::report::{Outcome, What};
use crate::rounds::random;
use crate::row::{Opponents, Row};

/// Congestion control of whoever can be told one.
pub(crate) const CONGESTION: &str = "cubic";

/// An opponent may break once in so many rounds.
const BREAKS_IN: u32 = 5;

/// An opponent.
pub(crate) struct Arm<'a> {
    name: &'static str,
    peer: &'a dyn Peer,
    /// Of its own round each.
    pairs: Vec<Pair>,
    /// What it said each time that it broke and was started again.
    broken: Vec<String>,
    /// Why there are no more rounds for it.
    out: Option<What>,
}

/// Ours, set as some of the opponents are.
struct Side {
    congestion: Option<&'static str>,
    sample: Option<Result<Sample, String>>,
}

/// The rounds of one row.
pub(crate) struct Contest<'a> {
    pub(crate) row: &'a Row,
    /// Rounds, that is pairs with each opponent.
    pub(crate) pairs: u32,
    pub(crate) seed: u64,
    /// What has who is told nothing.
    pub(crate) default_congestion: &'a str,
}

impl<'a> Arm<'a> {
    /// `here`: why it is absent, in words.
    pub(crate) fn new(name: &'static str, peer: &'a dyn Peer, here: Result<(), String>) -> Self {
        Self {
            name,
            peer,
            pairs: Vec::new(),
            broken: Vec::new(),
            out: here.err().map(What::Absent),
        }
    }

    fn outcome(self, row: &Row, window: Option<f64>) -> Outcome {
        let what = self.out.unwrap_or_else(|| {
            Comparison::new(row.bound, window, self.pairs).map_or_else(
                |error| What::Failed(error.to_string()),
                |comparison| What::Compared(Box::new(comparison)),
            )
        });
        Outcome {
            opponent: self.name,
            what,
            broken: self.broken,
        }
    }

    /// Its sample of a round. One that breaks now and then (uperf's connections stall once in a while) is started again;
    /// where it breaks more often than `allowed`, it is out.
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
            match unless_it_ends_all(take(bench, self.peer, row, told(self.peer)))? {
                Ok(sample) => return Ok(Some(sample)),
                Err(said) if self.broken.len() < allowed => {
                    eprintln!("    {said}: again");
                    self.broken.push(said);
                }
                Err(said) => {
                    self.out = Some(What::Failed(said));
                    return Ok(None);
                }
            }
        }
    }
}

impl Contest<'_> {
    /// All rounds; what ended them early comes beside what there is.
    pub(crate) fn run(
        &self,
        bench: &mut Bench<'_>,
        mut arms: Vec<Arm<'_>>,
    ) -> (Vec<Outcome>, Option<BenchError>) {
        for arm in arms.iter_mut().filter(|arm| arm.out.is_none()) {
            let setting = bench.setting(told(arm.peer), [0; 16]);
            arm.out = arm
                .peer
                .plan(self.row.load, &setting)
                .err()
                .map(What::Cannot);
        }
        let mut stopped = None;
        for round in 0..self.pairs {
            if arms.iter().all(|arm| arm.out.is_some()) {
                break;
            }
            eprintln!("    round {} of {}", round + 1, self.pairs);
            if let Err(error) = self.round(bench, &mut arms, round) {
                stopped = Some(error);
                break;
            }
        }
        let window = self.row.judges_cpu.then_some(bench.seconds);
        let outcomes = arms
            .into_iter()
            // What ended everything took the first round with it.
            .filter(|arm| stopped.is_none() || arm.out.is_some() || !arm.pairs.is_empty())
            .map(|arm| arm.outcome(self.row, window))
            .collect();
        (outcomes, stopped)
    }

    /// # Errors
    /// What ends the other rounds too; an opponent that keeps breaking is out, and the others go on.
    fn round(
        &self,
        bench: &mut Bench<'_>,
        arms: &mut [Arm<'_>],
        round: u32,
    ) -> Result<(), BenchError> {
        let ours = Ours {
            spin: self.row.opponents == Opponents::OurselvesAsleep,
        };
        let mut live: Vec<&mut Arm<'_>> = arms.iter_mut().filter(|arm| arm.out.is_none()).collect();
        let mut sides: Vec<Side> = Vec::new();
        for arm in &live {
            let congestion = self.ours_has(arm.peer);
            if sides.iter().all(|side| side.congestion != congestion) {
                sides.push(Side {
                    congestion,
                    sample: None,
                });
            }
        }
        let mut others: Vec<Option<Sample>> = live.iter().map(|_| None).collect();
        for index in order(sides.len() + live.len(), round, self.seed) {
            if let Some(side) = sides.get_mut(index) {
                let taken = take(bench, &ours, self.row, side.congestion);
                side.sample = Some(unless_it_ends_all(taken)?);
                continue;
            }
            let index = index - sides.len();
            let allowed = (self.pairs / BREAKS_IN).max(1) as usize;
            others[index] = live[index].sample(bench, self.row, allowed)?;
        }
        for (arm, other) in live.iter_mut().zip(others) {
            let congestion = self.ours_has(arm.peer);
            let side = sides.iter().find(|side| side.congestion == congestion);
            match (side.and_then(|side| side.sample.as_ref()), other) {
                (Some(Ok(ours)), Some(other)) => arm.pairs.push(Pair {
                    ours: ours.clone(),
                    other,
                }),
                (Some(Err(said)), _) => arm.out = Some(What::Failed(format!("ours: {said}"))),
                _ => {}
            }
        }
        Ok(())
    }

    /// What ours is told, so that it has what the peer has.
    fn ours_has(&self, peer: &dyn Peer) -> Option<&'static str> {
        (peer.sets_congestion() || self.default_congestion == CONGESTION).then_some(CONGESTION)
    }
}

fn told(peer: &dyn Peer) -> Option<&'static str> {
    peer.sets_congestion().then_some(CONGESTION)
}

/// A failure of one does not end the others, unless it is the lab's: the inner error is that one's, in words.
pub(crate) fn unless_it_ends_all<T>(
    taken: Result<T, BenchError>,
) -> Result<Result<T, String>, BenchError> {
    match taken {
        Ok(taken) => Ok(Ok(taken)),
        Err(error) if error.ends_all() => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}

pub(crate) fn take(
    bench: &mut Bench<'_>,
    who: &dyn Peer,
    row: &Row,
    congestion: Option<&str>,
) -> Result<Sample, BenchError> {
    let plan = who.plan(row.load, &bench.setting(congestion, random()?));
    let plan = plan.map_err(|said| BenchError::Tool {
        name: who.name().to_owned(),
        said,
    })?;
    bench.take(who, row.load, &plan)
}
