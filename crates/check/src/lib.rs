//! What probes of a path come to: lines about paths, and findings beside those of room `audit`.
//!
//! Pure: from reports, which an agent sends, to [`Finding`]s. Nothing is probed here (`probe`), and nothing is decided
//! about sizes (`pmtu`): here it is said what an answer means, for whom it is a fault, and what to do.

mod finding;
mod judge;
mod report;

pub use finding::{PATH_FINDINGS, catalogue};
pub use judge::judge;
pub use report::{End, FlowReport, Kind, PathReport, Stretch, Wanted};
pub use wirecost_audit::{Finding, FindingKind, Severity};

#[cfg(test)]
mod tests;
