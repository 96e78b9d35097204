//! The result of a survey: flows grouped by what they carry.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::flows::paths_met;
use crate::outcome::{Limit, Outcome};

/// The outcome of one flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Number of the flow, from 0.
    pub flow: u32,
    /// The outcome.
    pub outcome: Outcome,
    /// Number of datagrams sent on the flow.
    pub probes: u32,
    /// When the outcome was known, on the clock of `now`.
    pub took: Duration,
}

/// Flows that carry the same size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The largest packet that passes, bytes.
    pub mtu: u32,
    /// Why no larger packet passes; from the first flow that knows.
    pub limit: Limit,
    /// The flows, ascending.
    pub flows: Vec<u32>,
}

/// The outcomes of a survey.
#[derive(Debug, Clone, PartialEq)]
pub struct SurveyResult {
    /// The outcome of every flow, by flow.
    pub outcomes: Vec<FlowOutcome>,
    /// The size that was expected, bytes.
    pub expected: Option<u32>,
    /// Number of datagrams sent.
    pub probes: u32,
    /// When the survey ended, on the clock of `now`.
    pub took: Duration,
    /// Datagrams of sizes that pass whose answer came or was waited for in vain. If loss was
    /// counted, these are the small datagrams of the count; otherwise those of the search, some of
    /// which may have been lost to its own pace.
    pub awaited: u32,
    /// Number of these that were not answered: lost in either direction.
    pub missing: u32,
    /// How long an answer is waited for on this path.
    pub wait: Duration,
    /// Pace at the end of the survey, bytes per second.
    pub bytes_per_second: f64,
}

impl SurveyResult {
    /// The flows grouped by MTU, the smallest first. Flows without an answer are in none of the groups.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: BTreeMap<u32, Group> = BTreeMap::new();
        for (flow, mtu, limit) in self.answers() {
            let group = groups.entry(mtu).or_insert(Group {
                mtu,
                limit: Limit::NotSought,
                flows: Vec::new(),
            });
            if group.limit == Limit::NotSought {
                group.limit = limit;
            }
            group.flows.push(flow);
        }
        groups.into_values().collect()
    }

    fn answers(&self) -> impl Iterator<Item = (u32, u32, Limit)> + '_ {
        self.outcomes
            .iter()
            .filter(|answer| !matches!(answer.outcome, Outcome::CannotTell { .. }))
            .filter_map(|answer| {
                let limit = answer.outcome.limit().unwrap_or(Limit::NotSought);
                Some((answer.flow, answer.outcome.mtu()?, limit))
            })
    }

    /// The MTU of the path: the smallest of all flows that answered, bytes. `None` where none answered.
    pub fn mtu(&self) -> Option<u32> {
        self.answers().map(|(_, mtu, _)| mtu).min()
    }

    /// The flows without an answer, ascending.
    pub fn undecided(&self) -> Vec<u32> {
        self.outcomes
            .iter()
            .filter(|answer| matches!(answer.outcome, Outcome::CannotTell { .. }))
            .map(|answer| answer.flow)
            .collect()
    }

    /// The size that a flow has to carry not to fail, bytes: the expected one, or else the largest
    /// that any flow carries.
    pub fn required(&self) -> Option<u32> {
        self.expected
            .or_else(|| self.answers().map(|(_, mtu, _)| mtu).max())
    }

    /// The flows that carry less than [`required`](Self::required), ascending.
    pub fn failing(&self) -> Vec<u32> {
        let Some(required) = self.required() else {
            return Vec::new();
        };
        self.outcomes
            .iter()
            .filter(|answer| match &answer.outcome {
                Outcome::CannotTell { .. } => false,
                Outcome::TooBig { size, carries, .. } => {
                    *size <= required || carries.is_some_and(|mtu| mtu < required)
                }
                other => other.mtu().is_some_and(|mtu| mtu < required),
            })
            .map(|answer| answer.flow)
            .collect()
    }

    /// The largest number of equal paths every one of which was met with this confidence, in (0, 1).
    pub fn paths_met(&self, confidence: f64) -> u32 {
        let decided = self.outcomes.len() - self.undecided().len();
        paths_met(decided as u32, confidence)
    }
}
