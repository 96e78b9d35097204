//! What a survey comes to: flows that carry the same, side by side.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::flows::{FailingShare, paths_met};
use crate::outcome::{Limit, Outcome};

/// One flow's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Counts from 0.
    pub flow: u32,
    /// What came of it.
    pub outcome: Outcome,
    /// Datagrams sent on it.
    pub probes: u32,
    /// When its answer was known, from the same moment as `now`.
    pub took: Duration,
}

/// Flows that carry the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The largest packet that passes, bytes.
    pub mtu: u32,
    /// Why no larger one does; that of the first flow that knows.
    pub limit: Limit,
    /// The flows, ascending.
    pub flows: Vec<u32>,
}

/// A survey's answers.
#[derive(Debug, Clone, PartialEq)]
pub struct SurveyResult {
    /// Every flow's answer, by flow.
    pub outcomes: Vec<FlowOutcome>,
    /// What was expected, bytes.
    pub expected: Option<u32>,
    /// Datagrams sent.
    pub probes: u32,
    /// How long it took, from the same moment as `now`.
    pub took: Duration,
    /// Datagrams of sizes that pass whose answers came, or were waited for in vain. Where it was to be counted what is
    /// lost, these are the small ones that were sent for it; else those of the search, some of which may have been lost to
    /// its own pace.
    pub awaited: u32,
    /// How many of these were not answered: lost there or back, whatever their size.
    pub missing: u32,
    /// How long an answer may take on this path.
    pub wait: Duration,
    /// Bytes per second that it was asked at in the end, without loss of our making.
    pub bytes_per_second: f64,
}

impl SurveyResult {
    /// The flows by what they carry, the narrowest first. Flows without an answer are in none of them.
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

    /// What every flow that answered carries: the narrowest, bytes. `None` where none answered.
    pub fn mtu(&self) -> Option<u32> {
        self.answers().map(|(_, mtu, _)| mtu).min()
    }

    /// The flows without an answer, ascending.
    pub fn untold(&self) -> Vec<u32> {
        self.outcomes
            .iter()
            .filter(|answer| matches!(answer.outcome, Outcome::CannotTell { .. }))
            .map(|answer| answer.flow)
            .collect()
    }

    /// What a flow has to carry to be called good: what was expected, or else what the widest flow carries.
    pub fn wanted(&self) -> Option<u32> {
        self.expected
            .or_else(|| self.answers().map(|(_, mtu, _)| mtu).max())
    }

    /// The flows that carry less than is [`wanted`](Self::wanted), ascending.
    pub fn failing(&self) -> Vec<u32> {
        let Some(wanted) = self.wanted() else {
            return Vec::new();
        };
        self.outcomes
            .iter()
            .filter(|answer| match &answer.outcome {
                Outcome::CannotTell { .. } => false,
                Outcome::TooBig { size, carries, .. } => {
                    *size <= wanted || carries.is_some_and(|mtu| mtu < wanted)
                }
                other => other.mtu().is_some_and(|mtu| mtu < wanted),
            })
            .map(|answer| answer.flow)
            .collect()
    }

    /// How large a share of the flows that answered fails, and of how many members one is bad; `None` where all or
    /// none fail.
    pub fn uneven(&self) -> Option<FailingShare> {
        let told = (self.outcomes.len() - self.untold().len()) as u32;
        let failing = self.failing().len() as u32;
        FailingShare::new(failing, told).filter(|share| share.failing < share.of)
    }

    /// The largest number of equal paths of which, with this confidence, every one was met.
    pub fn paths_met(&self, confidence: f64) -> u32 {
        let told = self.outcomes.len() - self.untold().len();
        paths_met(told as u32, confidence)
    }
}
