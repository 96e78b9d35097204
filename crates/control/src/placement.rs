//! Which host runs on which cores.

use wirecost_agent::lab::may_steer;
use wirecost_model::cell::Experiment;
use wirecost_model::plan::Cores;

/// The lab's hosts on this machine's cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// How the hosts got cores: `Split`, which needs two cores, or `Shared`.
    pub cores: Cores,
    /// Cores of host a.
    pub a: Vec<u32>,
    /// Cores of host b.
    pub b: Vec<u32>,
    /// The core of the emulated lines alone, which no host uses; `None`: the sender's cores do that work.
    pub line: Option<u32>,
}

impl Placement {
    /// Every core of the hosts, ascending.
    pub fn all(&self) -> Vec<u32> {
        let mut all = [&self.a[..], &self.b[..]].concat();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Places the hosts on the cores that this process may use.
///
/// Split: host a gets the lower half of the cores, host b the upper. An odd core goes to host b, which receives and has
/// more to do. A single core is shared by both, whatever the plan says.
pub fn place(wish: Cores, allowed: &[u32]) -> Placement {
    if wish == Cores::Shared || allowed.len() < 2 {
        return Placement {
            cores: Cores::Shared,
            a: allowed.to_vec(),
            b: allowed.to_vec(),
            line: None,
        };
    }
    let (a, b) = allowed.split_at(allowed.len() / 2);
    Placement {
        cores: Cores::Split,
        a: a.to_vec(),
        b: b.to_vec(),
        line: None,
    }
}

/// [`place`] for the hosts of a run. Where cores are split, there are at least three, and some cell has a rate-limited
/// line, the last core is reserved for the emulated lines, in cells without a line too: every cell gets the same cores.
pub(crate) fn place_run(experiment: &Experiment, allowed: &[u32]) -> Placement {
    let lines = experiment
        .cells
        .iter()
        .any(|cell| cell.network.rate.is_some());
    place_with_line(experiment.plan.cores, allowed, lines && may_steer())
}

fn place_with_line(wish: Cores, allowed: &[u32], line: bool) -> Placement {
    match allowed {
        [hosts @ .., last] if line && wish == Cores::Split && hosts.len() >= 2 => Placement {
            line: Some(*last),
            ..place(wish, hosts)
        },
        _ => place(wish, allowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_hosts_share_no_core() {
        let placed = place(Cores::Split, &[0, 2, 5]);
        assert_eq!((placed.a, placed.b), (vec![0], vec![2, 5]));
    }

    #[test]
    fn lines_have_the_third_core_where_hosts_have_their_own() {
        let placed = place_with_line(Cores::Split, &[0, 2, 5, 6], true);
        assert_eq!((placed.a, placed.b), (vec![0], vec![2, 5]));
        assert_eq!(placed.line, Some(6));
        let without = |wish, allowed: &[u32], line| place_with_line(wish, allowed, line).line;
        assert_eq!(without(Cores::Split, &[0, 2, 5], false), None);
        assert_eq!(without(Cores::Shared, &[0, 2, 5], true), None);
        assert_eq!(without(Cores::Split, &[0, 2], true), None);
    }

    #[test]
    fn one_core_is_shared_and_says_so() {
        assert_eq!(place(Cores::Split, &[3]).cores, Cores::Shared);
        assert_eq!(place(Cores::Shared, &[0, 1]).a, vec![0, 1]);
        assert_eq!(place(Cores::Shared, &[0, 1]).all(), vec![0, 1]);
    }
}
