//! A switch that drops frames that are too large, without ICMP, with an MTU for each direction.
//!
//! ```text
//! towards-a ── bridge-a ══ from-a ══> bridge-b ── towards-b
//!                      <══ from-b ══
//! ```
//!
//! One bridge would not do. A port's MTU applies to what leaves by it, but not to super-packets, which pass unsegmented
//! and are segmented behind it (net/core/dev.c, `is_skb_forwardable`); and a veth's receiving end accepts 4 bytes more
//! than its MTU, for a VLAN tag, and its MTU applies to both directions. Between two bridges each direction has a veth
//! of its own, whose sending end segments super-packets into frames and has the MTU, and whose receiving end has 4
//! bytes less: frames and the segments of super-packets are checked against the same limit.

use wirecost_model::transit::Hop;

use crate::device::{self, PortFlags, VethEnd};
use crate::device::{enslave, up};
use crate::error::{BuildError, Context, same};
use crate::netlink::Netlink;
use crate::underlay::node::{self, Node, TOWARDS_A, TOWARDS_B};
use crate::underlay::set_if_there;

/// Receiving ends of the two veths between the bridges: what crosses the switch arrives there as frames.
pub(super) const RECEIVING: [&str; 2] = ["from-a-in", "from-b-in"];
/// Sending ends of the two veths.
pub(super) const SENDING: [&str; 2] = ["from-a-out", "from-b-out"];
const BRIDGES: [&str; 2] = ["bridge-a", "bridge-b"];
/// Sysctls that make bridges of this namespace pass frames through the packet filter of IP. That fragments packets that
/// are too large and may be fragmented (net/bridge/br_netfilter_hooks.c, `br_nf_dev_queue_xmit`), as no switch does.
const FILTERED_BRIDGES: [&str; 3] = [
    "bridge/bridge-nf-call-iptables",
    "bridge/bridge-nf-call-ip6tables",
    "bridge/bridge-nf-call-arptables",
];
/// Bytes that a veth's receiving end accepts beyond its MTU: `VLAN_HLEN`.
const SLACK: u32 = 4;

/// Keeps bridges of the calling thread's namespace from passing frames through a packet filter.
pub(super) fn disable_bridge_netfilter() -> Result<(), BuildError> {
    let mut keys = FILTERED_BRIDGES.iter();
    keys.try_for_each(|key| set_if_there(key, "0"))
}

pub(super) fn set_up(node: &mut Node, hop: &Hop, queues: u32) -> Result<(), BuildError> {
    node.within(|netlink| {
        disable_bridge_netfilter()?;
        let mut bridges = [0; 2];
        for (bridge, (name, outside)) in bridges
            .iter_mut()
            .zip(BRIDGES.iter().zip([TOWARDS_A, TOWARDS_B]))
        {
            device::create_bridge(netlink, name)
                .with_context(|| format!("making the bridge `{name}`"))?;
            let made =
                device::read(netlink, name).with_context(|| format!("reading `{name}` back"))?;
            *bridge = made.index;
            up(netlink, name)?;
            enslave(netlink, outside, *bridge)?;
        }
        let [a, b] = bridges;
        direction(netlink, 0, [a, b], (hop.mtu.from_a, queues))?;
        direction(netlink, 1, [b, a], (hop.mtu.from_b, queues))
    })
}

/// Creates the veth that carries one direction, from the first bridge to the second.
fn direction(
    netlink: &mut Netlink,
    number: usize,
    bridges: [u32; 2],
    (mtu, queues): (u32, u32),
) -> Result<(), BuildError> {
    let (sending, receiving) = (SENDING[number], RECEIVING[number]);
    let end = |name, mtu| VethEnd {
        name,
        mtu,
        mac: None,
        queues,
    };
    device::create_veth_here(netlink, end(sending, mtu), end(receiving, mtu - SLACK))
        .with_context(|| format!("making the veth from `{sending}` to `{receiving}`"))?;
    node::without_offloads(sending)?;
    let step = || format!("reading `{sending}` back");
    let found = device::read(netlink, sending).with_context(step)?;
    same(|| format!("MTU of `{sending}`"), &mtu, &found.mtu)?;
    for (name, bridge, flood) in [(sending, bridges[0], true), (receiving, bridges[1], false)] {
        enslave(netlink, name, bridge)?;
        // No frame leaves by a receiving end, and none goes back by the other direction's veth.
        let flags = PortFlags {
            flood,
            learning: false,
            isolated: true,
        };
        device::set_port(netlink, name, flags)
            .with_context(|| format!("making `{name}` carry one direction only"))?;
    }
    Ok(())
}
