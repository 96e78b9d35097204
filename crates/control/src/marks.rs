//! Marks of a window: what may have disturbed it, from its counts.

use wirecost_model::plan::Cores;
use wirecost_model::sample::{LoadResult, Mark};
use wirecost_model::usage::{FOREIGN_CORES_THRESHOLD, HostUsage, STEAL_THRESHOLD};

/// Marks of foreign load and steal above their thresholds, and of backlog drops.
pub(crate) fn marks(sender: &HostUsage, receiver: &HostUsage, cores: Cores) -> Vec<Mark> {
    let mut marks = Vec::new();
    // Of a single machine one host looks for it; of two machines each does.
    let foreign = [sender, receiver].into_iter();
    let foreign = foreign
        .filter_map(|usage| usage.foreign_cores)
        .reduce(f64::max);
    if let Some(foreign) = foreign.filter(|cores| *cores > FOREIGN_CORES_THRESHOLD) {
        marks.push(Mark::ForeignLoad {
            cores: foreign,
            threshold: FOREIGN_CORES_THRESHOLD,
        });
    }
    // With shared cores both hosts read the same counters.
    let hosts = [("a", sender), ("b", receiver)];
    let apart = if cores == Cores::Split {
        &hosts[..]
    } else {
        &hosts[..1]
    };
    for (name, usage) in apart {
        let fraction = usage.steal_fraction();
        if fraction > STEAL_THRESHOLD {
            let host = (*name).to_owned();
            marks.push(Mark::Steal {
                host,
                fraction,
                threshold: STEAL_THRESHOLD,
            });
        }
        if usage.backlog_drops > 0 {
            let host = (*name).to_owned();
            marks.push(Mark::BacklogDrops {
                host,
                packets: usage.backlog_drops,
            });
        }
    }
    marks
}

/// A mark for each end whose own threads were the limit. An end without a rate is not marked where the kernel's work on
/// packets fills the cores of its host: that is what is measured. Threads that keep a rate should sleep between
/// messages and are always marked.
pub(crate) fn generator_bound(
    loads: &[LoadResult],
    [a, b]: [&HostUsage; 2],
) -> impl Iterator<Item = Mark> {
    let is_full = move |host: &str| if host == "a" { a } else { b }.is_full_of_kernel();
    loads.iter().flat_map(move |load| {
        let bound = load
            .generator
            .iter()
            .filter(move |end| end.bound && (load.schedule.is_some() || !is_full(&end.host)));
        bound.map(|end| Mark::GeneratorBound {
            load: load.name.clone(),
            host: end.host.clone(),
            end: end.end,
        })
    })
}

#[cfg(test)]
mod tests {
    use wirecost_model::fixtures;

    use super::*;

    #[test]
    fn foreign_load_of_either_machine_is_marked_and_the_larger_one_is_told() {
        let usage = |foreign_cores| HostUsage {
            foreign_cores,
            ..fixtures::usage(1.0, 0.5)
        };
        let (idle, busy, busier) = (Some(0.0), Some(0.5), Some(1.5));
        for (sender, receiver, told) in [
            (idle, idle, None),
            (busy, None, busy),
            (idle, busy, busy),
            (busy, busier, busier),
            (busier, busy, busier),
        ] {
            let found = marks(&usage(sender), &usage(receiver), Cores::Split);
            let cores = found.iter().find_map(|mark| match mark {
                Mark::ForeignLoad { cores, .. } => Some(*cores),
                _ => None,
            });
            assert_eq!((cores, found.len()), (told, usize::from(told.is_some())));
        }
    }
}
