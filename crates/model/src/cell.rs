//! Cells: the combinations that a plan expands to.

mod chosen_datapath;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::datapath::Datapath;
use crate::ip::IpVersion;
use crate::load::NamedLoad;
use crate::logical::{Logical, Topology};
use crate::offload::Offload;
use crate::plan::{Cores, Encapsulation, Levels, Plan};
use crate::steering::{Rps, Steering};
use crate::transit::Transit;
use crate::vary::Setting;

pub use chosen_datapath::{ChosenDatapath, UnsupportedEncapsulation};

/// A plan expanded: what `run` executes and the record keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The effective plan.
    pub plan: Plan,
    /// Every factor, constant ones included, in the order of the plan's keys.
    pub factors: Vec<Factor>,
    /// The cells, numbered from 0 in the order of the cross product (the last factor varies fastest).
    pub cells: Vec<Cell>,
    /// The self-test (A/A), where the plan asks for one: the first cell that can be built once more, under the next
    /// number. Every round measures it; no effect compares anything with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<Cell>,
    /// The datapath that the run chose and why, where the plan left the choice to the run and the first choice failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<ChosenDatapath>,
}

impl Experiment {
    /// Everything that a round measures, by number: the cells and the twin.
    pub fn measured(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().chain(&self.twin)
    }

    /// Why no machine can measure a cell as its levels say: the datapath that the plan names or the run chose cannot
    /// build it, or its level of `offload` changes nothing there. The run skips such a cell.
    pub fn skips(&self, cell: &Cell) -> Option<&'static str> {
        // Without datapaths in the plan the run has not chosen yet: only the offloads can rule a cell out.
        let known = !self.plan.datapath.is_empty();
        let network = &cell.network;
        let of_datapath = || {
            network
                .cannot()
                .or_else(|| cell.asymmetry_with_untunnelled())
        };
        cell.idle_switch()
            .or_else(|| of_datapath().filter(|_| known))
    }

    /// The cell that the twin repeats: the first that can be built; `None` without a twin.
    pub fn repeated(&self) -> Option<&Cell> {
        let twin = self.twin.as_ref()?;
        self.cells.iter().find(|cell| cell.levels == twin.levels)
    }

    /// Number of samples in a round.
    pub fn samples_a_round(&self) -> u32 {
        self.measured().count() as u32
    }

    /// The factors with more than one level.
    pub fn varied(&self) -> impl Iterator<Item = &Factor> {
        self.factors.iter().filter(|factor| factor.levels.len() > 1)
    }

    /// The varied factors whose levels are compared with each other.
    pub fn compared(&self) -> impl Iterator<Item = &Factor> {
        self.varied().filter(|factor| factor.is_compared())
    }
}

/// A factor: what a plan varies, or holds at a single level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// The plan's key: `guest_mtu`, `guest_ip`, `encapsulation`, `udp_checksum`, `datapath`, `topology`, `acl`,
    /// `offload`, `underlay.mtu`, `underlay.rate`, `underlay.ip`, `steering.queues`, `steering.rps`, [`LOAD`], the
    /// options of loads (`streams`, `message` with one load, `NAME.streams` with several), or a name that the plan
    /// gives ([`crate::vary::Vary`]).
    pub key: String,
    /// The labels of its levels in the plan's order; the first is the reference.
    pub levels: Vec<String>,
}

/// Key of the factor whose levels are different loads.
pub const LOAD: &str = "load";

impl Factor {
    /// Whether its levels are compared with each other: false for [`LOAD`], since figures of different loads are not
    /// comparable.
    pub fn is_compared(&self) -> bool {
        self.key != LOAD
    }
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The cell's number in the experiment, from 0.
    pub index: u32,
    /// The cell's level of every factor that applies to it: a cell without a tunnel has no level of `underlay.ip` and
    /// `udp_checksum`.
    pub levels: Levels,
    /// The network to build.
    pub network: Network,
    /// The guest's MTU in bytes, resolved where the plan said `max`.
    pub guest_mtu: u32,
    /// The offloads on every device of the path.
    pub offload: Offload,
    /// The loads, all of which run at once: one, or the parts of a mix. (A record of version 1 or 2 has one TCP stream,
    /// under `load`.)
    #[serde(
        alias = "load",
        deserialize_with = "crate::load::older::of_any_version"
    )]
    pub loads: Vec<NamedLoad>,
    /// Settings of the hosts, in the order in which they are applied before a sample; undone after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
}

impl Cell {
    /// The load of that name, where this cell runs it.
    pub fn load(&self, name: &str) -> Option<&NamedLoad> {
        self.loads.iter().find(|load| load.name == name)
    }
}

/// The network of a cell. Cells with the same network share a lab; any difference needs another one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Network {
    /// MTU of the underlay in bytes.
    pub underlay_mtu: u32,
    /// Line rate of each link, bit/s; `None` without a limit.
    pub rate: Option<u64>,
    /// Links between the hosts, 1 to [`MAX_LINKS`], each with a line of its own; flows are divided among them.
    #[serde(default = "one")]
    pub links: u32,
    /// IP version of the tunnel's outer packets; [`IpVersion::Ipv4`] without a meaning where there is no tunnel.
    #[serde(default)]
    pub underlay_ip: IpVersion,
    /// How guest frames cross the underlay.
    pub encapsulation: Encapsulation,
    /// Who encapsulates and decapsulates.
    #[serde(default)]
    pub datapath: Datapath,
    /// The logical network that OVN makes of the guests; the default without a meaning for any other datapath.
    #[serde(default)]
    pub logical: Logical,
    /// IP version of the guests.
    #[serde(default)]
    pub guest_ip: IpVersion,
    /// Guests per host, 1 to [`MAX_GUESTS`].
    #[serde(default = "one")]
    pub guests: u32,
    /// Switches, routers and equal-cost paths between the hosts.
    #[serde(default)]
    pub transit: Transit,
    /// How the hosts share the cores.
    pub cores: Cores,
    /// How received frames are spread over queues and cores.
    #[serde(default)]
    pub steering: Steering,
}

/// Most guests per host.
pub const MAX_GUESTS: u32 = 64;
/// Most links between the hosts: as many as a Linux bond may use at once with LACP (IEEE 802.1AX).
pub const MAX_LINKS: u32 = 8;

/// The number of links or guests in records that did not have the field yet.
const fn one() -> u32 {
    1
}

impl Network {
    /// Why no host can build this network with its datapath; `None` where nothing is known against it.
    pub fn cannot(&self) -> Option<&'static str> {
        let by_datapath = self.datapath.cannot(&self.encapsulation);
        by_datapath.or_else(|| {
            let is_routed = self.datapath.is_ovn() && self.logical.topology == Topology::Routed;
            (is_routed && !self.encapsulation.is_tunnel()).then_some(
                "OVN's distributed router needs a tunnel, or both hosts send with its one hardware address: write \
                 `topology: switched`",
            )
        })
    }

    /// Rate of all links together, bit/s; `None` without a limit.
    pub fn total_rate(&self) -> Option<u64> {
        Some(self.rate? * u64::from(self.links))
    }

    /// The largest IP packet, bytes, that gets from host to host in either direction on every path.
    pub fn path_mtu(&self) -> u32 {
        let narrowest = self.transit.narrowest().unwrap_or(u32::MAX);
        self.underlay_mtu.min(narrowest)
    }

    /// Bytes that the encapsulation takes from the underlay's IP MTU.
    pub const fn overhead_bytes(&self) -> u32 {
        self.encapsulation.overhead_bytes(self.underlay_ip)
    }

    /// Bytes that the encapsulation adds on the line to the frame of a guest's IP packet of `packet` bytes:
    /// [`Network::overhead_bytes`], [`Network::padding_bytes`], and a VLAN tag, which the IP MTU does not count.
    pub fn line_overhead_bytes(&self, packet: u32) -> u32 {
        self.overhead_bytes() + self.padding_bytes(packet) + self.encapsulation.line_tag_bytes()
    }

    /// Bytes of padding that the encapsulation adds to a guest's IP packet of `packet` bytes. Padding does not grow a
    /// packet beyond the MTU of the tunnel's device.
    pub fn padding_bytes(&self, packet: u32) -> u32 {
        let padded = packet.next_multiple_of(self.encapsulation.kind().pads_to);
        padded.min(self.tunnel_mtu()).saturating_sub(packet)
    }

    /// MTU of the tunnel's device for the guests' packets, bytes: the MTU of the underlay's device less the overhead,
    /// whatever lies between the hosts.
    pub const fn tunnel_mtu(&self) -> u32 {
        self.underlay_mtu.saturating_sub(self.overhead_bytes())
    }
}

/// `vxlan over an IPv6 underlay of MTU 9000 at 10gbit, IPv6 guests`; IPv4 is not mentioned.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (encapsulation, mtu) = (&self.encapsulation, self.underlay_mtu);
        let by = match self.datapath {
            Datapath::Kernel => "",
            Datapath::Ebpf => " by eBPF",
            Datapath::Ovs => " by Open vSwitch",
            Datapath::OvsKernel => " by Open vSwitch's kernel datapath",
            Datapath::Ovn => " by OVN",
            Datapath::OvnKernel => " by OVN over Open vSwitch's kernel datapath",
        };
        match self.underlay_ip {
            IpVersion::Ipv4 => write!(f, "{encapsulation}{by} over an underlay of MTU {mtu}")?,
            IpVersion::Ipv6 => write!(f, "{encapsulation}{by} over an IPv6 underlay of MTU {mtu}")?,
        }
        match self.rate {
            Some(rate) if self.links > 1 => {
                let rate = crate::units::format_rate(rate);
                write!(f, " with {} links at {rate} each", self.links)?;
            }
            Some(rate) => write!(f, " at {}", crate::units::format_rate(rate))?,
            None => f.write_str(" without a rate limit")?,
        }
        if !self.transit.is_wire() {
            write!(f, " {}", self.transit)?;
        }
        match (self.guests, self.guest_ip) {
            (1, IpVersion::Ipv4) => {}
            (1, IpVersion::Ipv6) => f.write_str(", IPv6 guests")?,
            (guests, IpVersion::Ipv4) => write!(f, ", {guests} guests a host")?,
            (guests, IpVersion::Ipv6) => write!(f, ", {guests} IPv6 guests a host")?,
        }
        write!(f, "{}", self.logical)?;
        if self.steering.queues > 1 {
            write!(f, ", {} queues", self.steering.queues)?;
        }
        match &self.steering.rps {
            Rps::Own => Ok(()),
            rps => write!(f, ", receive steering {rps}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Vxlan;
    use crate::transit::{Hop, HopKind};

    #[test]
    fn a_network_says_ipv6_where_it_is_not_ipv4() {
        let plain = Network {
            underlay_mtu: 9000,
            rate: Some(10_000_000_000),
            links: 1,
            underlay_ip: IpVersion::Ipv4,
            encapsulation: Encapsulation::Vxlan(Vxlan::default()),
            datapath: Datapath::Kernel,
            logical: Logical::default(),
            guest_ip: IpVersion::Ipv4,
            guests: 1,
            transit: Transit::wire(),
            cores: Cores::Split,
            steering: Steering::default(),
        };
        assert_eq!(
            plain.to_string(),
            "vxlan over an underlay of MTU 9000 at 10gbit"
        );
        let newer = Network {
            underlay_ip: IpVersion::Ipv6,
            guest_ip: IpVersion::Ipv6,
            ..plain.clone()
        };
        assert_eq!(
            newer.to_string(),
            "vxlan over an IPv6 underlay of MTU 9000 at 10gbit, IPv6 guests"
        );
        assert_eq!((plain.overhead_bytes(), newer.overhead_bytes()), (50, 70));
        let larger = Network {
            guests: 16,
            transit: Transit {
                hops: vec![Hop::new(HopKind::Switch, 8950)],
                paths: vec![],
            },
            ..plain.clone()
        };
        assert_eq!(
            larger.to_string(),
            "vxlan over an underlay of MTU 9000 at 10gbit through a switch of MTU 8950, 16 guests a host"
        );
        assert_eq!(larger.path_mtu(), 8950);
        let steering = Steering {
            queues: 2,
            rps: Rps::Off,
        };
        let steered = Network {
            steering: steering.clone(),
            ..plain
        };
        assert_eq!(
            steered.to_string(),
            "vxlan over an underlay of MTU 9000 at 10gbit, 2 queues, receive steering off"
        );
        let by_ebpf = Network {
            datapath: Datapath::Ebpf,
            ..steered.clone()
        };
        assert_eq!(
            by_ebpf.to_string(),
            "vxlan by eBPF over an underlay of MTU 9000 at 10gbit, 2 queues, receive steering off"
        );
        let by_ovn = Network {
            datapath: Datapath::Ovn,
            logical: Logical {
                topology: Topology::Routed,
                acl: crate::logical::Acl::AllowRelated,
            },
            steering: Steering::default(),
            ..by_ebpf
        };
        assert_eq!(
            by_ovn.to_string(),
            "vxlan by OVN over an underlay of MTU 9000 at 10gbit, routed, ACL allow-related"
        );
        assert_eq!(by_ovn.cannot(), None);
        let bridged = Network {
            encapsulation: Encapsulation::None,
            ..by_ovn
        };
        assert!(bridged.cannot().is_some());
        let both = Network { steering, ..larger };
        assert_eq!(
            both.to_string(),
            "vxlan over an underlay of MTU 9000 at 10gbit through a switch of MTU 8950, 16 guests a host, 2 queues, \
             receive steering off"
        );
    }
}
