//! Open vSwitch as a lab host's switch: an `ovsdb-server` and an `ovs-vswitchd` of the host's own, in its network
//! namespace, that carry guests' frames over the underlay.
//!
//! Nothing of the machine's own Open vSwitch is used or touched: the database, the sockets and the logs are in a file
//! system that is mounted nowhere ([`wirecost_sys::scratch`]), and the kernel kills both daemons with the thread that
//! started them. So whatever ends a host leaves no daemon, no directory and, with its namespace, no device.
//!
//! Not here: the devices that become ports, their features and addresses (`netbuild`), and which datapath a network has
//! (the agent).

mod chassis;
mod config;
mod control;
mod daemon;
mod database;
mod deadline;
mod error;
mod existing_bridge;
mod names;
mod options;
pub mod ovn;
mod programs;
mod rpc;
mod switch;

pub use config::SwitchSpec;
pub use daemon::owner_in;
pub use error::{Error, OVN_PACKAGES, PACKAGE};
pub use existing_bridge::{BridgePorts, ExistingBridge};
pub use names::{INTEGRATION_BRIDGE, UNDERLAY_BRIDGE};
pub use programs::Programs;
pub use switch::{Switch, kernel_has_datapath, try_with};
