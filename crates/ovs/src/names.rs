//! Names within a host's switch and a lab's OVN.

/// The bridge that guests are ports of.
pub const INTEGRATION_BRIDGE: &str = "br-int";
/// The bridge, and the device of it, that has the host's address on the underlay where tunnels are made in userspace.
pub const UNDERLAY_BRIDGE: &str = "br-underlay";
/// The underlay as a physical network of OVN's, where no tunnel leads to it (ovn-controller(8), `ovn-bridge-mappings`).
pub(crate) const PHYSICAL_NETWORK: &str = "underlay";
