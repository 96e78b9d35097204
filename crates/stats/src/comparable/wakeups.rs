//! Check for CPU that is mostly wake-ups, as below saturation: timers of the line and of pacing,
//! interrupts to the other core.

use wirecost_model::effect::RemarkKind;

use super::{Evidence, Objection, Pair, number, remark};

/// Interrupts per unit whose ratio is at most this are the same.
pub const SAME_INTERRUPTS_RATIO: f64 = 1.25;
/// Share of the busy time up to which wake-ups do not matter.
pub const NEGLIGIBLE_WAKEUPS_SHARE: f64 = 0.2;
/// Share of the measured difference in CPU: where wake-ups explain less, the figure is about more than wake-ups.
pub const EXPLAINED_CPU_SHARE: f64 = 0.5;

/// Interrupts of a cell over all its samples, per unit of work (Gbit or transaction).
#[derive(Debug, Clone, Copy)]
struct CellWakeups {
    /// Interrupts per unit.
    per_unit: f64,
    /// Core time that the interrupts cost at most, seconds per unit.
    cost: f64,
    /// Busy core time, seconds per unit.
    busy: f64,
}

impl CellWakeups {
    fn share(&self) -> f64 {
        if self.busy > 0.0 {
            (self.cost / self.busy).min(1.0)
        } else {
            1.0
        }
    }
}

pub(super) fn check(pair: &Pair<'_>) -> Option<Objection> {
    let (from, to) = pair.both(|cell| wakeups(pair, cell))?;
    if is_about_more(&from, &to) {
        return None;
    }
    let streams = pair.from.load.load.workload.is_request_response();
    let unit = if streams { "transaction" } else { "Gbit" };
    let percent = |wakeups: &CellWakeups| format!("{:.0}%", wakeups.share() * 100.0);
    let at_line =
        |cell: &Evidence<'_>| cell.cell.network.rate.is_some() && cell.sums.has_no_saturated;
    let (kind, what, advice) = if at_line(pair.from) || at_line(pair.to) {
        let advice = "compare without a line (underlay.rate: none)";
        (
            RemarkKind::LineCost,
            "below the line's rate CPU is wake-ups: ",
            advice,
        )
    } else {
        let advice = "compare where the load is not paced and no core waits";
        (RemarkKind::Wakeups, "CPU is wake-ups here: ", advice)
    };
    let text = format!(
        "{what}{} per {unit}, some {} of the time",
        pair.texts((&number(from.per_unit), &number(to.per_unit))),
        pair.texts((&percent(&from), &percent(&to)))
    );
    Some(Objection::unless(
        pair.subject.is_about_wakeups(),
        remark(kind, text, advice),
    ))
}

/// Whether the figure is about more than wake-ups.
fn is_about_more(from: &CellWakeups, to: &CellWakeups) -> bool {
    // NaN where neither cell has interrupts: they agree.
    let core_distance = (to.per_unit / from.per_unit).ln().abs();
    let agree = core_distance.is_nan() || core_distance <= SAME_INTERRUPTS_RATIO.ln();
    let small = from.share() <= NEGLIGIBLE_WAKEUPS_SHARE && to.share() <= NEGLIGIBLE_WAKEUPS_SHARE;
    let measured = to.busy - from.busy;
    let rest = measured - (to.cost - from.cost);
    let explained = measured == 0.0 || rest / measured <= 1.0 - EXPLAINED_CPU_SHARE;
    agree || small || !explained
}

fn wakeups(pair: &Pair<'_>, cell: &Evidence<'_>) -> Option<CellWakeups> {
    cell.cost?;
    let [interrupts, cost, busy, units] = cell.series(pair.metric)?.wakeups?;
    Some(CellWakeups {
        per_unit: interrupts / units,
        cost: cost / units,
        busy: busy / units,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn wakeups(per_unit: f64, cost: f64, busy: f64) -> CellWakeups {
        CellWakeups {
            per_unit,
            cost,
            busy,
        }
    }

    #[test]
    fn wake_ups_that_agree_are_in_both_figures() {
        assert!(is_about_more(
            &wakeups(100.0, 0.5, 1.0),
            &wakeups(125.0, 0.625, 1.1)
        ));
        assert!(!is_about_more(
            &wakeups(100.0, 0.5, 1.0),
            &wakeups(126.0, 0.63, 1.13)
        ));
    }

    #[test]
    fn a_small_share_decides_nothing() {
        assert!(is_about_more(
            &wakeups(100.0, 0.2, 1.0),
            &wakeups(200.0, 0.22, 1.1)
        ));
        assert!(!is_about_more(
            &wakeups(100.0, 0.2, 1.0),
            &wakeups(200.0, 0.25, 1.05)
        ));
    }

    #[test]
    fn what_wake_ups_do_not_explain_speaks() {
        // Of 0.4 s more 0.19 are wake-ups, and of 0.4 s more 0.21.
        assert!(is_about_more(
            &wakeups(100.0, 0.3, 1.0),
            &wakeups(200.0, 0.49, 1.4)
        ));
        assert!(!is_about_more(
            &wakeups(100.0, 0.3, 1.0),
            &wakeups(200.0, 0.51, 1.4)
        ));
        // Dearer with fewer of them.
        assert!(is_about_more(
            &wakeups(200.0, 0.6, 1.0),
            &wakeups(100.0, 0.3, 1.2)
        ));
    }

    #[test]
    fn no_difference_beside_unequal_wake_ups_is_no_answer() {
        assert!(!is_about_more(
            &wakeups(100.0, 0.3, 1.0),
            &wakeups(200.0, 0.6, 1.0)
        ));
    }

    proptest! {
        #[test]
        fn the_order_of_the_cells_does_not_matter(
            a in (1.0f64..1e5, 0.0f64..1.0, 0.1f64..2.0), b in (1.0f64..1e5, 0.0f64..1.0, 0.1f64..2.0),
        ) {
            let (a, b) = (wakeups(a.0, a.1, a.2), wakeups(b.0, b.1, b.2));
            prop_assert_eq!(is_about_more(&a, &b), is_about_more(&b, &a));
        }
    }
}
