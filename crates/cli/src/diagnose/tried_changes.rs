//! What the samples say of each change, and of each comparison that is no change.

use wirecost_answer::diagnosis::Evidence;
use wirecost_control::experiment::InspectedHosts;
use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::effect::{Effect, RemarkKind};
use wirecost_model::metric::Metric;
use wirecost_model::sample::Sample;
use wirecost_report::RunResult;

use super::commands::{self, NetDevice};
use super::print::{ChangeVerdict, Compared, TriedChange};
use super::switch::Switch;
use super::{AS_IT_IS, FACTOR};

/// What was measured.
pub(super) struct Measured<'a> {
    pub(super) result: &'a RunResult,
    pub(super) experiment: &'a Experiment,
    pub(super) samples: &'a [Sample],
}

/// Judges an effect by its interval and the margin `worth` (a share, such as 0.05). Samples that foreign load or steal
/// disturbed are not compared. Different segments per packet or wake-ups do not matter here: changing them is what a
/// setting is for.
fn judged(effect: &Effect, worth: f64) -> ChangeVerdict {
    let disturbed = effect.not_comparable.as_ref();
    if disturbed.is_some_and(|remark| remark.kind == RemarkKind::Disturbed) {
        return ChangeVerdict::NotKnown;
    }
    let (Some(low), Some(high)) = (effect.low, effect.high) else {
        return ChangeVerdict::NotKnown;
    };
    let (more, less) = (1.0 + worth, 1.0 / (1.0 + worth));
    if low > more {
        ChangeVerdict::Helps
    } else if high < less {
        ChangeVerdict::Hurts
    } else if low >= less && high <= more {
        ChangeVerdict::NoDifference
    } else {
        ChangeVerdict::NotKnown
    }
}

/// Whether the change `at` this place helps only by another one that the kernel makes along with it: that one helps
/// too, and the interval of this one does not lie above its interval.
fn follows(switches: &[Switch], tried: &[TriedChange], at: usize) -> bool {
    let this = &tried[at];
    let mut others = switches.iter().zip(tried);
    this.judged == ChangeVerdict::Helps
        && others.any(|(switch, other)| {
            switches[at].brings(switch)
                && other.judged == ChangeVerdict::Helps
                && other.high >= this.low
        })
}

impl Measured<'_> {
    /// The changes, the best first.
    pub(super) fn tried(
        &self,
        switches: &[Switch],
        inspected: &InspectedHosts,
    ) -> Vec<TriedChange> {
        let measured = [0, 1].map(|host| NetDevice {
            name: inspected.measured(host),
            kind: inspected.kind(host),
        });
        let netns = [0, 1].map(|host| inspected.netns(host));
        let of = |switch: &Switch| {
            let (effect, judged) = self.effect(switch);
            TriedChange {
                switch: switch.label(),
                judged,
                ratio: effect.and_then(|effect| effect.ratio),
                low: effect.and_then(|effect| effect.low),
                high: effect.and_then(|effect| effect.high),
                reason: self.why_not_known(switch, effect, judged),
                commands: commands::of(switch, measured, netns),
            }
        };
        let mut tried: Vec<TriedChange> = switches.iter().map(of).collect();
        let follows: Vec<bool> = (0..switches.len())
            .map(|at| follows(switches, &tried, at))
            .collect();
        for (tried, follows) in tried.iter_mut().zip(follows) {
            if follows {
                tried.judged = ChangeVerdict::Follows;
            }
        }
        tried.sort_by(|one, other| {
            other
                .ratio
                .unwrap_or(0.0)
                .total_cmp(&one.ratio.unwrap_or(0.0))
        });
        tried
    }

    /// The comparisons that are no change.
    pub(super) fn compared(&self, switches: &[Switch]) -> Vec<Compared> {
        let of = |switch: &Switch| {
            let (effect, judged) = self.effect(switch);
            let evidence = Evidence::of(self.samples_of(switch), None);
            Compared {
                what: switch.label(),
                gbit_per_s: evidence.map(|evidence| evidence.rate / 1e9),
                ratio: effect.and_then(|effect| effect.ratio),
                low: effect.and_then(|effect| effect.low),
                high: effect.and_then(|effect| effect.high),
                reason: self.why_not_known(switch, effect, judged),
            }
        };
        switches.iter().map(of).collect()
    }

    /// The effect of a change on throughput.
    fn effect(&self, switch: &Switch) -> (Option<&Effect>, ChangeVerdict) {
        let label = switch.label();
        let document = &self.result.document;
        let mut effects = document.effects.iter().map(|one| &one.effect);
        let effect = effects.find(|effect| {
            effect.metric == Metric::Throughput
                && effect.factor == FACTOR
                && effect.from == AS_IT_IS
                && effect.to == label
        });
        let judged = effect.map_or(ChangeVerdict::NotKnown, |effect| {
            judged(effect, document.repeat.worth)
        });
        (effect, judged)
    }

    /// Why throughput with a change is not known, where there is a reason.
    fn why_not_known(
        &self,
        switch: &Switch,
        effect: Option<&Effect>,
        judged: ChangeVerdict,
    ) -> Option<String> {
        let barred = effect
            .and_then(|effect| effect.not_comparable.as_ref())
            .map(|remark| remark.text.clone());
        let no_ratio = effect.is_none_or(|effect| effect.ratio.is_none());
        let reason = if no_ratio {
            self.why_invalid(switch).or(barred)
        } else {
            barred
        };
        reason.filter(|_| judged == ChangeVerdict::NotKnown)
    }

    /// Why a change has no valid sample, where there is such a reason.
    fn why_invalid(&self, switch: &Switch) -> Option<String> {
        let mut samples = self.samples_of(switch);
        let invalid = samples.find_map(|sample| sample.invalid.as_ref())?;
        Some(invalid.reason().to_owned())
    }

    fn samples_of(&self, switch: &Switch) -> impl Iterator<Item = &Sample> {
        let label = switch.label();
        let is_cell = |cell: &&Cell| cell.levels.get(FACTOR) == Some(&label);
        let cell = self.experiment.cells.iter().find(is_cell);
        let index = cell.map(|cell| cell.index);
        let samples = self.samples.iter();
        samples.filter(move |sample| Some(sample.cell) == index)
    }
}

#[cfg(test)]
mod tests {
    use super::super::switch::TSO;
    use super::super::switch::tests::at;
    use super::*;

    #[test]
    fn a_change_that_helps_more_than_what_it_brings_does_not_follow() {
        let off = |feature| Switch::Offload {
            at: at("eth0", true),
            feature,
            on: false,
        };
        let mut sum = TSO;
        sum.kernel = "tx-checksum-ip-generic";
        let switches = [off(sum), off(TSO)];
        let helps = |low, high| TriedChange {
            switch: String::new(),
            judged: ChangeVerdict::Helps,
            ratio: Some(low),
            low: Some(low),
            high: Some(high),
            reason: None,
            commands: Vec::new(),
        };
        for (sum, segments, expected) in [
            (helps(1.2, 1.4), helps(1.1, 1.3), true),
            (helps(1.1, 1.2), helps(1.3, 1.4), true),
            (helps(1.8, 2.0), helps(1.1, 1.3), false),
        ] {
            let tried = [sum, segments];
            assert_eq!(
                follows(&switches, &tried, 0),
                expected,
                "{:?}",
                tried[0].low
            );
            assert!(!follows(&switches, &tried, 1));
        }
    }
}
