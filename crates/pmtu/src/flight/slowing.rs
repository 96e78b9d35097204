//! Lowers the pace when it was too high, and undoes that when the loss was only apparent.

use std::time::Duration;

use super::{Flight, ProbeState, Sent};
use crate::evidence::LossCount;

/// The pace is too high if of the last [`LOSS_WINDOW`] large probes, [`MIN_LOSS_SAMPLES`] at least, a share of
/// [`EXCESS_LOSS`] more is lost than at the first pace.
const LOSS_WINDOW: u32 = 16;
const MIN_LOSS_SAMPLES: u32 = 8;
const EXCESS_LOSS: f64 = 1.0 / 3.0;
/// Probes at the first pace that suffice to estimate the loss that does not depend on the pace.
const BASELINE_PROBES: u32 = 20;
/// Share of loss at the first pace from which on the path, and not our pace, causes the loss.
const PATH_LOSS: f64 = 0.2;

/// State before the pace was last lowered.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateReduction {
    /// The upper bound of the pace, and when the pace had been lowered before.
    before: (f64, Duration),
    /// The pace before it was lowered, bytes per second.
    rate: f64,
    /// Large probes that were counted as lost, and late answers since.
    lost: u32,
    late: u32,
}

impl Flight {
    /// A probe that was counted as lost is answered after all: a host stood still for a while, and
    /// no queue was full (as in the Eifel detection, RFC 3522). If half of the losses for which the
    /// pace was lowered are of this kind, the lowering is undone.
    pub(super) fn was_late(&mut self, sent: Sent, now: Duration) {
        if sent.rate <= self.pacer.first_rate() {
            self.at_first_pace.lost = self.at_first_pace.lost.saturating_sub(1);
        }
        let Some(slowed) = &mut self.slowed else {
            return;
        };
        if sent.at >= self.slowed_at {
            return;
        }
        slowed.late += 1;
        if slowed.late * 2 >= slowed.lost {
            (self.most, self.slowed_at) = slowed.before;
            self.pacer.set_rate(slowed.rate, now);
            self.slowed = None;
            self.next_level();
        }
    }

    pub(super) fn evaluate_loss(&mut self, sent: Sent, now: Duration) {
        let largest = self.flows[sent.flow as usize].largest_answered;
        let largest =
            largest.filter(|&largest| sent.size <= largest && sent.state != ProbeState::Refused);
        let Some(largest) = largest else { return };
        let lost = u32::from(sent.state == ProbeState::Open);
        let first = self.pacer.first_rate();
        if sent.rate <= first {
            self.at_first_pace += LossCount { sent: 1, lost };
            let is_lossy = self.at_first_pace.sent >= BASELINE_PROBES && self.share() >= PATH_LOSS;
            if is_lossy && !self.is_lifted {
                (self.most, self.is_lifted) = (f64::INFINITY, true);
            }
            return;
        }
        if sent.at < self.slowed_at || sent.size < largest / 2 {
            return;
        }
        let (bits, count) = self.last;
        self.last = (
            (bits << 1 | lost) & ((1 << LOSS_WINDOW) - 1),
            (count + 1).min(LOSS_WINDOW),
        );
        let (bits, count) = self.last;
        let (lost, count) = (f64::from(bits.count_ones()), f64::from(count));
        let share = self.share_at_most();
        // Beyond chance: four standard deviations of the loss at the first pace.
        let usual = count * share + 4.0 * (count * share * (1.0 - share)).sqrt();
        if count >= f64::from(MIN_LOSS_SAMPLES) && lost > (count * (EXCESS_LOSS + share)).max(usual)
        {
            self.slowed = Some(RateReduction {
                before: (self.most, self.slowed_at),
                rate: self.pacer.rate(),
                lost: lost as u32,
                late: 0,
            });
            self.most = (sent.rate / 2.0).max(first);
            self.pacer.set_rate(first, now);
            self.slowed_at = now;
            self.last = (0, 0);
            self.next_level();
        }
    }

    /// Upper end of the 95 % interval of the share lost at the first pace.
    fn share_at_most(&self) -> f64 {
        let share = self.share();
        let sent = f64::from(self.at_first_pace.sent.max(1));
        (share + 2.0 * (share * (1.0 - share) / sent).sqrt()).min(1.0)
    }

    /// Share of probes lost at the first pace; 0 until enough were sent at it.
    fn share(&self) -> f64 {
        let LossCount { sent, lost } = self.at_first_pace;
        if sent < BASELINE_PROBES {
            return 0.0;
        }
        f64::from(lost) / f64::from(sent)
    }
}
