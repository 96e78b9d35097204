//! Frame bytes and arithmetic: what a link can carry, what a frame costs, what a captured frame says.
//!
//! Pure: no sockets, no files, no clock.

pub mod frame;
pub mod geneve;
pub mod gre;
pub mod line;
pub mod overhead;
pub mod size_table;
pub mod vlan;
pub mod vxlan;
