//! Names within a host's switch and a lab's OVN.

/// Name of the bridge with the guests' ports.
pub const INTEGRATION_BRIDGE: &str = "br-int";
/// Name of the bridge, and of its device, that has the host's address on the underlay where tunnels are made in
/// userspace.
pub const UNDERLAY_BRIDGE: &str = "br-underlay";
/// Name of the underlay as a physical network of OVN, where no tunnel is used (ovn-controller(8),
/// `ovn-bridge-mappings`).
pub(crate) const PHYSICAL_NETWORK: &str = "underlay";
