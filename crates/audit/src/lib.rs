//! A host's device stack and offloads: settings that make large frames get lost or cost more than needed.
//!
//! Two halves that share only a document: [`gather()`] reads a host (netlink, ethtool, sysfs, sysctl, Open vSwitch's
//! database) into a [`HostStack`] and changes nothing; [`judge()`] is a pure function from that to [`Finding`]s, each
//! with its evidence and the commands that fix it. A fault of devices that a test machine lacks is therefore tested
//! from a recorded `HostStack`: a test case is a file in `fixtures/`.
//!
//! A configuration does not show what a path carries: probes prove that (crate `pmtu`). [`checklist()`] says which
//! requirements are not visible here (switches, the other host's hypervisor).

pub mod checklist;
mod devices_on_path;
mod drop_rule;
pub mod finding;
pub mod gather;
pub mod judge;
pub mod snapshot;

pub use checklist::{Item, State, checklist};
pub use devices_on_path::{DeviceOnPath, devices_on_path};
pub use drop_rule::DropRule;
pub use finding::{FINDINGS, Finding, FindingKind, Severity};
pub use gather::{egress_route, firewall_drops, gather, neighbour, reads_route, source_ports};
pub use judge::{PathMtu, ProbeEvidence, judge, judge_with_probes, set_ipv6_mtu};
pub use snapshot::{EgressRoute, HostStack, IpRoute, Neighbour};
