//! Applies rules of other tools to the same samples: to throughput, and to the time of moves. None decides a verdict.

use wirecost_model::cell::Cell;
use wirecost_model::metric::Metric;
use wirecost_stats::rules::{Netperf, Pbench, netperf, pbench, trimmed, worst_of};

use crate::result::document::{CellRules, OtherRules};
use crate::result::gathered::Gathered;

pub(crate) fn apply(cells: &[Cell], gathered: &Gathered) -> OtherRules {
    let (with_pbench, with_netperf) = (Pbench::default(), Netperf::default());
    let (mut ours_s, mut pbench_s) = (0.0, Some(0.0));
    let mut results = Vec::with_capacity(cells.len());
    for cell in cells {
        let sums = &gathered.cells[&cell.index];
        let (gbps, took_s) = (&sums.gbps[..], sums.took_s);
        let by_pbench = pbench(gbps, with_pbench);
        ours_s += took_s;
        let one_s = took_s / f64::from(sums.samples.max(1));
        pbench_s = pbench_s
            .zip(by_pbench.expected_samples)
            .map(|(sum, samples)| sum + samples * one_s);
        results.push(CellRules {
            cell: cell.index,
            samples: gbps.len() as u32,
            pbench: by_pbench,
            trimmed_gbps: trimmed(gbps),
            worst_of_gbps: worst_of(gbps, Metric::Throughput.better()),
            trimmed_move_s: trimmed(&sums.move_s),
            worst_of_move_s: worst_of(&sums.move_s, Metric::MoveTime.better()),
            netperf: netperf(gbps, with_netperf),
        });
    }
    OtherRules {
        pbench: with_pbench,
        netperf: with_netperf,
        cells: results,
        ours_s,
        pbench_s,
    }
}
