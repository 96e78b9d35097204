//! CPU at an emulated line and without it, and how often the cores were woken.

use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::end_window::End;
use wirecost_model::metric::{Metric, StreamCpu};
use wirecost_model::record::RunHead;
use wirecost_stats::summary;

use crate::document::{CellWakeups, HostWakeups, WakeupsResult, WindowCpu};
use crate::gathered::{CellSums, Gathered, side};

/// Share of the busy time that wake-ups take in some cell, from which on they are told without a line too.
const NOTABLE: f64 = 0.2;

/// Nothing where no cell has a window without its line, and wake-ups take little everywhere.
pub(crate) fn of(head: &RunHead, gathered: &Gathered) -> Option<WakeupsResult> {
    let cost = head.environment.wakeup_cost;
    let experiment = &head.experiment;
    let cells: Vec<CellWakeups> = experiment
        .cells
        .iter()
        .filter_map(|cell| of_cell(experiment, cell, &gathered.cells[&cell.index]))
        .collect();
    let notable = |host: &HostWakeups| {
        let share = host.usual.wakeup_share;
        host.without_line.is_some() || share.is_some_and(|share| share > NOTABLE)
    };
    let mut hosts = cells.iter().flat_map(|cell| &cell.hosts);
    hosts.any(notable).then_some(WakeupsResult { cost, cells })
}

fn of_cell(experiment: &Experiment, cell: &Cell, sums: &CellSums) -> Option<CellWakeups> {
    let [columns] = &sums.loads[..] else {
        return None;
    };
    let metrics = Metric::of(columns.named.load.workload, experiment.plan.cores);
    let hosts: Vec<HostWakeups> = metrics
        .iter()
        .filter_map(|metric| match metric {
            Metric::SenderCpu => Some(("sender", End::Client)),
            Metric::ReceiverCpu => Some(("receiver", End::Server)),
            Metric::Cpu => Some(("machine", End::Server)),
            _ => None,
        })
        .filter_map(|(host, end)| {
            let window = |which: usize| medians(&columns.windows[which][side(end)]);
            Some(HostWakeups {
                host,
                usual: window(0)?,
                without_line: window(1),
            })
        })
        .collect();
    (!hosts.is_empty()).then_some(CellWakeups {
        cell: cell.index,
        hosts,
    })
}

fn medians(windows: &[StreamCpu]) -> Option<WindowCpu> {
    let over = |figure: &dyn Fn(&StreamCpu) -> Option<f64>| {
        Some(summary(windows.iter().filter_map(figure))?.median)
    };
    Some(WindowCpu {
        gbps: over(&|cpu| Some(cpu.bits_per_second / 1e9))?,
        percent_of_a_core: over(&|cpu| Some(cpu.cores * 100.0))?,
        percent_per_gbps: over(&|cpu| Some(cpu.percent_per_gbps()))?,
        wakeups_per_gbit: over(&|cpu| cpu.wakeups_per_gbit),
        wakeup_share: over(&|cpu| cpu.wakeup_share),
    })
}

impl WakeupsResult {
    /// A heading for them.
    pub(crate) fn title(&self) -> &'static str {
        if self.has_line() {
            "CPU at the line, and wake-ups"
        } else {
            "CPU and wake-ups"
        }
    }

    fn has_line(&self) -> bool {
        let mut hosts = self.cells.iter().flat_map(|cell| &cell.hosts);
        hosts.any(|host| host.without_line.is_some())
    }

    /// What the columns mean.
    pub(crate) fn meaning(&self) -> String {
        let at = if self.has_line() {
            "At the line: CPU in percent of a core, and the share of it that its wake-ups take. Without the line: \
             percent of a core per Gbit/s when the line does not limit the load; verdicts on CPU use this."
        } else {
            "CPU in percent of a core, and the share of it that its wake-ups take."
        };
        let cost = match self.cost {
            Some(cost) => format!(
                " A wake-up is an interrupt; a timer interrupt costs {:.1} us of a core here.",
                cost.timer_ns as f64 / 1e3
            ),
            None => " The cost of a wake-up here is not known.".to_owned(),
        };
        format!("{at}{cost}")
    }
}

#[cfg(test)]
mod tests {
    use wirecost_model::record::WakeupCost;

    use super::*;

    fn window(share: Option<f64>) -> StreamCpu {
        StreamCpu {
            bits_per_second: 9.8e9,
            cores: 0.7,
            wakeups_per_gbit: Some(2_000.0),
            wakeup_share: share,
        }
    }

    #[test]
    fn figures_are_medians_and_what_was_not_counted_has_none() {
        let found = medians(&[window(Some(0.5)), window(None), window(Some(0.4))]).expect("three");
        assert!((found.percent_of_a_core - 70.0).abs() < 1e-9);
        assert!((found.percent_per_gbps - 70.0 / 9.8).abs() < 1e-9);
        assert_eq!(found.wakeup_share, Some(0.45));
        assert_eq!(medians(&[]), None);
        assert_eq!(medians(&[window(None)]).expect("one").wakeup_share, None);
    }

    #[test]
    fn the_cost_is_told_where_it_is_known_and_the_line_where_there_is_one() {
        let usual = medians(&[window(Some(0.5))]).expect("a window");
        let result = |without_line, cost| WakeupsResult {
            cost,
            cells: vec![CellWakeups {
                cell: 0,
                hosts: vec![HostWakeups {
                    host: "sender",
                    usual,
                    without_line,
                }],
            }],
        };
        let cost = Some(WakeupCost {
            timer_ns: 17_148,
            other_core_ns: 12_925,
        });
        let with = result(Some(usual), cost);
        assert!(
            with.meaning().starts_with("At the line:"),
            "{}",
            with.meaning()
        );
        assert!(with.meaning().ends_with("costs 17.1 us of a core here."));
        let without = result(None, None);
        assert_eq!(without.title(), "CPU and wake-ups");
        assert!(without.meaning().ends_with("is not known."));
    }
}
