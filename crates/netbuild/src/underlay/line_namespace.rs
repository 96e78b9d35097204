//! A host's line on a core that no host uses: a namespace between the host and the wire.
//!
//! ```text
//! host            the line
//! underlay ══════ near ── bridge ── far ══════ the other host, or the first hop
//! ```
//!
//! The core that passes a packet to a device does the sending, its qdisc included, and also runs the timer for packets
//! that wait, which is armed there and stays (net/sched/sch_api.c, `qdisc_watchdog_schedule_range_ns`): on the host's
//! own device that is a core of the host. Only what a device receives can be moved to another core, by receive
//! steering. So `near` receives what the host sends, on the line's core, and all that follows happens there: `far` has
//! the line.
//!
//! Packets pass unchanged, super-packets unsegmented. What the host receives passes the other way, and is steered to
//! the host's cores by its own device.

use std::collections::BTreeMap;

use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::Netns;

use super::node::{Node, WireEnd, wire};
use super::switch::disable_bridge_netfilter;
use crate::device;
use crate::device::{enslave, up};
use crate::device_features::set_features;
use crate::error::{BuildError, Context};
use crate::netlink::Netlink;
use crate::ready;
use crate::steering::{self, Steering};

/// Device towards the host.
const NEAR: &str = "near";
/// Device towards the other host, which has the line.
pub(crate) const FAR: &str = "far";
const BRIDGE: &str = "line";

/// The namespace of a line. The kernel removes it when the process that created it ends.
#[derive(Debug)]
pub(crate) struct LineNamespace {
    node: Node,
    ethtool: Ethtool,
    core: u32,
    queues: u32,
}

impl LineNamespace {
    /// Creates the namespace, and the wire to it from the host's own device, in the host's namespace, that of
    /// `netlink`. Every device of the line's namespace receives on `core`.
    pub(super) fn build(
        core: u32,
        own: &WireEnd,
        queues: u32,
        netlink: &mut Netlink,
    ) -> Result<Self, BuildError> {
        let mut node = Node::create("the line".to_owned())?;
        let ethtool = node.within(|_| {
            // Devices take the mask over when they are created, so it stays set for all that are created here.
            Steering::by_default(&[core])
                .with_context(|| format!("steering the line to core {core}"))?;
            Ethtool::open().with_context(|| "opening ethtool".into())
        })?;
        let near = WireEnd::inner(NEAR, None);
        wire(netlink, (None, own), (node.as_peer(), &near), queues)?;
        Ok(Self {
            node,
            ethtool,
            core,
            queues,
        })
    }

    /// Bridges both of its devices, once the wire to the other host exists.
    pub(crate) fn set_up(&mut self) -> Result<(), BuildError> {
        let (core, queues) = (self.core, self.queues);
        self.node.within(|netlink| {
            disable_bridge_netfilter()?;
            for device in [NEAR, FAR] {
                steering::steer(device, queues, &[core])
                    .with_context(|| format!("steering what `{device}` receives to core {core}"))?;
            }
            device::create_bridge(netlink, BRIDGE)
                .with_context(|| format!("making the bridge `{BRIDGE}`"))?;
            let bridge = device::read(netlink, BRIDGE)
                .with_context(|| format!("reading `{BRIDGE}` back"))?
                .index;
            up(netlink, BRIDGE)?;
            enslave(netlink, NEAR, bridge)?;
            enslave(netlink, FAR, bridge)
        })
    }

    /// Waits until all links of the namespace are up.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), BuildError> {
        self.node.within(ready::links)
    }

    /// Sets features of the device towards the host, so that the host's device joins packets (GRO) as if they came from
    /// the other host's own device: a veth joins none that come from a device with TSO (drivers/net/veth.c,
    /// `veth_skb_is_eligible_for_gro`).
    pub(crate) fn set_near_features(
        &self,
        features: BTreeMap<String, bool>,
    ) -> Result<(), BuildError> {
        let step = || format!("setting offloads of the line's `{NEAR}`");
        set_features(&self.ethtool, NEAR, features, &step).map(|_| ())
    }

    pub(crate) fn netlink(&mut self) -> &mut Netlink {
        self.node.netlink()
    }

    pub(crate) fn netns(&self) -> &Netns {
        self.node.netns()
    }

    /// Id of a thread inside the namespace.
    pub(crate) fn tid(&self) -> u32 {
        self.node.tid()
    }
}
