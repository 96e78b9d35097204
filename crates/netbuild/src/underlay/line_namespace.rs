//! A host's line on a core that no host has: a namespace between the host and the wire.
//!
//! ```text
//! host            the line
//! underlay ══════ near ── bridge ── far ══════ the other host, or the first hop
//! ```
//!
//! What a device sends, its queueing discipline included, is the work of the core that hands it over, and so is the
//! timer for what waits, which is armed there and stays (net/sched/sch_api.c, `qdisc_watchdog_schedule_range_ns`): on
//! the host's own device that is a core of the host. Only what a device receives can be moved, by receive steering. So
//! `near` receives what the host sends, on the line's core, and whatever follows happens there: `far` has the line.
//!
//! Packets pass as they are, super-packets whole. What the host receives comes the same way, and is steered to the
//! host's cores by its own device.

use std::collections::BTreeMap;

use wirecost_sys::ethtool::Ethtool;
use wirecost_sys::namespace::Netns;

use super::node::{Node, WireEnd, wire};
use super::switch::unfiltered;
use crate::device;
use crate::device::{enslave, up};
use crate::device_features::set_features;
use crate::error::{BuildError, Step};
use crate::netlink::Netlink;
use crate::ready;
use crate::steering::{self, Steering};

/// Towards the host.
const NEAR: &str = "near";
/// Towards the other host; has the line.
pub(crate) const FAR: &str = "far";
const BRIDGE: &str = "line";

/// A line's namespace. With the process that made it the kernel drops it.
#[derive(Debug)]
pub(crate) struct LineNamespace {
    node: Node,
    ethtool: Ethtool,
    core: u32,
    queues: u32,
}

impl LineNamespace {
    /// Makes it, and the host's own device, which is the end of a wire to it, from the host's namespace, that of
    /// `netlink`. Every device of it receives on `core`.
    pub(super) fn lay(
        core: u32,
        own: &WireEnd,
        queues: u32,
        netlink: &mut Netlink,
    ) -> Result<Self, BuildError> {
        let mut node = Node::create("the line".to_owned())?;
        let ethtool = node.within(|_| {
            // Devices take it as they are made, so that it stays for all that is made here.
            Steering::by_default(&[core]).step(|| format!("steering the line to core {core}"))?;
            Ethtool::open().step(|| "opening ethtool".into())
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

    /// Joins both of its devices, once the wire to the other host is there.
    pub(crate) fn settle(&mut self) -> Result<(), BuildError> {
        let (core, queues) = (self.core, self.queues);
        self.node.within(|netlink| {
            unfiltered()?;
            for device in [NEAR, FAR] {
                steering::steer(device, queues, &[core])
                    .step(|| format!("steering what `{device}` receives to core {core}"))?;
            }
            device::create_bridge(netlink, BRIDGE)
                .step(|| format!("making the bridge `{BRIDGE}`"))?;
            let bridge = device::read(netlink, BRIDGE)
                .step(|| format!("reading `{BRIDGE}` back"))?
                .index;
            up(netlink, BRIDGE)?;
            enslave(netlink, NEAR, bridge)?;
            enslave(netlink, FAR, bridge)
        })
    }

    /// Waits until all of its links are up.
    pub(crate) fn wait_until_ready(&mut self) -> Result<(), BuildError> {
        self.node.within(ready::links)
    }

    /// Has the host's device join packets as if these came from the other host's own: a veth joins none that come from
    /// a device with TSO (drivers/net/veth.c, `veth_skb_is_eligible_for_gro`).
    pub(crate) fn set_near(&self, features: BTreeMap<String, bool>) -> Result<(), BuildError> {
        let step = || format!("setting offloads of the line's `{NEAR}`");
        set_features(&self.ethtool, NEAR, features, &step).map(|_| ())
    }

    pub(crate) fn netlink(&mut self) -> &mut Netlink {
        self.node.netlink()
    }

    pub(crate) fn netns(&self) -> &Netns {
        self.node.netns()
    }

    /// A thread inside it.
    pub(crate) fn tid(&self) -> u32 {
        self.node.tid()
    }
}
