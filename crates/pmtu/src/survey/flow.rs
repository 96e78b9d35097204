//! One flow of a survey.

use std::time::Duration;

use crate::outcome::{CannotTell, Outcome};
use crate::prober::Prober;

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) prober: Prober,
    /// Probes of the probers that came before: ids go on from there.
    pub(super) base: u64,
    pub(super) settled: Option<Outcome>,
    /// When it was.
    pub(super) settled_at: Duration,
    pub(super) stage: Stage,
    /// It carries less than this.
    pub(super) below: u32,
    /// It carries more than this.
    pub(super) above: u32,
}

impl Flow {
    pub(super) fn is_active(&self) -> bool {
        self.settled.is_none() && self.stage != Stage::Waits
    }

    /// Whether it was taken for dead: too early, where an answer comes after all, or the first one of all flows.
    pub(super) fn is_given_up(&self) -> bool {
        let silent = Outcome::CannotTell {
            reason: CannotTell::NoAnswer,
            at_least: None,
        };
        self.settled.as_ref() == Some(&silent)
    }

    /// Ids of late answers to the prober before stay unknown to the new one.
    pub(super) fn begin(&mut self, prober: Prober) {
        self.base += u64::from(self.prober.probes());
        self.prober = prober;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Waits,
    Searches,
    /// Is compared with what another flow carries.
    Compares(u32),
    /// Is asked for any answer at all, because the first flow gives none.
    ProbesForAnyAnswer,
}
