//! The constants of the stopping rule, and the boundary that may be looked at after every round.

use crate::interval::{phi_upper, t_upper};

/// `alpha` of an interval after a number of rounds that was fixed in advance.
pub const FIXED_ALPHA: f64 = 0.05;

/// `alpha` of the reported interval after a run that stopped when its effects were settled.
///
/// Stopping when the interval is narrow prefers moments at which the spread looks smaller than it
/// is, so a nominal 95 % interval covers a little less: Chow and Robbins, "On the asymptotic theory
/// of fixed-width sequential confidence intervals for the mean", Ann. Math. Statist. 36 (1965) 457;
/// the loss was tabulated by Starr, "The performance of a sequential procedure for the fixed-width
/// interval estimation of the mean", Ann. Math. Statist. 37 (1966) 36. This value restores the coverage: it
/// was chosen by simulation (docs/statistics.md, `make soak-stats`).
pub const SEQUENTIAL_ALPHA: f64 = 0.043;

/// O'Brien and Fleming's constant on the scale of the final look ("A multiple testing procedure for
/// clinical trials", Biometrics 35 (1979) 549): the boundary is `BOUNDARY / sqrt(information)`.
///
/// Against Brownian motion, that is with a look at every instant, both boundaries together are
/// crossed with probability below `4 (1 - Phi(2.5))` = 2.5 % by the reflection principle.
pub const BOUNDARY: f64 = 2.5;

/// Rounds in a row, the last included, in which an answer must hold before it counts.
///
/// Observations after the one at which a criterion is first met are independent of it, and restore
/// coverage: Simons, "On the cost of not knowing the variance when making a fixed-width confidence
/// interval for the mean", Ann. Math. Statist. 39 (1968) 1946.
pub const IN_A_ROW: usize = 3;

/// Information fraction: how much of the information that will be needed is there, above 0 and at most 1.
///
/// It is 1 when the interval is as narrow as asked, or when the run ends: information is what precision needs, with the
/// spread estimated along the way (Mehta and Tsiatis, "Flexible sample size considerations using information-based
/// interim monitoring", Drug Information Journal 35 (2001) 1095).
pub(super) fn information(half_width: f64, wanted: f64, pairs: usize, ends_at: u32) -> f64 {
    let by_width = (wanted / half_width).powi(2);
    let by_rounds = pairs as f64 / f64::from(ends_at.max(1));
    by_width.max(by_rounds).min(1.0)
}

/// Distance from the estimate to either end of the lasting interval, in standard errors.
///
/// The normal boundary is carried over to Student's t by its significance level (Pocock, "Group
/// sequential methods in the design and analysis of clinical trials", Biometrika 64 (1977) 191;
/// Jennison and Turnbull, "Group Sequential Methods", 2000, section 3.8).
pub(super) fn critical(information: f64, freedom: f64) -> f64 {
    // Beyond 8 the tail is below 1e-15: no verdict comes from there.
    const BEYOND: f64 = 8.0;
    let z = BOUNDARY / information.sqrt();
    if z < BEYOND {
        t_upper(phi_upper(z), freedom)
    } else {
        f64::INFINITY
    }
}
