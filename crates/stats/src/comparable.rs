//! The guard before every verdict: whether two cells differ in nothing but the factor that is compared.
//!
//! A verdict is about the network only where the figure is. Each check looks at one thing besides
//! the factor that decides figures. Where it differs between the two cells, the verdict is withheld
//! and a [`Remark`] says why. Where the factor itself changes that thing, or the difference is
//! small, the remark accompanies the verdict. A check is skipped where the record lacks what it
//! needs.

mod about;
mod aggregation;
mod backlog;
mod distance;
mod disturbed;
mod encapsulation;
mod evidence;
mod factor_is_figure;
mod generator;
mod host;
mod in_effect;
mod pacing;
mod schedule;
mod transit;
mod wakeups;

use std::collections::BTreeMap;

use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::effect::{Remark, RemarkKind};
use wirecost_model::metric::Metric;

use crate::observed::Observed;

pub use about::Subject;
pub use aggregation::{BARRING_SEGMENTS_RATIO, REPORTED_SEGMENTS_RATIO};
pub use backlog::{BARRING_DROP_SHARE, DIFFERENT_DROPS_RATIO, REPORTED_DROP_SHARE};
pub use distance::{DISTANCE_RATIO, DISTANT_ROUNDS_SHARE};
pub use disturbed::FOREIGN_CORES_DIFFERENCE;
pub use evidence::Evidence;
pub use factor_is_figure::LIMITED_RATE_SHARE;
pub use generator::BOTTLENECK_SAMPLES_SHARE;
pub use in_effect::{COPIED_SENDS_SHARE, SAME_SEGMENTS_RATIO};
pub use pacing::MIN_NETWORK_RTT_US;
pub use schedule::LATENESS_RATIO;
pub use wakeups::{EXPLAINED_CPU_SHARE, NEGLIGIBLE_WAKEUPS_SHARE, SAME_INTERRUPTS_RATIO};

/// Whether two cells are comparable, and what else differs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Comparability {
    /// Why the cells cannot be compared; no verdict is then given.
    pub not_comparable: Option<Remark>,
    /// Why the verdict "makes no difference" cannot be given; any other verdict can.
    pub unchanged: Option<Remark>,
    /// Other differences, reported with the verdict.
    pub remarks: Vec<Remark>,
}

/// The result of one check.
enum Objection {
    /// No verdict can be given.
    NotComparable(Remark),
    /// A verdict can be given, with this remark.
    Remarks(Remark),
}

impl Objection {
    /// A bar to the verdict, or a remark only where the factor is about this very difference.
    const fn unless(about: bool, remark: Remark) -> Self {
        if about {
            Self::Remarks(remark)
        } else {
            Self::NotComparable(remark)
        }
    }
}

/// Two cells, and the metric and factor by which they are compared.
struct Pair<'a> {
    subject: &'a Subject<'a>,
    from: &'a Evidence<'a>,
    to: &'a Evidence<'a>,
    metric: Metric,
}

impl Pair<'_> {
    /// One property of both cells; `None` unless both have it.
    fn both<T>(&self, of: impl Fn(&Evidence<'_>) -> Option<T>) -> Option<(T, T)> {
        Some((of(self.from)?, of(self.to)?))
    }

    /// Both figures with their levels: `1.0 with none and 29 with vxlan`.
    fn figures(&self, (from, to): (f64, f64)) -> String {
        self.texts((&number(from), &number(to)))
    }

    fn texts(&self, (from, to): (&str, &str)) -> String {
        let subject = self.subject;
        format!(
            "{from} {} and {to} {}",
            subject.with_from(),
            subject.with_to()
        )
    }
}

/// Formats a figure with about three significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        v if v < 1e-9 => "0".into(),
        v if v < 0.1 => format!("{value:.3}"),
        v if v < 1.0 => format!("{value:.2}"),
        v if v < 10.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn remark(kind: RemarkKind, text: String, advice: &str) -> Remark {
    Remark {
        kind,
        text,
        advice: advice.into(),
    }
}

/// All checks. Where several bar, the first in this order is the reason given.
const CHECKS: [fn(&Pair<'_>) -> Option<Objection>; 17] = [
    factor_is_figure::check,
    host::open_vswitch,
    host::steering,
    in_effect::zero_copy,
    pacing::check,
    disturbed::check,
    encapsulation::on_all_cores,
    generator::check,
    schedule::missed,
    aggregation::at_receiver,
    aggregation::at_sender,
    backlog::check,
    distance::check,
    wakeups::check,
    schedule::late,
    transit::cpu,
    transit::joined_inside,
];

/// Runs every check on two cells of one run, or on one cell in two runs.
pub fn comparability(
    subject: &Subject<'_>,
    from: &Evidence<'_>,
    to: &Evidence<'_>,
    metric: Metric,
) -> Comparability {
    let pair = Pair {
        subject,
        from,
        to,
        metric,
    };
    let mut found = Comparability {
        unchanged: in_effect::offload(&pair),
        ..Comparability::default()
    };
    for says in CHECKS.iter().filter_map(|check| check(&pair)) {
        match says {
            Objection::NotComparable(remark) if found.not_comparable.is_none() => {
                found.not_comparable = Some(remark);
            }
            // A verdict is withheld already: only the first bar carries advice.
            Objection::NotComparable(remark) | Objection::Remarks(remark) => {
                found.remarks.push(Remark {
                    advice: String::new(),
                    ..remark
                });
            }
        }
    }
    found
}

/// The guard of one experiment: the evidence of each cell's loads, computed once.
pub(crate) struct Guard<'a> {
    experiment: &'a Experiment,
    cells: BTreeMap<(u32, &'a str), Evidence<'a>>,
}

impl<'a> Guard<'a> {
    pub(crate) fn of(experiment: &'a Experiment, observed: &'a Observed) -> Self {
        let evidence = |cell: &'a Cell| {
            let loads = cell.loads.iter();
            loads.filter_map(move |named| {
                let key = (cell.index, named.name.as_str());
                Some((key, observed.evidence(cell, named)?))
            })
        };
        Self {
            experiment,
            cells: experiment.cells.iter().flat_map(evidence).collect(),
        }
    }

    pub(crate) fn comparability(
        &self,
        key: &str,
        [from, to]: [&Cell; 2],
        load: &str,
        metric: Metric,
    ) -> Comparability {
        let of = |cell: &Cell| self.cells.get(&(cell.index, load));
        let Some((one, other)) = of(from).zip(of(to)) else {
            return Comparability::default();
        };
        let level = |cell: &Cell| cell.levels.get(key).cloned().unwrap_or_default();
        let subject = Subject::Factor {
            plan: &self.experiment.plan,
            key,
            from: level(from),
            to: level(to),
        };
        comparability(&subject, one, other, metric)
    }
}
