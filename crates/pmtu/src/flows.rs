//! How many flows it takes to meet every one of several equal paths, and what the share of failing flows says.
//!
//! A router that spreads flows over n equal paths picks one by a hash of the 5-tuple: each new flow meets each path
//! with the chance 1/n. How many flows are needed is the stopping rule of the Multipath Detection Algorithm (Veitch,
//! Augustin, Teixeira, Friedman: "Failure Control in Multipath Route Tracing", INFOCOM 2009), for one router.

/// The number of flows that meet every one of `paths` equal paths with at least this `confidence`, in (0, 1).
///
/// ```
/// use wirecost_pmtu::flows_to_cover_all;
/// assert_eq!(flows_to_cover_all(2, 0.95), 6);
/// assert_eq!(flows_to_cover_all(16, 0.99), 115);
/// ```
pub fn flows_to_cover_all(paths: u32, confidence: f64) -> u32 {
    let mut met = PathsMetDistribution::new(paths);
    let mut flows = 0;
    // The loop always ends: 1,024 flows per path leave a chance of e⁻¹⁰²⁴ to miss a given path.
    while met.all() < confidence && flows < paths.saturating_mul(1024) {
        met.one_more_flow();
        flows += 1;
    }
    flows
}

/// The number of flows of which at least one meets a given path of `paths` equal ones with this
/// `confidence`, in (0, 1).
pub fn flows_to_cover_one(paths: u32, confidence: f64) -> u32 {
    if paths <= 1 {
        return 1;
    }
    let missed = 1.0 - 1.0 / f64::from(paths);
    ((1.0 - confidence).ln() / missed.ln()).ceil() as u32
}

/// The largest number of equal paths that `flows` flows all meet with at least this `confidence`; 0 without a flow.
pub fn paths_met(flows: u32, confidence: f64) -> u32 {
    let mut paths = 0;
    while paths < flows && flows_to_cover_all(paths + 1, confidence) <= flows {
        paths += 1;
    }
    paths
}

/// Distribution of the number of paths, out of n, that were met: index the number. Updated flow by flow.
struct PathsMetDistribution {
    chance: Vec<f64>,
}

impl PathsMetDistribution {
    fn new(paths: u32) -> Self {
        let mut chance = vec![0.0; paths as usize + 1];
        chance[0] = 1.0;
        Self { chance }
    }

    fn one_more_flow(&mut self) {
        let paths = (self.chance.len() - 1) as f64;
        for met in (0..self.chance.len()).rev() {
            let known = self.chance[met] * met as f64 / paths;
            let new = if met == 0 {
                0.0
            } else {
                self.chance[met - 1] * (paths - (met - 1) as f64) / paths
            };
            self.chance[met] = known + new;
        }
    }

    fn all(&self) -> f64 {
        self.chance.last().copied().unwrap_or(1.0)
    }
}

/// The share of flows that fail, and what it says about the paths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FailingShare {
    /// Flows that fail.
    pub failing: u32,
    /// Flows that were probed and answered.
    pub of: u32,
    /// `failing / of`, 0..=1.
    pub share: f64,
    /// 95 % interval of the share (Wilson's).
    pub between: (f64, f64),
    /// One of about this many paths is bad; absent where the share is above a half.
    pub one_in: Option<u32>,
}

impl FailingShare {
    /// The share of `failing` flows of `of`. `None` where no flow fails, or none was probed.
    pub fn new(failing: u32, of: u32) -> Option<Self> {
        if failing == 0 || of == 0 {
            return None;
        }
        let share = f64::from(failing) / f64::from(of);
        Some(Self {
            failing,
            of,
            share,
            between: wilson(failing, of),
            one_in: (share <= 0.5).then(|| (1.0 / share).round() as u32),
        })
    }
}

/// Wilson's score interval at 95 % (Wilson 1927), which stays within 0..=1.
fn wilson(hits: u32, of: u32) -> (f64, f64) {
    const Z: f64 = 1.959_963_985;
    let (n, p) = (f64::from(of), f64::from(hits) / f64::from(of));
    let centre = p + Z * Z / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (
        ((centre - half) / scale).max(0.0),
        ((centre + half) / scale).min(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published table: 95 and 99 %.
    const TABLE: [(u32, u32, u32); 8] = [
        (2, 6, 8),
        (3, 11, 15),
        (4, 16, 21),
        (5, 21, 28),
        (9, 44, 58),
        (17, 96, 123),
        (33, 211, 264),
        (65, 462, 566),
    ];

    #[test]
    fn the_table_of_multipath_detection_comes_out() {
        for (paths, at_95, at_99) in TABLE {
            assert_eq!(flows_to_cover_all(paths, 0.95), at_95, "{paths} paths");
            assert_eq!(flows_to_cover_all(paths, 0.99), at_99, "{paths} paths");
            assert_eq!(paths_met(at_99, 0.99), paths);
            assert_eq!(paths_met(at_99 - 1, 0.99), paths - 1);
        }
    }

    #[test]
    fn one_bad_member_of_n_takes_about_3_n_flows_at_95_and_4_6_n_at_99_percent() {
        for paths in [2u32, 4, 8, 16, 64] {
            let n = f64::from(paths);
            assert!(f64::from(flows_to_cover_one(paths, 0.95)) <= 3.0 * n + 1.0);
            assert!(f64::from(flows_to_cover_one(paths, 0.99)) <= 4.61 * n + 1.0);
        }
        assert_eq!(flows_to_cover_one(8, 0.99), 35);
        assert_eq!(flows_to_cover_one(1, 0.99), 1);
    }

    #[test]
    fn a_share_names_the_number_of_members() {
        let share = FailingShare::new(8, 64).expect("some fail");
        assert_eq!(share.one_in, Some(8));
        assert!(share.between.0 < 0.125 && share.between.1 > 0.125);
        assert_eq!(FailingShare::new(64, 64).expect("all fail").one_in, None);
        assert_eq!(FailingShare::new(0, 64), None);
    }
}
