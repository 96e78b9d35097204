//! How far apart the cores of a lab were around a sample.

use serde::{Deserialize, Serialize};

use super::Sample;

/// How far apart two cores of a lab were: how long a cache line takes from one to the other and back. Everything that
/// one host hands to the other goes that way. On a machine of its own it is what the machine is; in a virtual one it
/// changes whenever the hypervisor moves a core (docs/facts.md).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoreDistance {
    /// The two, by the kernel's numbers.
    pub cpus: [u32; 2],
    /// Before the load, nanoseconds; `None` where others did not let a core go.
    pub before_ns: Option<f64>,
    /// After it; `None` too where the sample ended before.
    pub after_ns: Option<f64>,
}

impl CoreDistance {
    /// A core was moved where one of several looks took so many times another. Looks at cores that stay differ by 15 %, and in
    /// a virtual machine of two cores a look took 27 to 132 ns or 262 to 472 (docs/facts.md).
    pub const MOVED: f64 = 1.5;

    /// Whether these looks, nanoseconds, are not all at cores in one place.
    pub fn differ(looks: impl IntoIterator<Item = f64>) -> bool {
        let (nearest, farthest) = looks
            .into_iter()
            .fold((f64::INFINITY, 0.0_f64), |(nearest, farthest), look| {
                (nearest.min(look), farthest.max(look))
            });
        farthest > nearest * Self::MOVED
    }

    /// Both looks, where a core was moved between them.
    pub fn moved(&self) -> Option<[f64; 2]> {
        let looks = [self.before_ns?, self.after_ns?];
        Self::differ(looks).then_some(looks)
    }

    /// The mean of the looks, nanoseconds.
    pub fn mean_ns(&self) -> Option<f64> {
        mean([self.before_ns, self.after_ns].into_iter().flatten())
    }
}

impl Sample {
    /// How far apart the lab's cores were, nanoseconds: the mean over the pairs that were looked at.
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
