//! The distance of a lab's cores, before and after a sample.

use serde::{Deserialize, Serialize};

use super::Sample;

/// The distance of two cores of a lab: the round trip of a cache line between them. All data that one host passes to
/// the other goes this way. On bare metal it is a property of the machine; in a virtual machine it changes whenever the
/// hypervisor moves a core (docs/facts.md).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoreDistance {
    /// The two cores, by the kernel's numbers.
    pub cpus: [u32; 2],
    /// Round trip before the load, nanoseconds; `None` where it could not be measured, as while other programs keep a
    /// core busy.
    pub before_ns: Option<f64>,
    /// Round trip after the load, nanoseconds; `None` also where there is none before the load or the sample ended
    /// early.
    pub after_ns: Option<f64>,
}

impl CoreDistance {
    /// Ratio of the longest to the shortest round trip above which a core counts as moved. Round trips between cores
    /// that stay differ by up to 15 %; in a virtual machine with two cores one took 27 to 132 ns or 262 to 472 ns
    /// (docs/facts.md).
    pub const MOVED: f64 = 1.5;

    /// Whether these round trips, nanoseconds, show that a core was moved between them.
    pub fn differ(looks: impl IntoIterator<Item = f64>) -> bool {
        let (nearest, farthest) = looks
            .into_iter()
            .fold((f64::INFINITY, 0.0_f64), |(nearest, farthest), look| {
                (nearest.min(look), farthest.max(look))
            });
        farthest > nearest * Self::MOVED
    }

    /// The round trips before and after the load, nanoseconds, where a core was moved between them.
    pub fn moved(&self) -> Option<[f64; 2]> {
        let looks = [self.before_ns?, self.after_ns?];
        Self::differ(looks).then_some(looks)
    }

    /// The mean round trip, nanoseconds; `None` where none was measured.
    pub fn mean_ns(&self) -> Option<f64> {
        mean([self.before_ns, self.after_ns].into_iter().flatten())
    }
}

impl Sample {
    /// The mean distance of the lab's cores, nanoseconds, over the measured pairs; `None` without any.
    pub fn core_distance_ns(&self) -> Option<f64> {
        mean(self.cores_apart.iter().filter_map(CoreDistance::mean_ns))
    }
}

fn mean(known: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = known.fold((0.0, 0_u32), |(sum, count), one| (sum + one, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apart(before_ns: Option<f64>, after_ns: Option<f64>) -> CoreDistance {
        CoreDistance {
            cpus: [0, 1],
            before_ns,
            after_ns,
        }
    }

    #[test]
    fn a_core_that_was_moved_either_way_is_seen_and_one_that_stayed_is_not() {
        assert_eq!(apart(Some(64.0), Some(300.0)).moved(), Some([64.0, 300.0]));
        assert_eq!(apart(Some(300.0), Some(64.0)).moved(), Some([300.0, 64.0]));
        assert_eq!(apart(Some(60.0), Some(75.0)).moved(), None);
        assert_eq!(apart(Some(60.0), None).moved(), None);
    }

    #[test]
    fn one_look_is_told_as_it_is() {
        assert_eq!(apart(Some(60.0), Some(70.0)).mean_ns(), Some(65.0));
        assert_eq!(apart(Some(60.0), None).mean_ns(), Some(60.0));
        assert_eq!(apart(None, None).mean_ns(), None);
    }
}
