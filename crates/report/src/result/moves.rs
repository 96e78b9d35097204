//! The moves of a migration's machines over a cell's valid samples.

use serde::Serialize;
use wirecost_model::machine_move::{Accelerator, MachineMove, MoveOutcome};
use wirecost_stats::{Summary, summary};

/// Moves of all valid samples. The figures are of single machines, but for `move_s`, `downtime_ms` and
/// `dirty_limit_gbps`, which are of samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MovesResult {
    /// Machines that were to move, over all samples.
    pub machines: u32,
    /// Machines whose pre-copy converged.
    pub converged: u32,
    /// Machines that were stopped and moved although their pre-copy did not converge.
    pub forced: u32,
    /// Machines that did not move.
    pub stayed: u32,
    /// Time until a sample's last machine had moved, seconds.
    pub move_s: Option<Summary>,
    /// Longest downtime of a sample's machines, milliseconds.
    pub downtime_ms: Option<Summary>,
    /// Highest dirty rate that converges, Gbit/s; absent where it was not searched for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_limit_gbps: Option<Summary>,
    /// Downtime as the hypervisor reports it, milliseconds (`engine: qemu`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor_downtime_ms: Option<Summary>,
    /// Time of a move as the hypervisor reports it, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypervisor_move_s: Option<Summary>,
    /// Pages that a machine had to wait for at its destination (`post_copy`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched_pages: Option<Summary>,
    /// Machines that QEMU emulated (TCG), over all samples: their times are not those of hardware virtualisation.
    #[serde(skip_serializing_if = "is_none")]
    pub emulated: u32,
    /// Gap that an observer sees between the last request that the source answered and the first that the destination
    /// did, by when they were sent, milliseconds (`watch`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_to_machine_ms: Option<Summary>,
    /// The same gap by when the two answers arrived, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_from_machine_ms: Option<Summary>,
    /// Rounds of pre-copy, including the one with the machine stopped.
    pub rounds: Option<Summary>,
    /// Bytes of pages sent over bytes of memory.
    pub sent_factor: Option<Summary>,
    /// Time of a move before the first page could be sent, milliseconds.
    pub setup_ms: Option<Summary>,
    /// Writes that a machine reached while it was copied, percent of those asked for; `null` where none were.
    pub written_percent: Option<Summary>,
    /// Time of a move by the model of pre-copy at the measured bandwidth, seconds.
    pub predicted_s: Option<Summary>,
    /// Absolute error of the model's time, percent of the measured time, of machines that moved.
    pub prediction_error_percent: Option<Summary>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's way")]
const fn is_none(number: &u32) -> bool {
    *number == 0
}

/// Moves of the valid samples, collected one sample after the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MoveColumns(Vec<MachineMove>);

impl MoveColumns {
    pub(crate) fn add(&mut self, moves: &[MachineMove]) {
        self.0.extend_from_slice(moves);
    }

    /// Summary of the moves; `None` where there are none. The arguments are the figures that are of whole samples.
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

/// Seconds that the model of pre-copy gives; `None` where the machine did not move as the model says that it would.
fn predicted_s(one: &MachineMove) -> Option<f64> {
    let model = one.predicted?;
    let agrees = one.outcome.is_there() && model.converges == (one.outcome == MoveOutcome::Moved);
    agrees.then_some(model.total_s + one.setup_s)
}
