//! Which host runs on which cores.

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
}

impl Placement {
    /// Every core of the run, ascending.
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
        };
    }
    let (a, b) = allowed.split_at(allowed.len() / 2);
    Placement {
        cores: Cores::Split,
        a: a.to_vec(),
        b: b.to_vec(),
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
    fn one_core_is_shared_and_says_so() {
        assert_eq!(place(Cores::Split, &[3]).cores, Cores::Shared);
        assert_eq!(place(Cores::Shared, &[0, 1]).a, vec![0, 1]);
        assert_eq!(place(Cores::Shared, &[0, 1]).all(), vec![0, 1]);
    }
}
