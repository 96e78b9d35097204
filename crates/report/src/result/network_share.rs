//! The network's share of storage latency: the latency with the initiator across the network, against that with the
//! initiator on the target's host.

use wirecost_model::cell::Experiment;
use wirecost_model::metric::Metric;
use wirecost_stats::{Contrast, summary};

use crate::result::document::{NetworkChange, NetworkShare};
use crate::result::gathered::Gathered;
use crate::result::round_latencies::RoundLatencies;

/// The network's share in one cell; `None` where no round has both windows.
pub(crate) fn of_cell(rounds: &[RoundLatencies]) -> Option<NetworkShare> {
    let over = |figure: fn(&RoundLatencies) -> f64| summary(rounds.iter().map(figure));
    let (latency_us, network_us) = (over(|one| one.across)?, over(RoundLatencies::network)?);
    Some(NetworkShare {
        latency_us,
        at_target_us: over(|one| one.at_target)?,
        network_us,
        share_percent: network_us.mean / latency_us.mean * 100.0,
    })
}

/// What each change of one factor adds to the network's part, for every two cells with the same load.
pub(crate) fn changes(
    experiment: &Experiment,
    gathered: &Gathered,
    contrasts: &[Contrast],
) -> Vec<NetworkChange> {
    let rounds = |cell: u32, load: &str| {
        let columns = gathered.cells.get(&cell)?.load(load)?;
        Some(&columns.shares[..])
    };
    let load_of = |cell: u32, load: &str| {
        let mut cells = experiment.cells.iter();
        cells.find(|one| one.index == cell)?.load(load)
    };
    let one_each = contrasts
        .iter()
        .filter(|contrast| contrast.metric == Metric::Transactions);
    one_each
        .filter_map(|contrast| {
            let [from, to] = contrast.cells;
            let name = &contrast.load;
            if load_of(from, name)? != load_of(to, name)? {
                return None;
            }
            let before = rounds(from, name)?;
            let added = rounds(to, name)?.iter().filter_map(|after| {
                let before = before.iter().find(|one| one.round == after.round)?;
                Some(after.network() - before.network())
            });
            Some(NetworkChange {
                load: name.clone(),
                factor: contrast.factor.clone(),
                from: contrast.from.clone(),
                to: contrast.to.clone(),
                cells: contrast.cells,
                added_us: summary(added)?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_s_part_is_paired_by_round() {
        let round = |round, across, at_target| RoundLatencies {
            round,
            across,
            at_target,
        };
        // Both drift together: the difference does not.
        let rounds = [
            round(0, 210.0, 70.0),
            round(1, 230.0, 90.0),
            round(2, 250.0, 109.0),
        ];
        let share = of_cell(&rounds).expect("rounds");
        assert!((share.network_us.mean - 421.0 / 3.0).abs() < 1e-9);
        let width = share.network_us.high.expect("an end") - share.network_us.low.expect("an end");
        assert!(width < 4.0, "{width}");
        assert!((share.share_percent - 421.0 / 690.0 * 100.0).abs() < 1e-9);
        assert_eq!(of_cell(&[]), None);
    }
}
