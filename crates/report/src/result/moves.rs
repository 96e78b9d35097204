//! What the machines of a migration's cell came to over the valid samples.

use serde::Serialize;
use wirecost_model::moved::{Accelerator, MachineMove, MoveOutcome};
use wirecost_stats::{Summary, summary};

/// Moves of all valid samples. Figures but the time and the downtime are of single machines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MovesResult {
    /// Machines that were to move, each sample's counted.
    pub machines: u32,
    /// Of these, the ones whose pre-copy converged.
    pub converged: u32,
    /// Of these, the ones that were stopped though it did not.
    pub forced: u32,
    /// Of these, the ones that stayed.
    pub stayed: u32,
    /// Seconds until a sample's last machine had moved.
    pub move_s: Option<Summary>,
    /// Milliseconds for which a machine of a sample stood still at most.
    pub downtime_ms: Option<Summary>,
    /// Gbit/s of writes, the highest that converges, where it was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_limit_gbps: Option<Summary>,
    /// Milliseconds for which a single machine stood still, as the hypervisor says it (`engine: qemu`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor_downtime_ms: Option<Summary>,
    /// Seconds that a single machine's move took, as the hypervisor says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor_move_s: Option<Summary>,
    /// Pages that a single machine had to wait for at its destination (`post_copy`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched_pages: Option<Summary>,
    /// Machines that were emulated (TCG): their times are not those of hardware.
    #[serde(skip_serializing_if = "is_none")]
    pub emulated: u32,
    /// Milliseconds of a single machine between requests that were answered, towards it and from it, as an observer sees it
    /// (`watch`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_to_machine_ms: Option<Summary>,
    /// The same between the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_from_machine_ms: Option<Summary>,
    /// Rounds, the one with the machine stopped included.
    pub rounds: Option<Summary>,
    /// Bytes of pages sent over bytes of memory.
    pub sent_factor: Option<Summary>,
    /// Milliseconds of a move before the first page could be sent.
    pub setup_ms: Option<Summary>,
    /// Percent of the writes asked for that a machine reached while it was copied; absent where none were.
    pub written_percent: Option<Summary>,
    /// Seconds that the model of pre-copy gives for the measured bandwidth.
    pub predicted_s: Option<Summary>,
    /// By how many percent it is off, without sign, of machines that moved.
    pub prediction_error_percent: Option<Summary>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's way")]
const fn is_none(number: &u32) -> bool {
    *number == 0
}

/// Moves as they are gathered.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MoveColumns(Vec<MachineMove>);

impl MoveColumns {
    pub(crate) fn add(&mut self, moves: &[MachineMove]) {
        self.0.extend_from_slice(moves);
    }

    /// `None` where there are none.
    pub(crate) fn result(
        &self,
        move_s: Option<Summary>,
        downtime_ms: Option<Summary>,
        dirty_limit_gbps: Option<Summary>,
    ) -> Option<MovesResult> {
        let count = |outcome: MoveOutcome| {
            let such = self.0.iter().filter(|one| one.outcome == outcome);
            such.count() as u32
        };
        let of =
            |figure: fn(&MachineMove) -> Option<f64>| summary(self.0.iter().filter_map(figure));
        (!self.0.is_empty()).then(|| MovesResult {
            machines: self.0.len() as u32,
            converged: count(MoveOutcome::Moved),
            forced: count(MoveOutcome::Forced),
            stayed: count(MoveOutcome::NotConverged),
            move_s,
            downtime_ms,
            dirty_limit_gbps,
            hypervisor_downtime_ms: of(|one| {
                let said = one.hypervisor.as_ref().filter(|_| one.outcome.is_there())?;
                Some(said.downtime_s * 1e3)
            }),
            hypervisor_move_s: of(|one| {
                let said = one.hypervisor.as_ref().filter(|_| one.outcome.is_there())?;
                Some(said.total_s)
            }),
            fetched_pages: of(|one| {
                let fetched = one.fetched();
                (fetched > 0).then_some(fetched as f64)
            }),
            emulated: {
                let said = self.0.iter().filter_map(|one| one.hypervisor.as_ref());
                said.filter(|said| said.accelerator == Accelerator::Tcg)
                    .count() as u32
            },
            seen_to_machine_ms: of(|one| Some(one.seen?.to_machine_s * 1e3)),
            seen_from_machine_ms: of(|one| Some(one.seen?.from_machine_s * 1e3)),
            rounds: of(|one| Some(one.rounds.len() as f64)),
            sent_factor: of(|one| Some(one.sent_bytes as f64 / one.memory_bytes as f64)),
            setup_ms: of(|one| Some(one.setup_s * 1e3)),
            written_percent: of(|one| {
                (one.dirty_rate > 0.0).then(|| one.dirty_reached / one.dirty_rate * 100.0)
            }),
            predicted_s: of(predicted_s),
            prediction_error_percent: of(|one| {
                Some((predicted_s(one)? / one.total_s - 1.0).abs() * 100.0)
            }),
        })
    }
}

/// Of a machine that moved as the model says that it would.
fn predicted_s(one: &MachineMove) -> Option<f64> {
    let model = one.predicted?;
    let agrees = one.outcome.is_there() && model.converges == (one.outcome == MoveOutcome::Moved);
    agrees.then_some(model.total_s + one.setup_s)
}
