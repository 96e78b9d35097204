//! Invalid samples.

use serde::Serialize;

/// An invalid sample, which enters no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InvalidSample {
    /// Round, from 0.
    pub round: u32,
    /// The cell's number.
    pub cell: u32,
    /// Why it is not valid, in words.
    pub reason: String,
}
