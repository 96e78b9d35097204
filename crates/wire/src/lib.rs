//! Frame bytes and arithmetic: what a link carries, what encapsulations cost, what captured frames contain.
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
