//! Threats to the validity of a result: detected and reported with their numbers. No sample is removed.

mod dip;
mod drift;
mod findings;
mod modes;
mod outliers;
mod pairs;

pub use dip::{dip, dip_p};
pub use drift::{Trend, trend};
pub use findings::{FINDING_ALPHA, Finding, OutlierSample, SelfTest, findings, self_test};
pub use modes::{TwoModes, two_modes};
pub use outliers::{MODIFIED_Z, Outlier, outliers};
