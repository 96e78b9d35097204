//! Samples that do not count.

use serde::Serialize;

/// A sample that enters no verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InvalidSample {
    /// Round, from 0.
    pub round: u32,
    /// The cell's number.
    pub cell: u32,
    /// The reason.
    pub reason: String,
}
