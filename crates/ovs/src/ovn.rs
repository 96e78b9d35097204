//! OVN, private to a lab: its databases and ovn-northd at one host ([`Central`]), an ovn-controller at each
//! (`Controller`, started by [`crate::Switch`]).
//!
//! ```text
//! host a: ovsdb-server (northbound, southbound) ── ovn-northd
//!              │ a Unix socket, which host b reaches through host a's descriptor in /proc
//! each host:  ovn-controller ── ovsdb-server, ovs-vswitchd: br-int, guests' ports, tunnel to the other host
//! ```
//!
//! The files are where those of the switches are, and the daemons end as they do ([`crate`]). Guests are logical ports
//! with the numbers that the hosts know them by, so that both can say what is on the wire.

mod central;
mod controller;
mod logical;
mod programs;

pub use crate::chassis::Chassis;
pub use central::{Central, try_central};
pub(crate) use controller::Controller;
pub use logical::{LogicalNetwork, LogicalPort, LogicalRouter, port_key, port_name};
pub use programs::OvnPrograms;
