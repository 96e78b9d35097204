//! A host's device stack and offloads: what is configured so that large frames are lost, or cost more than they need.
//!
//! Two halves that know each other only through a document: [`gather()`] reads a host (netlink, ethtool, sysfs, sysctl,
//! Open vSwitch's database) into a [`HostStack`] and changes nothing; [`judge()`] is a pure function from that to
//! [`Finding`]s, each with its evidence and the commands that fix it. So a fault of devices that a test machine lacks
//! is tested from a recorded `HostStack`: `fixtures/` grows by adding a file.
//!
//! What is configured is not what a path carries: that is proven with packets (crate `pmtu`). What is not visible here
//! (switches, the other host's hypervisor) is said to be, see [`checklist()`].

pub mod checklist;
pub mod finding;
pub mod gather;
pub mod judge;
pub mod snapshot;
mod way;

pub use checklist::{Item, State, checklist};
pub use finding::{FINDINGS, Finding, FindingKind, Severity};
pub use gather::{Dropping, dropping, egress_route, gather, neighbour, reads_route, source_ports};
pub use judge::{Carries, Shown, judge, judge_beside, set_ipv6_mtu};
pub use snapshot::{EgressRoute, HostStack, Neighbour, RouteWords};
pub use way::{OnWay, way};
