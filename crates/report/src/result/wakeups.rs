//! CPU with and without an emulated line, and how often the cores were woken.

use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::end_window::End;
use wirecost_model::metric::{Metric, StreamCpu};
use wirecost_model::record::RunHead;
use wirecost_stats::summary;

use crate::result::document::{CellWakeups, HostWakeups, WakeupsResult, WindowCpu};
use crate::result::gathered::{CellSums, Gathered, side};

/// Share of the busy time, 0 to 1: where wake-ups take more in some cell, they are reported without a line too.
const NOTABLE: f64 = 0.2;

/// CPU and wake-ups of each cell; `None` where no cell has a window without its line and wake-ups take little
/// everywhere.
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

#[cfg(test)]
mod tests {
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
}
