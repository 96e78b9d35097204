//! OVN, private to a lab: its databases and ovn-northd at one host ([`Central`]), an ovn-controller at each
//! (`Controller`, started by [`crate::Switch`]).
//!
//! ```text
//! host a: ovsdb-server (northbound, southbound) ── ovn-northd
//!              │ a Unix socket, which host b reaches through host a's descriptor in /proc
//! each host:  ovn-controller ── ovsdb-server, ovs-vswitchd: br-int, guests' ports, tunnel to the other host
//! ```
//!
//! The files are in file systems of their own, and the daemons end with the thread that started them, as for the
//! switches ([`crate`]). Guests are logical ports with fixed tunnel keys, so that both hosts know what is on the wire.

mod central;
mod controller;
mod logical;
mod programs;

pub use crate::chassis::Chassis;
pub use central::{Central, try_central};
pub(crate) use controller::Controller;
pub use logical::{LogicalNetwork, LogicalPort, LogicalRouterPort, port_key, port_name};
pub use programs::OvnPrograms;
