//! The result of one machine's migration, and its prediction by the model of pre-copy.

use serde::{Deserialize, Serialize};

use crate::load::{Fallback, MAX_SENT_FACTOR, Migration, PAGE};

/// How a move ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MoveOutcome {
    #[default]
    /// The machine was stopped when the rest fitted into the bound of its downtime, and has moved.
    Moved,
    /// Pre-copy did not converge: the machine was stopped all the same, and has moved.
    Forced,
    /// Pre-copy did not converge: the machine stayed at its source.
    NotConverged,
}

impl MoveOutcome {
    /// Whether the machine is at the destination.
    pub const fn is_there(self) -> bool {
        matches!(self, Self::Moved | Self::Forced)
    }
}

/// One round of pre-copy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MoveRound {
    /// Time from the round's first to its last write to the kernel, seconds.
    pub seconds: f64,
    /// Pages sent with their content.
    pub pages: u64,
    /// Pages reported as zero, without content.
    pub zero_pages: u64,
    /// Pages that the machine had written to by the end of the round, as the kernel tracked it; 0 in the round with the
    /// machine stopped.
    pub dirtied: u64,
}

/// Bounds on the highest dirty rate at which pre-copy converges, found by repeated moves. Rates in bit/s, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DirtyLimit {
    /// The highest rate at which pre-copy converged; `None` for none.
    pub converges: Option<f64>,
    /// The lowest rate at which it did not; `None` for none that the machine could write at.
    pub fails: Option<f64>,
    /// Number of moves made to find the bounds.
    pub moves: u32,
}

impl DirtyLimit {
    /// The geometric mean of both bounds, bit/s; `None` where one is missing.
    pub fn rate(&self) -> Option<f64> {
        Some((self.converges? * self.fails?).sqrt())
    }
}

/// How a virtual machine's processor is provided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accelerator {
    /// By the hardware (KVM).
    Kvm,
    /// By QEMU's emulation (TCG): times are those of an emulation.
    Tcg,
}

impl Accelerator {
    /// QEMU's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

/// A hypervisor's own report on a move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HypervisorMove {
    /// The hypervisor and its version: `QEMU 7.2.22`.
    pub version: String,
    /// The accelerator, the same at both ends.
    pub accelerator: Accelerator,
    /// QEMU's `total-time`, seconds.
    pub total_s: f64,
    /// QEMU's `setup-time`, seconds.
    pub setup_s: f64,
    /// QEMU's `downtime`, seconds: until the source had sent everything.
    pub downtime_s: f64,
    /// Bytes that QEMU reports as sent, headers included.
    pub transferred_bytes: u64,
    /// The last page write rate of the guest that QEMU reported, pages/s; 0 where it reported none.
    pub dirty_pages_per_s: u64,
    /// With `post_copy`, pages that the guest had to wait for at its destination; otherwise 0.
    #[serde(default)]
    pub fetched_pages: u64,
}

/// The move of one machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MachineMove {
    /// The machine's number, from 0.
    pub machine: u32,
    /// How the move ended.
    pub outcome: MoveOutcome,
    /// Time from the order to move until the first page could be sent, seconds: write tracking is switched on.
    pub setup_s: f64,
    /// Time from the order to move until the destination had everything or the move was given up, seconds; includes the
    /// set-up.
    pub total_s: f64,
    /// Time from the machine's last write until the destination had confirmed that it has everything, or with
    /// `post_copy` that the machine runs there, seconds; 0 where the machine stayed.
    pub downtime_s: f64,
    /// The rounds, including the one with the machine stopped.
    pub rounds: Vec<MoveRound>,
    /// Bytes of the machine's memory.
    pub memory_bytes: u64,
    /// Bytes of pages sent, without headers.
    pub sent_bytes: u64,
    /// Pages that were acknowledged within the first round, bytes/s.
    pub bandwidth: f64,
    /// The dirty rate that was asked for, bit/s.
    pub dirty_rate: f64,
    /// The dirty rate that the machine reached while it ran and its memory was copied, bit/s.
    pub dirty_reached: f64,
    /// Final slow-down of the machine, percent of its time.
    pub throttle: u8,
    /// The prediction of the pre-copy model for the measured bandwidth; `None` where the model does not apply.
    pub predicted: Option<Prediction>,
    /// With `find_limit`, the result of the further moves; all other fields are of the first move.
    pub limit: Option<DirtyLimit>,
    /// With `watch`, the gap that an observer saw; `None` also where the observer heard from neither place.
    #[serde(default)]
    pub seen: Option<ObservedGap>,
    /// With `engine: qemu`, QEMU's own report; all other fields are counted by the load.
    #[serde(default)]
    pub hypervisor: Option<HypervisorMove>,
    /// With `post_copy`, pages that the machine had to wait for at its destination. Older records have the number in
    /// `hypervisor`.
    #[serde(default)]
    pub fetched_pages: u64,
}

impl MachineMove {
    /// With `post_copy`, pages that the machine had to wait for at its destination, from records of any age; otherwise
    /// 0.
    pub fn fetched(&self) -> u64 {
        let said = self
            .hypervisor
            .as_ref()
            .map_or(0, |said| said.fetched_pages);
        self.fetched_pages.max(said)
    }
}

/// The gap seen by an observer that sends a request to a machine's source and destination every millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ObservedGap {
    /// Towards the machine: time between sending the last request that the source answered and the first request that
    /// the destination answered, seconds.
    pub to_machine_s: f64,
    /// From the machine: time between the arrivals of the answers to these two requests, seconds.
    pub from_machine_s: f64,
    /// Number of requests, each sent to both places.
    pub asked: u64,
    /// Number of answers up to the first one of the destination.
    pub answered: u64,
}

/// A prediction of a pre-copy migration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Whether pre-copy converges.
    pub converges: bool,
    /// Total time without the set-up, seconds.
    pub total_s: f64,
    /// Downtime, seconds; 0 where it does not converge.
    pub downtime_s: f64,
    /// Number of rounds, including the one with the machine stopped.
    pub rounds: u32,
}

/// Expected number of pages written at least once by `writes` writes to the working set.
fn touched(migration: &Migration, writes: f64) -> f64 {
    let of = migration.written() as f64;
    match migration.dirty_order {
        crate::load::DirtyOrder::Sequential => writes.min(of),
        // Balls into bins: each write misses a given page with probability 1 - 1/of.
        crate::load::DirtyOrder::Random => of * (1.0 - (-writes / of).exp()),
    }
}

/// Predicts a migration by the model of pre-copy (Clark et al., NSDI 2005): each round sends what was written during
/// the round before, at the same `bandwidth` (bytes of pages per second). `None` where the model does not apply
/// (throttling, post-copy) or `bandwidth` is 0.
pub fn predict(migration: &Migration, bandwidth: f64) -> Option<Prediction> {
    let pages_per_second = bandwidth / PAGE as f64;
    let possible = pages_per_second.is_finite() && pages_per_second > 0.0;
    if !possible || migration.fallback == Fallback::Throttle || migration.post_copy {
        return None;
    }
    let all = migration.pages() as f64;
    let mut left = (migration.pages() - migration.zero()) as f64;
    let (mut total_s, mut sent) = (0.0, 0.0);
    for round in 1..=migration.max_rounds {
        let seconds = left / pages_per_second;
        total_s += seconds;
        sent += left;
        left = touched(migration, migration.writes_per_second() * seconds);
        let rest = left / pages_per_second;
        let fits = rest <= migration.max_downtime.as_secs_f64();
        let gives_up = round == migration.max_rounds || sent >= MAX_SENT_FACTOR as f64 * all;
        if fits || (gives_up && migration.fallback == Fallback::Stop) {
            return Some(Prediction {
                converges: fits,
                total_s: total_s + rest,
                downtime_s: rest,
                rounds: round + 1,
            });
        }
        if gives_up {
            return Some(Prediction {
                converges: false,
                total_s,
                downtime_s: 0.0,
                rounds: round,
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::load::DirtyOrder;

    fn of(change: impl FnOnce(&mut Migration)) -> Migration {
        let mut migration = Migration {
            memory: 64 << 20,
            working_set: 100,
            dirty_order: DirtyOrder::Sequential,
            max_downtime: std::time::Duration::from_millis(100),
            ..Migration::USUAL
        };
        change(&mut migration);
        migration
    }

    /// 64 MiB at 64 MiB/s.
    const BANDWIDTH: f64 = 67_108_864.0;

    #[test]
    fn a_machine_that_writes_nothing_takes_its_memory_over_the_bandwidth() {
        let still = predict(&of(|m| m.dirty_rate = 0), BANDWIDTH).expect("a prediction");
        assert!((still.total_s - 1.0).abs() < 1e-9 && still.converges);
        assert_eq!((still.rounds, still.downtime_s), (2, 0.0));
        let half = predict(&of(|m| (m.dirty_rate, m.zero_pages) = (0, 50)), BANDWIDTH);
        assert!((half.expect("one").total_s - 0.5).abs() < 1e-9);
    }

    #[test]
    fn rounds_shrink_by_the_share_of_the_bandwidth_that_is_written() {
        // Half as many pages are written as can be sent: 1 + 1/2 + 1/4 + 1/8 s, then 1/16 s fits 100 ms.
        let half = (BANDWIDTH * 4.0) as u64;
        let model = predict(&of(|m| m.dirty_rate = half), BANDWIDTH).expect("one");
        assert!(
            model.converges && (model.total_s - 1.9375).abs() < 1e-3,
            "{model:?}"
        );
        assert!((model.downtime_s - 0.0625).abs() < 1e-3);
        assert_eq!(model.rounds, 5);
    }

    #[test]
    fn what_is_written_faster_than_sent_does_not_converge_and_may_be_forced() {
        let faster = (BANDWIDTH * 16.0) as u64;
        let given_up = predict(&of(|m| m.dirty_rate = faster), BANDWIDTH).expect("one");
        assert_eq!((given_up.converges, given_up.rounds), (false, 3));
        let forced = of(|m| (m.dirty_rate, m.fallback) = (faster, Fallback::Stop));
        let forced = predict(&forced, BANDWIDTH).expect("one");
        assert!(!forced.converges && (forced.downtime_s - 1.0).abs() < 1e-9);
        let throttled = of(|m| m.fallback = Fallback::Throttle);
        assert_eq!(predict(&throttled, BANDWIDTH), None);
        assert_eq!(predict(&of(|_| ()), 0.0), None);
    }

    #[test]
    fn an_older_record_has_the_pages_that_were_waited_for_among_what_qemu_says() {
        let hypervisor = HypervisorMove {
            version: "QEMU 7.2.22".to_owned(),
            accelerator: Accelerator::Kvm,
            total_s: 1.0,
            setup_s: 0.0,
            downtime_s: 0.0,
            transferred_bytes: 0,
            dirty_pages_per_s: 0,
            fetched_pages: 12,
        };
        let older = MachineMove {
            hypervisor: Some(hypervisor),
            ..MachineMove::default()
        };
        assert_eq!(older.fetched(), 12);
        let newer = MachineMove {
            fetched_pages: 7,
            ..MachineMove::default()
        };
        assert_eq!((newer.fetched(), MachineMove::default().fetched()), (7, 0));
    }

    proptest! {
        #[test]
        fn more_bandwidth_never_takes_longer(
            rate in 0u64..2_000_000_000, less in 1e6f64..1e9, more in 1.0f64..10.0, random: bool,
        ) {
            let migration = of(|m| {
                m.dirty_rate = rate;
                m.dirty_order = if random { DirtyOrder::Random } else { DirtyOrder::Sequential };
            });
            let slow = predict(&migration, less).expect("one");
            let fast = predict(&migration, less * more).expect("one");
            prop_assert!(!slow.converges || fast.converges);
            if slow.converges {
                prop_assert!(fast.total_s <= slow.total_s + 1e-9);
            }
        }
    }
}
