//! The distance (latency) between the lab's cores, before and after each sample: in a virtual machine nothing else
//! shows that the hypervisor moved a virtual core to another physical one.

use wirecost_agent::lab::core_distance_ns;
use wirecost_model::plan::Cores;
use wirecost_model::sample::{CoreDistance, Mark};

use crate::placement::Placement;

/// Pairs of cores that are measured, which takes 2 ms for each pair.
const LOOKED_AT: usize = 4;

/// The pairs of cores to measure: one core of each host where cores are split, else neighbouring cores.
fn pairs(placement: &Placement) -> Vec<[u32; 2]> {
    match placement.cores {
        Cores::Split => {
            let both = placement.a.iter().zip(&placement.b);
            both.map(|(a, b)| [*a, *b]).take(LOOKED_AT).collect()
        }
        Cores::Shared => {
            let all = placement.all();
            let pairs = all.windows(2).map(|two| [two[0], two[1]]);
            pairs.take(LOOKED_AT).collect()
        }
    }
}

/// Measures before the load runs.
pub(crate) fn before(placement: &Placement) -> Vec<CoreDistance> {
    let look = |cpus| CoreDistance {
        cpus,
        before_ns: core_distance_ns(cpus),
        after_ns: None,
    };
    pairs(placement).into_iter().map(look).collect()
}

/// Measures again, after the load ended.
pub(crate) fn after(core_distance: &mut [CoreDistance]) {
    for pair in core_distance {
        // A pair that could not be measured before would most likely fail again, which may take a second.
        if pair.before_ns.is_some() {
            pair.after_ns = core_distance_ns(pair.cpus);
        }
    }
}

/// A mark for each pair of which a core was moved between the two measurements.
pub(crate) fn moved(core_distance: &[CoreDistance]) -> impl Iterator<Item = Mark> {
    core_distance.iter().filter_map(|pair| {
        let [before_ns, after_ns] = pair.moved()?;
        Some(Mark::CoresMoved {
            cpus: pair.cpus,
            before_ns,
            after_ns,
            threshold: CoreDistance::MOVED,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::place;

    #[test]
    fn a_core_of_each_host_is_looked_at_and_neighbours_where_they_share() {
        let many: Vec<u32> = (0..64).collect();
        assert_eq!(
            pairs(&place(Cores::Split, &[0, 2, 5])),
            [[0, 2]],
            "one host has one core"
        );
        assert_eq!(
            pairs(&place(Cores::Split, &many)),
            [[0, 32], [1, 33], [2, 34], [3, 35]]
        );
        assert_eq!(pairs(&place(Cores::Shared, &[1, 3, 7])), [[1, 3], [3, 7]]);
        assert_eq!(pairs(&place(Cores::Shared, &many)).len(), LOOKED_AT);
        assert!(pairs(&place(Cores::Split, &[4])).is_empty());
    }

    #[test]
    fn cores_that_are_not_there_are_not_known_and_marked_as_nothing() {
        let mut core_distance = before(&place(Cores::Split, &[0, 1023]));
        after(&mut core_distance);
        assert_eq!(core_distance[0].mean_ns(), None);
        assert_eq!(moved(&core_distance).count(), 0);
    }

    #[test]
    fn a_moved_core_is_marked_with_what_was_seen() {
        let pair = |after_ns| CoreDistance {
            cpus: [0, 1],
            before_ns: Some(64.0),
            after_ns: Some(after_ns),
        };
        let marks: Vec<Mark> = moved(&[pair(66.0), pair(301.0)]).collect();
        assert_eq!(
            marks,
            [Mark::CoresMoved {
                cpus: [0, 1],
                before_ns: 64.0,
                after_ns: 301.0,
                threshold: 1.5
            }]
        );
    }
}
