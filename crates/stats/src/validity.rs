//! What speaks against a result: detected, named, given with its numbers; nothing is thrown away.

mod dip;
mod drift;
mod findings;
mod modes;
mod outliers;
mod pairs;

pub use dip::{dip, dip_p};
pub use drift::{Trend, trend};
pub use findings::{FINDING_ALPHA, FarSample, Finding, SelfTest, findings, self_test};
pub use modes::{TwoModes, two_modes};
pub use outliers::{MODIFIED_Z, Outlier, outliers};
