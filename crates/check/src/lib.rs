//! Evaluates probes of a path: a document about the paths, and findings in addition to those of crate `audit`.
//!
//! Pure: turns the reports that agents send into [`Finding`]s. Crate `probe` sends probes, crate `pmtu` decides about
//! sizes; this crate says what a result means, which host has the fault, and what to do.

mod assess;
mod audited;
mod document;
mod encapsulation;
mod finding;
mod judge;
mod observations;
mod one_sided;
mod recommend;
mod report;
mod scope;
mod simulation;
mod southbound;
mod tcp_proof;
mod trace;

pub use assess::assess;
pub use audited::AuditedHost;
pub use document::{
    CheckParameters, Checklist, DirectionReport, Document, FORMAT, HostReport, PathFlowReport,
    SCHEMA, TcpPortReport, UnreadReport,
};
pub use encapsulation::{EncapsulationReport, guests_of, tunnel_port};
pub use finding::{PATH_FINDINGS, catalogue};
pub use judge::{judge, loss_note};
pub use observations::{Observations, Segments, SenderFragmentation, Unreachable};
pub use one_sided::{NarrowDirection, ONE_SIDED_LIMITS, OneSidedReport, judge_one_sided};
pub use recommend::{GuestMtu, PathLimit, Recommendation, recommend};
pub use report::{
    FlowKind, FlowReport, LossLocation, MAX_FLOWS, PathEnd, PathReport, ReachabilityHint,
    RequiredMtu, Stream,
};
pub use simulation::Simulated;
pub use tcp_proof::{TcpMeasurements, TcpReport, judge_tcp, tcp_notes};
pub use trace::{HopReport, TraceReport};
pub use wirecost_audit::checklist;
pub use wirecost_audit::snapshot::NetnsEntry;
pub use wirecost_audit::{
    DropRule, EgressRoute, Finding, FindingKind, HostStack, IpRoute, Severity,
};

#[cfg(test)]
mod tests;
