//! Where super-packets are cut into frames on a path, where frames are joined, and which switches change that.

use std::collections::BTreeMap;

use super::{Feature, Offload, Role};
use crate::cell::{Cell, Network};
use crate::datapath::Datapath;
use crate::load::NamedLoad;
use crate::switch::OvsDatapath;

/// Where super-packets are cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentationPoint {
    /// On leaving the sending guest's device.
    Guest,
    /// In the tunnel's device, which sends single frames whatever it is given.
    Tunnel,
    /// On leaving the sending host's device on the underlay.
    Underlay,
    /// In the first hop between the hosts, as in the NIC in front of it.
    Hop,
}

/// The effect of a level of `offload` on a path. It is the same for every encapsulation with the same switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathOffload {
    /// Where TCP's super-packets are cut; `None` where they reach the receiving guest uncut.
    pub tcp: Option<SegmentationPoint>,
    /// Where super-packets of datagrams are cut; `None` where they reach the receiving guest uncut.
    pub udp: Option<SegmentationPoint>,
    /// Whether frames are joined, in the receiving guest's device, behind the tunnel, whatever the datapath. False
    /// where TCP's super-packets arrive uncut.
    pub joins: bool,
    /// Whether checksums are left to the devices.
    checksum: bool,
}

/// Messages: why a switch on top of a profile changes nothing in a cell.
const NOTHING_TO_JOIN: &str = "super-packets reach the receiver unsegmented in this lab, so GRO has nothing to aggregate: add a hop \
     (`underlay.hops`)";
const NOBODY_JOINS: &str = "nothing that this load receives is aggregated, whatever `gro` says: it is about TCP, and \
                            about datagrams with `segmentation_offload: receive` or `both`";
const TCP_ALWAYS_BATCHES: &str = "TCP hands over super-packets whatever `gso` says (net/core/sock.c, sk_setup_caps): it is about datagrams \
     with `segmentation_offload: send` or `both`; set `tso`";
const NO_TCP: &str = "`tso` is about TCP, which this load is not: set `gso`";
const CUT_BEFORE: &str =
    "super-packets are cut before they are in the tunnel: set `tso: on` with it";
const TUNNEL_CUTS: &str =
    "the tunnel's device cuts super-packets itself, whatever `tunnel_segmentation` says: set `tso`";
/// net/ipv4/udp_offload.c, `udp_gro_receive`: "If the packet was locally encapsulated ... do not GRO".
const MARK_STAYS: &str = "eBPF cannot clear the tunnel mark of a datagram, so the kernel delivers each one separately; without a tunnel it \
     delivers many at once: use `segmentation_offload: send` or `datapath: kernel`";

impl PathOffload {
    /// The effect of a level of `offload` on a network.
    pub fn of(offload: &Offload, network: &Network) -> Self {
        let tunnelled = network.encapsulation.is_tunnel();
        let on = offload.switches(tunnelled);
        let behind_the_guest = if network.encapsulation.kind().cuts {
            Some(SegmentationPoint::Tunnel)
        } else if tunnelled && !on[&Feature::TunnelSegmentation] {
            Some(SegmentationPoint::Underlay)
        } else {
            (!network.transit.is_wire()).then_some(SegmentationPoint::Hop)
        };
        let cut = |feature| {
            if on[&feature] {
                behind_the_guest
            } else {
                Some(SegmentationPoint::Guest)
            }
        };
        let tcp = cut(Feature::Tso);
        Self {
            tcp,
            udp: cut(Feature::Gso),
            joins: on[&Feature::Gro] && tcp.is_some(),
            checksum: on[&Feature::Checksum],
        }
    }

    /// The wanted state of every switch on a device of `role`. `None` for the bridge: its features do not apply to
    /// forwarded frames.
    ///
    /// One device of a path joins frames: the receiving guest's. A veth joins on receipt only frames from a peer
    /// without any TCP segmentation (drivers/net/veth.c, `veth_skb_is_eligible_for_gro`), so the host's end has none
    /// then. Where super-packets arrive uncut, the host's end has TCP segmentation on, or it would cut them.
    pub fn device_features(
        self,
        offload: &Offload,
        network: &Network,
        role: Role,
    ) -> Option<BTreeMap<Feature, bool>> {
        let mut wanted = match role {
            Role::Bridge => return None,
            _ => offload.switches(network.encapsulation.is_tunnel()),
        };
        wanted.insert(Feature::Gro, self.joins && role == Role::Guest);
        if self.joins && role == Role::GuestPort {
            wanted.insert(Feature::Tso, false);
        }
        Some(wanted)
    }

    /// The effect as far as it matters to these loads: what happens to TCP does not matter to loads without TCP.
    fn for_loads(self, loads: &[NamedLoad]) -> Self {
        let datagrams = |load: &&NamedLoad| load.load.workload.is_udp();
        let mut udp = loads.iter().filter(datagrams);
        let sends = udp.clone().any(|load| load.load.segmentation.send);
        let receives = udp.any(|load| load.load.segmentation.receive);
        let tcp = loads.iter().any(|load| !load.load.workload.is_udp());
        Self {
            tcp: self.tcp.filter(|_| tcp),
            udp: self.udp.filter(|_| sends),
            joins: self.joins && (tcp || receives),
            ..self
        }
    }
}

impl Cell {
    /// Why a switch that the cell's level of `offload` sets on top of its profile changes nothing for its loads on its
    /// network; `None` where every switch has an effect.
    pub fn idle_switch(&self) -> Option<&'static str> {
        refused(&self.offload, &self.network, &self.loads)
    }

    /// Why the datapath treats what the cell's loads receive differently from cells without a tunnel; `None` where it
    /// does not.
    pub fn asymmetry_with_untunnelled(&self) -> Option<&'static str> {
        unlike(&self.offload, &self.network, &self.loads)
    }
}

/// Why a switch that a level sets on top of its profile changes nothing for loads on a network: the cell would not
/// measure what its label says. `None` where every switch has an effect.
fn refused(offload: &Offload, network: &Network, loads: &[NamedLoad]) -> Option<&'static str> {
    // Open vSwitch in userspace takes frames one by one, whatever the switches.
    if network.datapath.open_vswitch() == Some(OvsDatapath::Userspace) {
        return None;
    }
    let tunnelled = network.encapsulation.is_tunnel();
    let path_offload = PathOffload::of(offload, network);
    let mut set = offload.set.iter();
    let idle = set.find(|(feature, on)| {
        let mut without = offload.clone();
        without.set.remove(feature);
        let changed = offload.profile.has(**feature, tunnelled) != **on;
        let of_tunnels = **feature == Feature::TunnelSegmentation;
        changed
            && (tunnelled || !of_tunnels)
            && PathOffload::of(&without, network).for_loads(loads) == path_offload.for_loads(loads)
    });
    idle.map(|(feature, _)| match feature {
        Feature::Gro if path_offload.tcp.is_none() => NOTHING_TO_JOIN,
        Feature::Gro => NOBODY_JOINS,
        Feature::Gso => TCP_ALWAYS_BATCHES,
        Feature::Tso => NO_TCP,
        Feature::TunnelSegmentation if path_offload.tcp == Some(SegmentationPoint::Tunnel) => {
            TUNNEL_CUTS
        }
        Feature::TunnelSegmentation | Feature::Checksum => CUT_BEFORE,
    })
}

/// Why eBPF's tunnels treat what a load receives differently from eBPF without a tunnel.
fn unlike(offload: &Offload, network: &Network, loads: &[NamedLoad]) -> Option<&'static str> {
    let receives =
        |load: &&NamedLoad| load.load.workload.is_udp() && load.load.segmentation.receive;
    let mut loads = loads.iter().filter(receives);
    let path_offload = PathOffload::of(offload, network);
    let others_join = |load: &NamedLoad| {
        path_offload.joins || (path_offload.udp.is_none() && load.load.segmentation.send)
    };
    let tunnelled = network.datapath == Datapath::Ebpf && network.encapsulation.is_tunnel();
    (tunnelled && loads.any(others_join)).then_some(MARK_STAYS)
}

#[cfg(test)]
mod tests;
