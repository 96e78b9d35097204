//! Surveys every equal path between two addresses: one flow is searched, the others are probed for
//! the same MTU, and searched where they differ. Loss is counted by a survey of its own, when no
//! other probes of ours are on the path: what a search loses to its own pace, or to that of the
//! other direction, is not the path's loss.

mod flow;
mod loss;
mod request;
mod result;

use std::time::Duration;

use crate::config::{Arrival, Config, Probe};
use crate::flight::Flight;
use crate::outcome::{CannotTellReason, Outcome, TooBig};
use crate::prober::Prober;

use flow::{Flow, Stage};
use loss::Loss;
pub use request::SurveyRequest;
pub use result::{FlowOutcome, Group, SurveyResult};

/// A probe and the flow that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowProbe {
    /// Number of the flow, from 0; the driver gives each flow its own source port.
    pub flow: u32,
    /// The probe; its id is counted per flow.
    pub probe: Probe,
}

/// Probes every flow of a path in one direction. The other direction is another survey, at the same time.
///
/// `now` is the time since any fixed moment, and never goes back.
#[derive(Debug)]
pub struct Survey {
    question: SurveyRequest,
    flows: Vec<Flow>,
    flight: Flight,
    /// Flow at which the next search for a probe begins, so that no flow starves another.
    turn: usize,
    knocked: bool,
    /// Whether the first round was cut short, because nothing had been answered.
    cut: bool,
    /// The count of loss, once every flow is settled.
    loss: Option<Loss>,
    ended: Option<Duration>,
}

impl Survey {
    /// A survey that begins with the first flow.
    pub fn new(question: SurveyRequest) -> Self {
        let question = SurveyRequest {
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
                below: u32::MAX,
                above: 0,
            })
            .collect();
        let mut survey = Self {
            flight: Flight::new(question.flows, question.config, question.pace),
            question,
            flows,
            turn: 0,
            knocked: false,
            cut: false,
            loss: None,
            ended: None,
        };
        survey.flows[0].stage = Stage::Searches;
        if let Some(expected) = survey.question.expect {
            survey.flows[0].prober = survey.question.proof(expected);
        }
        survey
    }

    /// The next probe to send. `None`: wait for an answer or for
    /// [`next_timeout`](Self::next_timeout), unless there is a [`result`](Self::result).
    pub fn poll_transmit(&mut self, now: Duration) -> Option<FlowProbe> {
        if self.ended.is_some() {
            return None;
        }
        if self.flight.is_exhausted(now) {
            self.stop(CannotTellReason::OutOfBudget, now);
            return None;
        }
        self.flight.evaluate_losses(now);
        if !self.cut && self.flight.is_unanswered() {
            self.cut = true;
            self.flows[0].prober.end_round_early();
        }
        if self.loss.is_some() {
            return self.count_loss(now);
        }
        loop {
            // Rounds end even when no probe may leave.
            for flow in self.flows.iter_mut().filter(|flow| flow.is_active()) {
                if flow.prober.next_timeout().is_some_and(|at| now >= at) {
                    flow.prober.on_timeout(now);
                }
            }
            self.probe_for_any_answer();
            let moved = self.settle(now);
            if self.loss.is_some() {
                return self.count_loss(now);
            }
            if self.ended.is_some() || !self.flight.is_free(now) {
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
                    self.turn = index + 1;
                    let flow = index as u32;
                    let id = self.flight.sent(flow, probe.size, now);
                    debug_assert_eq!(id, self.flows[index].base + probe.id);
                    return Some(FlowProbe {
                        flow,
                        probe: Probe { id, ..probe },
                    });
                }
            }
            if !moved && !self.settle(now) {
                return None;
            }
        }
    }

    /// When to call [`poll_transmit`](Self::poll_transmit) again if no answer comes; `None` at the end.
    pub fn next_timeout(&self) -> Option<Duration> {
        if self.ended.is_some() {
            return None;
        }
        if let Some(loss) = &self.loss {
            return Some(self.capped(loss.next_timeout(&self.flight)));
        }
        let mut active = self.flows.iter().filter(|flow| flow.is_active());
        let due = active
            .clone()
            .any(|flow| flow.prober.is_due() || flow.prober.outcome().is_some());
        let next = if due {
            self.flight.free_at()
        } else {
            active
                .try_fold(Duration::MAX, |least, flow| {
                    flow.prober.next_timeout().map(|at| at.min(least))
                })
                .unwrap_or_else(|| self.flight.free_at())
        };
        Some(self.capped(next))
    }

    fn capped(&self, at: Duration) -> Duration {
        self.flight.ends_at().map_or(at, |end| at.min(end))
    }

    /// Records the acknowledgement of a probe, and how the probe arrived.
    pub fn on_arrived(&mut self, flow: u32, probe: u64, arrival: Arrival, now: Duration) {
        let was_known = self.flight.rtt().is_known();
        let whole = arrival == Arrival::Whole;
        if !self.flight.answered(flow, probe, whole, now) {
            return;
        }
        for (number, other) in (0..).zip(&mut self.flows) {
            if (number == flow || !was_known) && other.is_given_up() {
                other.settled = None;
                other.stage = Stage::Waits;
            }
        }
        if let Some((flow, id)) = self.find(flow, probe) {
            flow.prober.on_arrived(id, arrival, now);
        }
        let rtt = self.flight.rtt();
        for flow in self.flows.iter_mut().filter(|flow| flow.is_active()) {
            flow.prober.add_rtt(rtt);
        }
    }

    /// Records an ICMP message that a packet of a flow was too big.
    pub fn on_too_big(&mut self, flow: u32, message: TooBig) {
        if let Some(flow) = self.flows.get_mut(flow as usize) {
            flow.prober.on_too_big(message);
        }
    }

    /// Records that this host refused to send a probe because of its size; `mtu` is the limit it named.
    pub fn on_send_refused(&mut self, flow: u32, probe: u64, mtu: Option<u32>) {
        self.flight.refused(flow, probe);
        if let Some((flow, id)) = self.find(flow, probe) {
            flow.prober.on_send_refused(id, mtu);
        }
    }

    /// Ends the survey; flows without an outcome get [`Outcome::CannotTell`] with this reason.
    pub fn stop(&mut self, reason: CannotTellReason, now: Duration) {
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

    /// The result, once all flows are settled.
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
        let counted = self.loss.as_ref().map_or(0, |loss| loss.before);
        let overdue = self.flight.overdue(counted, ended);
        Some(SurveyResult {
            outcomes: outcomes.collect(),
            expected: self.question.expect,
            probes: self.flight.datagrams(),
            took: ended,
            awaited: overdue.sent,
            missing: overdue.lost,
            wait: self.flight.wait(),
            bytes_per_second: self.flight.rate(),
        })
    }

    /// Whether any probe was answered.
    pub fn is_answered(&self) -> bool {
        self.flight.rtt().is_known()
    }

    /// Number of datagrams sent so far.
    pub fn probes(&self) -> u32 {
        self.flight.datagrams()
    }

    fn find(&mut self, flow: u32, probe: u64) -> Option<(&mut Flow, u64)> {
        let flow = self.flows.get_mut(flow as usize)?;
        let id = probe.checked_sub(flow.base)?;
        flow.is_active().then_some((flow, id))
    }

    /// Takes the probers' outcomes, and gives waiting flows a new task. Returns whether anything changed.
    fn settle(&mut self, now: Duration) -> bool {
        let mut changed = false;
        for flow in self.flows.iter_mut().filter(|flow| flow.is_active()) {
            let Some(outcome) = flow.prober.outcome().cloned() else {
                continue;
            };
            changed = true;
            match (flow.stage, &outcome) {
                // The flow carries another size: it waits for its own search, or for that of a similar flow.
                (Stage::Compares(mtu), Outcome::TooBig { carries: None, .. }) => {
                    flow.below = mtu;
                    flow.stage = Stage::Waits;
                }
                (Stage::Compares(mtu), Outcome::Carries { mtu: more, .. }) if *more > mtu => {
                    flow.above = mtu;
                    flow.stage = Stage::Waits;
                }
                (Stage::ProbesForAnyAnswer, Outcome::Proven { .. }) => flow.stage = Stage::Waits,
                _ => {
                    flow.settled = Some(outcome);
                    flow.settled_at = now;
                }
            }
        }
        let active = self.flows.iter().any(Flow::is_active);
        let waiting = self.flows.iter().any(|flow| flow.settled.is_none());
        if !waiting {
            self.all_settled(now);
        } else if !active {
            self.next_stage();
            changed = true;
        }
        changed
    }

    /// While the first flow hears nothing, probes whether other flows do. One after the other, dead
    /// flows would each take the patience of a search.
    fn probe_for_any_answer(&mut self) {
        if self.knocked || !self.flows[0].prober.is_unanswered() {
            return;
        }
        self.knocked = true;
        let config = Config {
            copies: 1,
            ..self.question.config
        };
        for flow in self.flows.iter_mut().skip(1) {
            flow.stage = Stage::ProbesForAnyAnswer;
            flow.begin(Prober::verify(config.control_size, config));
        }
    }

    /// No flow is active: compares the waiting flows with the MTUs found so far, or searches one of them.
    fn next_stage(&mut self) {
        let rtt = self.flight.rtt();
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
            // The largest candidate first: most flows of a path carry the same.
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
                    // Up to `high`: sizes that are too big on another flow may pass on this one.
                    _ => question.search(question.low, question.high),
                }
            };
            flow.begin(prober);
            flow.prober.add_rtt(rtt);
        }
    }
}

#[cfg(test)]
mod tests;
