//! When a pace was too much, and when it only seemed so.

use std::time::Duration;

use super::{Fate, Flight, Sent};
use crate::evidence::LossCount;

/// Of the last [`LAST`] large probes this share lost, beyond what the first pace loses, is too much; of so many at least.
const LAST: u32 = 16;
const SOME: u32 = 8;
const TOO_MUCH: f64 = 1.0 / 3.0;
/// Probes at the first pace that tell what is lost whatever the pace.
const ENOUGH: u32 = 20;
/// From this share of those on, what is lost is not our doing.
const NOT_OURS: f64 = 0.2;

/// The last time that the pace was lowered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slowed {
    /// The highest pace, and when it was lowered before.
    before: (f64, Duration),
    /// Bytes per second until then.
    rate: f64,
    /// Probes that were taken for lost, and those of them that were answered since.
    lost: u32,
    late: u32,
}

impl Flight {
    /// What was taken for lost is answered after all: a host did not run for a while, and no queue was full (as in the
    /// Eifel detection, RFC 3522). Where it was half of what the pace was lowered for, that is taken back.
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

    pub(super) fn look_at_loss(&mut self, sent: Sent, now: Duration) {
        let largest = self.flows[sent.flow as usize].largest_answered;
        let largest = largest.filter(|&largest| sent.size <= largest && sent.fate != Fate::Refused);
        let Some(largest) = largest else { return };
        let lost = u32::from(sent.fate == Fate::Open);
        let first = self.pacer.first_rate();
        if sent.rate <= first {
            self.at_first_pace += LossCount { sent: 1, lost };
            let is_lossy = self.at_first_pace.sent >= ENOUGH && self.share() >= NOT_OURS;
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
            (bits << 1 | lost) & ((1 << LAST) - 1),
            (count + 1).min(LAST),
        );
        let (bits, count) = self.last;
        let (lost, count) = (f64::from(bits.count_ones()), f64::from(count));
        let share = self.share_at_most();
        // No luck: four standard deviations of what the first pace loses.
        let usual = count * share + 4.0 * (count * share * (1.0 - share)).sqrt();
        if count >= f64::from(SOME) && lost > (count * (TOO_MUCH + share)).max(usual) {
            self.slowed = Some(Slowed {
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

    /// The same, as much as it may be with 95 %.
    fn share_at_most(&self) -> f64 {
        let share = self.share();
        let sent = f64::from(self.at_first_pace.sent.max(1));
        (share + 2.0 * (share * (1.0 - share) / sent).sqrt()).min(1.0)
    }

    /// What share the first pace loses; unknown until enough was sent at it.
    fn share(&self) -> f64 {
        let LossCount { sent, lost } = self.at_first_pace;
        if sent < ENOUGH {
            return 0.0;
        }
        f64::from(lost) / f64::from(sent)
    }
}
