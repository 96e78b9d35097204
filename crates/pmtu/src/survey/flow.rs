//! One flow of a survey.

use std::time::Duration;

use crate::outcome::{CannotTellReason, Outcome};
use crate::prober::Prober;

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) prober: Prober,
    /// Number of probes of earlier probers on this flow: ids continue from there.
    pub(super) base: u64,
    pub(super) settled: Option<Outcome>,
    /// When `settled` was set.
    pub(super) settled_at: Duration,
    pub(super) stage: Stage,
    /// The flow carries less than this, bytes.
    pub(super) below: u32,
    /// The flow carries more than this, bytes.
    pub(super) above: u32,
}

impl Flow {
    pub(super) fn is_active(&self) -> bool {
        self.settled.is_none() && self.stage != Stage::Waits
    }

    /// Whether the flow was taken for dead. That was too early if an answer comes after all, or the
    /// first answer of any flow.
    pub(super) fn is_given_up(&self) -> bool {
        let silent = Outcome::CannotTell {
            reason: CannotTellReason::NoAnswer,
            at_least: None,
        };
        self.settled.as_ref() == Some(&silent)
    }

    /// Gives the flow a new prober. Late answers to the previous one have ids that the new one ignores.
    pub(super) fn begin(&mut self, prober: Prober) {
        self.base += u64::from(self.prober.probes());
        self.prober = prober;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Waits,
    Searches,
    /// Compares the flow with this MTU of another flow, bytes.
    Compares(u32),
    /// Probes the flow for any answer at all, because the first flow gives none.
    ProbesForAnyAnswer,
}
