//! Every equal path between two addresses: one flow is searched, the others are asked whether they carry the same,
//! and where they do not it is searched again.

mod result;

use std::time::Duration;

use crate::config::{Arrival, Config, Probe};
use crate::evidence::Tally;
use crate::outcome::{CannotTell, Outcome, TooBig};
use crate::pacing::{Pace, Pacer};
use crate::prober::Prober;

pub use result::{FlowOutcome, Group, SurveyResult};

/// What is asked of a path, in one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Where the search begins: the smallest IP packet of interest, bytes.
    pub low: u32,
    /// Where it ends, bytes.
    pub high: u32,
    /// What the path should carry, bytes. Where it does, nothing else is asked; where not, what it carries is
    /// searched.
    pub expect: Option<u32>,
    /// Sizes to try first.
    pub likely_sizes: Vec<u32>,
    /// Flows (5-tuples) to ask, at least 1.
    pub flows: u32,
    /// How to probe each.
    pub config: Config,
    /// How fast.
    pub pace: Pace,
}

/// A probe and the flow that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowProbe {
    /// Counts from 0; the driver gives each flow a source port of its own.
    pub flow: u32,
    /// The probe; its id is the flow's own.
    pub probe: Probe,
}

/// Asks every flow of a path, in one direction; the other direction is another survey, at the same time.
///
/// `now` is the time since any fixed moment, and never goes back.
#[derive(Debug)]
pub struct Survey {
    question: Question,
    flows: Vec<Flow>,
    pacer: Pacer,
    /// Where the next look for something to send begins, so that no flow starves another.
    turn: usize,
    knocked: bool,
    ended: Option<Duration>,
}

#[derive(Debug)]
struct Flow {
    prober: Prober,
    /// Probes of the probers that came before: ids go on from there.
    base: u64,
    settled: Option<Outcome>,
    /// When it was.
    settled_at: Duration,
    stage: Stage,
    /// Answers of probers that came before that were waited for.
    overdue: Tally,
    /// It carries less than this.
    below: u32,
    /// It carries more than this.
    above: u32,
}

impl Flow {
    fn is_active(&self) -> bool {
        self.settled.is_none() && self.stage != Stage::Waits
    }

    /// Ids of late answers to the prober before stay unknown to the new one.
    fn begin(&mut self, prober: Prober, now: Duration) {
        self.overdue += self.prober.overdue(now);
        self.base += u64::from(self.prober.probes());
        self.prober = prober;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waits,
    Searches,
    /// Is compared with what another flow carries.
    Compares(u32),
    /// Is asked for any answer at all, because the first flow gives none.
    Knocks,
}

impl Survey {
    /// Begins with the first flow.
    pub fn new(question: Question) -> Self {
        let question = Question {
            flows: question.flows.max(1),
            high: question.high.max(question.expect.unwrap_or(0)),
            ..question
        };
        let flows = (0..question.flows)
            .map(|_| Flow {
                prober: question.search(question.low, question.high),
                base: 0,
                settled: None,
                settled_at: Duration::ZERO,
                stage: Stage::Waits,
                overdue: Tally::default(),
                below: u32::MAX,
                above: 0,
            })
            .collect();
        let mut survey = Self {
            pacer: Pacer::new(question.pace),
            question,
            flows,
            turn: 0,
            knocked: false,
            ended: None,
        };
        survey.flows[0].stage = Stage::Searches;
        if let Some(expected) = survey.question.expect {
            survey.flows[0].prober = survey.question.proof(expected);
        }
        survey
    }

    /// The next probe to send; `None`: wait for an answer or [`next_timeout`](Self::next_timeout), unless there is a
    /// [`result`](Self::result).
    pub fn poll_transmit(&mut self, now: Duration) -> Option<FlowProbe> {
        if self.ended.is_some() {
            return None;
        }
        if self.pacer.is_exhausted(now) {
            self.stop(CannotTell::OutOfBudget, now);
            return None;
        }
        loop {
            // Rounds end whether or not something may leave.
            for flow in self.flows.iter_mut().filter(|flow| flow.is_active()) {
                if flow.prober.next_timeout().is_some_and(|at| now >= at) {
                    flow.prober.on_timeout(now);
                }
            }
            self.knock(now);
            let moved = self.settle(now);
            if self.ended.is_some() || !self.pacer.is_free(now) {
                return None;
            }
            let count = self.flows.len();
            for step in 0..count {
                let index = (self.turn + step) % count;
                let flow = &mut self.flows[index];
                if !flow.is_active() {
                    continue;
                }
                if let Some(probe) = flow.prober.poll_transmit(now) {
                    let id = flow.base + probe.id;
                    self.turn = index + 1;
                    self.pacer.charge(probe.size, now);
                    return Some(FlowProbe {
                        flow: index as u32,
                        probe: Probe { id, ..probe },
                    });
                }
            }
            if !moved && !self.settle(now) {
                return None;
            }
        }
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if nothing is heard.
    pub fn next_timeout(&self) -> Option<Duration> {
        if self.ended.is_some() {
            return None;
        }
        let mut active = self.flows.iter().filter(|flow| flow.is_active());
        let due = active
            .clone()
            .any(|flow| flow.prober.is_due() || flow.prober.outcome().is_some());
        let next = if due {
            Some(self.pacer.free_at())
        } else {
            active
                .try_fold(Duration::MAX, |least, flow| {
                    flow.prober.next_timeout().map(|at| at.min(least))
                })
                .or(Some(self.pacer.free_at()))
        };
        next.map(|at| self.pacer.ends_at().map_or(at, |end| at.min(end)))
    }

    /// The other end acknowledged a probe and told how it arrived.
    pub fn on_arrived(&mut self, flow: u32, probe: u64, arrival: Arrival, now: Duration) {
        if let Some((flow, id)) = self.find(flow, probe) {
            flow.prober.on_arrived(id, arrival, now);
        } else if let Some(flow) = self.flows.get_mut(flow as usize)
            && let Some(id) = probe.checked_sub(flow.base)
        {
            flow.prober.on_late(id, arrival, now);
        }
    }

    /// A message said that a packet of a flow was too big.
    pub fn on_too_big(&mut self, flow: u32, message: TooBig) {
        if let Some(flow) = self.flows.get_mut(flow as usize) {
            flow.prober.on_too_big(message);
        }
    }

    /// This host refused to send a probe because of its size.
    pub fn on_send_refused(&mut self, flow: u32, probe: u64, mtu: Option<u32>) {
        self.pacer.refund();
        if let Some((flow, id)) = self.find(flow, probe) {
            flow.prober.on_send_refused(id, mtu);
        }
    }

    /// Ends it; flows that have no answer yet get none.
    pub fn stop(&mut self, reason: CannotTell, now: Duration) {
        for flow in self.flows.iter_mut().filter(|flow| flow.settled.is_none()) {
            flow.settled_at = now;
            if flow.stage == Stage::Waits {
                flow.settled = Some(Outcome::CannotTell {
                    reason,
                    at_least: None,
                });
            } else {
                flow.prober.give_up(reason);
                flow.settled = flow.prober.outcome().cloned();
            }
        }
        self.ended.get_or_insert(now);
    }

    /// What came of it, once all flows are settled.
    pub fn result(&self) -> Option<SurveyResult> {
        let ended = self.ended?;
        let outcomes = (0..).zip(&self.flows).filter_map(|(number, flow)| {
            Some(FlowOutcome {
                flow: number,
                outcome: flow.settled.clone()?,
                probes: (flow.base as u32).saturating_add(flow.prober.probes()),
                took: flow.settled_at,
            })
        });
        let mut overdue = Tally::default();
        for flow in &self.flows {
            overdue += flow.overdue;
            overdue += flow.prober.overdue(ended);
        }
        Some(SurveyResult {
            outcomes: outcomes.collect(),
            expected: self.question.expect,
            probes: self.pacer.sent(),
            took: ended,
            awaited: overdue.sent,
            missing: overdue.lost,
        })
    }

    /// Datagrams sent so far.
    pub fn probes(&self) -> u32 {
        self.pacer.sent()
    }

    fn find(&mut self, flow: u32, probe: u64) -> Option<(&mut Flow, u64)> {
        let flow = self.flows.get_mut(flow as usize)?;
        let id = probe.checked_sub(flow.base)?;
        flow.is_active().then_some((flow, id))
    }

    /// Takes what probers have come to, and gives the waiting flows something to do; whether anything changed.
    fn settle(&mut self, now: Duration) -> bool {
        let mut changed = false;
        for flow in self.flows.iter_mut().filter(|flow| flow.is_active()) {
            let Some(outcome) = flow.prober.outcome().cloned() else {
                continue;
            };
            changed = true;
            match (flow.stage, &outcome) {
                // It carries something else: it waits for its own search, or for that of one like it.
                (Stage::Compares(mtu), Outcome::TooBig { carries: None, .. }) => {
                    flow.below = mtu;
                    flow.stage = Stage::Waits;
                }
                (Stage::Compares(mtu), Outcome::Carries { mtu: more, .. }) if *more > mtu => {
                    flow.above = mtu;
                    flow.stage = Stage::Waits;
                }
                (Stage::Knocks, Outcome::Proven { .. }) => flow.stage = Stage::Waits,
                _ => {
                    flow.settled = Some(outcome);
                    flow.settled_at = now;
                }
            }
        }
        let active = self.flows.iter().any(Flow::is_active);
        let waiting = self.flows.iter().any(|flow| flow.settled.is_none());
        if !waiting {
            self.ended.get_or_insert(now);
        } else if !active {
            self.next_stage(now);
            changed = true;
        }
        changed
    }

    /// The first flow hears nothing: whether others do is asked meanwhile. One after the other, dead flows would take a
    /// search's patience each.
    fn knock(&mut self, now: Duration) {
        if self.knocked || !self.flows[0].prober.is_unheard() {
            return;
        }
        self.knocked = true;
        let config = Config {
            copies: 1,
            ..self.question.config
        };
        for flow in self.flows.iter_mut().skip(1) {
            flow.stage = Stage::Knocks;
            flow.begin(Prober::verify(config.control_size, config), now);
        }
    }

    /// Nothing is under way: compare the waiting flows with what was found last, or search one of them.
    fn next_stage(&mut self, now: Duration) {
        let mut known: Vec<u32> = self
            .flows
            .iter()
            .filter_map(|flow| flow.settled.as_ref())
            .filter(|outcome| !matches!(outcome, Outcome::CannotTell { .. }))
            .filter_map(Outcome::mtu)
            .collect();
        known.sort_unstable();
        known.dedup();
        let question = &self.question;
        let mut searching = false;
        for flow in self
            .flows
            .iter_mut()
            .filter(|flow| flow.settled.is_none() && flow.stage == Stage::Waits)
        {
            // The largest that may be: most paths carry what most paths carry.
            let mut may_be = known.iter().rev();
            let untried = may_be
                .find(|&&mtu| mtu > flow.above && mtu < flow.below)
                .copied();
            let prober = if let Some(mtu) = untried {
                flow.stage = Stage::Compares(mtu);
                question.comparison(mtu)
            } else if searching {
                continue;
            } else {
                searching = true;
                flow.stage = Stage::Searches;
                match question.expect {
                    Some(expected) if flow.below > expected && flow.above < expected => {
                        question.proof(expected)
                    }
                    _ => question.search(question.low, question.high.min(flow.below)),
                }
            };
            flow.begin(prober, now);
        }
    }
}

impl Question {
    fn search(&self, low: u32, high: u32) -> Prober {
        Prober::search(low, high, self.likely_sizes.clone(), self.config).among(self.flows)
    }

    fn proof(&self, size: u32) -> Prober {
        Prober::verify(size, self.config)
            .or_search(self.low, self.likely_sizes.clone())
            .among(self.flows)
    }

    /// Where a size is expected, more than it is not asked for.
    fn comparison(&self, mtu: u32) -> Prober {
        let high = match self.expect {
            Some(expected) if mtu >= expected => mtu,
            _ => self.high,
        };
        Prober::confirm(mtu, high, self.config).among(self.flows)
    }
}

#[cfg(test)]
mod tests;
