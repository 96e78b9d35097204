//! Which host runs on which cores.

use wirecost_agent::lab::may_steer;
use wirecost_model::cell::Experiment;
use wirecost_model::plan::Cores;

/// The lab's hosts on this machine's cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// What came of the plan's wish: `Split` needs two cores.
    pub cores: Cores,
    /// Cores of host a.
    pub a: Vec<u32>,
    /// Cores of host b.
    pub b: Vec<u32>,
    /// The core that emulated lines have for themselves.
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
/// Split: the lower half to a, the upper to b, the odd one to b, which receives and has more to do.
/// On a single core both share it, whatever the plan says.
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

/// Places a run's hosts likewise. With three cores and more, hosts on cores of their own, and a line in some cell, the last core
/// is the lines': every cell is then built the same way, those without a line too.
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
