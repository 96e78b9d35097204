//! Builds a wanted network by netlink changes, each of them read back.
//!
//! Not here: which network is wanted (the plan), and the system calls for namespaces and device features (`sys`). All
//! changes of a lab host are in namespaces that only its agent holds, so the kernel undoes them: they go with the last
//! holder.

mod adapt;
mod addresses;
mod device;
mod device_features;
mod encapsulate;
mod error;
mod existing;
mod features;
pub mod fq;
mod guest;
mod headroom;
mod host;
pub mod host_tunnel;
mod htb;
mod ipv6;
mod names;
mod netem;
mod qdisc;
mod ready;
mod route;
mod routed;
mod spec;
mod steering;
mod tbf;
pub mod trial;
pub mod underlay;

use wirecost_netlink as netlink;

pub use error::{BuildError, error_code};
pub use existing::{ExistingDevice, LinkSpeed};
pub use features::SavedFeatures;
pub use host::{LabHost, Line, SwitchDevices};
pub use names::{GUEST_DEVICE, Side, UNDERLAY_DEVICE};
pub use spec::{EndSecret, HostSpec, RouterPort};
pub use steering::may_steer;
