//! The datapaths: who encapsulates guests' frames, and which encapsulations each cannot build.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::encapsulation::{Encapsulation, GeneveOptions, OuterDf};
use crate::switch::OvsDatapath;

/// Who encapsulates. Datapaths differ in more than the headers they add: cells of different datapaths are compared only
/// where the datapath is the factor.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Datapath {
    /// The kernel's own devices and its bridge. The meaning of records without the field.
    #[default]
    Kernel,
    /// Wirecost's own eBPF programs on tc hooks, without a bridge (docs/encapsulations.md).
    Ebpf,
    /// Open vSwitch's userspace datapath, private to each host. Older records, which do not know
    /// [`Datapath::OvsKernel`], also mean the kernel datapath by it, where the kernel had the module: each sample says
    /// which ([`crate::switch`]).
    Ovs,
    /// Open vSwitch with its datapath in the kernel's openvswitch module.
    OvsKernel,
    /// OVN, private to the lab, over Open vSwitch's userspace datapath (docs/ovn.md).
    Ovn,
    /// OVN over Open vSwitch's kernel datapath.
    OvnKernel,
}

impl Datapath {
    /// All datapaths.
    pub const ALL: [Self; 6] = [
        Self::Kernel,
        Self::Ebpf,
        Self::Ovs,
        Self::OvsKernel,
        Self::Ovn,
        Self::OvnKernel,
    ];
    /// The datapaths that a run chooses from where the plan names none, the first choice first. Open vSwitch is not
    /// among them: its userspace datapath is several times slower and says little of other datapaths' headers.
    pub const AUTO: [Self; 2] = [Self::Kernel, Self::Ebpf];
    /// The datapaths that a study of OVN chooses from: OVN with the kernel datapath, as it was published, then OVN in
    /// userspace, and last eBPF with OVN's header, which is not OVN.
    pub const OF_OVN: [Self; 3] = [Self::OvnKernel, Self::Ovn, Self::Ebpf];

    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Ebpf => "ebpf",
            Self::Ovs => "ovs",
            Self::OvsKernel => "ovs-kernel",
            Self::Ovn => "ovn",
            Self::OvnKernel => "ovn-kernel",
        }
    }

    /// Where Open vSwitch switches packets; `None` for datapaths without it.
    pub const fn open_vswitch(self) -> Option<OvsDatapath> {
        match self {
            Self::Kernel | Self::Ebpf => None,
            Self::Ovs | Self::Ovn => Some(OvsDatapath::Userspace),
            Self::OvsKernel | Self::OvnKernel => Some(OvsDatapath::Kernel),
        }
    }

    /// Whether OVN programs the switches: guests are ports of a logical network.
    pub const fn is_ovn(self) -> bool {
        matches!(self, Self::Ovn | Self::OvnKernel)
    }

    /// Why this datapath cannot build an encapsulation on any host; `None` where nothing is known against it.
    pub fn cannot(self, encapsulation: &Encapsulation) -> Option<&'static str> {
        match (self, encapsulation) {
            (_, encapsulation) if !encapsulation.kind().datapaths.contains(&self) => {
                Some(encapsulation.kind().only)
            }
            // drivers/net/geneve.c: the device takes options from a packet's tunnel metadata only.
            (Self::Kernel, Encapsulation::Geneve(geneve))
                if geneve.options != GeneveOptions::NONE =>
            {
                Some("the kernel's Geneve device sends no options of its own")
            }
            (Self::Kernel, Encapsulation::Geneve(geneve)) if geneve.source_ports.is_some() => {
                Some("the kernel's Geneve device takes no range of source ports")
            }
            (Self::Ebpf, encapsulation)
                if encapsulation
                    .udp()
                    .is_some_and(|udp| udp.df == OuterDf::Inherit) =>
            {
                Some("eBPF always sets the outer don't-fragment bit, and does not inherit it")
            }
            (datapath, encapsulation)
                if datapath.open_vswitch().is_some()
                    && encapsulation
                        .udp()
                        .is_some_and(|udp| udp.df == OuterDf::Inherit) =>
            {
                Some(
                    "Open vSwitch sets the outer don't-fragment bit or leaves it, and does not inherit it",
                )
            }
            // lib/tun-metadata.c: a table by class and type; each entry has one place in a packet and one length above
            // 0.
            (Self::Ovs | Self::OvsKernel, Encapsulation::Geneve(geneve))
                if matches!(geneve.options, GeneveOptions::Bytes(1..8 | 129..)) =>
            {
                Some(
                    "Open vSwitch sends an option of one type once in a packet, and one has 8 to 128 bytes",
                )
            }
            (Self::OvsKernel | Self::OvnKernel, encapsulation)
                if encapsulation
                    .udp()
                    .is_some_and(|udp| udp.source_ports.is_some()) =>
            {
                Some("Open vSwitch's kernel datapath takes no range of outer source ports")
            }
            (datapath, encapsulation) if datapath.is_ovn() => ovn_cannot(encapsulation),
            _ => None,
        }
    }

    /// The encapsulation as this datapath puts it on the wire: eBPF endpoints do not let others fragment (RFC 7348,
    /// section 4.3), so over IPv4 they always set `df`. An encapsulation that the datapath cannot build is returned as
    /// it is.
    pub fn resolved(self, mut encapsulation: Encapsulation, over_ipv4: bool) -> Encapsulation {
        if self == Self::Ebpf && over_ipv4 && self.cannot(&encapsulation).is_none() {
            match &mut encapsulation {
                Encapsulation::Vxlan(vxlan) => vxlan.df = OuterDf::Set,
                Encapsulation::Geneve(geneve) => geneve.df = OuterDf::Set,
                _ => {}
            }
        }
        encapsulation
    }
}

/// In prose: `the kernel`, `eBPF`, `Open vSwitch`.
impl fmt::Display for Datapath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "the kernel",
            Self::Ebpf => "eBPF",
            Self::Ovs => "Open vSwitch",
            Self::OvsKernel => "Open vSwitch's kernel datapath",
            Self::Ovn => "OVN",
            Self::OvnKernel => "OVN over Open vSwitch's kernel datapath",
        })
    }
}

/// Why OVN cannot build an encapsulation: ovn-controller decides these options itself (`controller/encaps.c`,
/// `controller/physical.c`). `None` where nothing is known against it.
fn ovn_cannot(encapsulation: &Encapsulation) -> Option<&'static str> {
    let udp = encapsulation.udp()?;
    let (port, most) = match encapsulation {
        Encapsulation::Geneve(geneve) if geneve.options != GeneveOptions::Ovn => {
            return Some(
                "OVN sends its own option in every Geneve packet: write `{ geneve: { options: ovn } }`",
            );
        }
        Encapsulation::Geneve(_) => (6081, GENEVE_KEYS),
        _ => (4789, VXLAN_KEYS),
    };
    if udp.inner_vlan.is_some() {
        Some("OVN puts no tag of its own inside a tunnel: leave `inner_vlan` out")
    } else if udp.port != port {
        Some("OVN takes the UDP port that IANA assigned to the encapsulation: leave `port` out")
    } else if udp.vni == 0 || udp.vni > most {
        Some(
            "OVN's logical networks have keys of 24 bits in Geneve and of 12 bits in VXLAN: write a `vni` from 1 to 4093",
        )
    } else {
        None
    }
}

/// The largest `vni` with Geneve, two less than there are keys: a routed network takes three.
const GENEVE_KEYS: u32 = (1 << 24) - 3;
/// The same with VXLAN, whose other 12 bits carry the key of the logical port (`controller/physical.c`,
/// `put_encapsulation`).
const VXLAN_KEYS: u32 = (1 << 12) - 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encapsulation::{Geneve, Vxlan};

    #[test]
    fn what_one_datapath_cannot_the_other_can() {
        let ovn = Encapsulation::Geneve(Geneve {
            options: GeneveOptions::Ovn,
            ..Geneve::default()
        });
        assert!(Datapath::Kernel.cannot(&ovn).is_some());
        assert_eq!(Datapath::Ebpf.cannot(&ovn), None);
        let inherits = Encapsulation::Vxlan(Vxlan {
            df: OuterDf::Inherit,
            ..Vxlan::default()
        });
        assert!(Datapath::Ebpf.cannot(&inherits).is_some());
        assert!(Datapath::Ovs.cannot(&inherits).is_some());
        let ports = Encapsulation::Vxlan(Vxlan {
            source_ports: Some(crate::encapsulation::SourcePorts {
                first: 1000,
                last: 2000,
            }),
            ..Vxlan::default()
        });
        assert_eq!(Datapath::Ovs.cannot(&ports), None);
        assert!(Datapath::OvsKernel.cannot(&ports).is_some());
        // Not quietly built as something else.
        assert_eq!(Datapath::Ebpf.resolved(inherits.clone(), true), inherits);
        let with = |options| {
            let geneve = Geneve {
                options,
                ..Geneve::default()
            };
            Datapath::Ovs.cannot(&Encapsulation::Geneve(geneve))
        };
        assert_eq!(with(GeneveOptions::Ovn), None);
        assert_eq!(with(GeneveOptions::Bytes(128)), None);
        assert!(with(GeneveOptions::Bytes(132)).is_some());
        assert!(with(GeneveOptions::Bytes(4)).is_some());
        for datapath in Datapath::ALL {
            let geneve = Geneve {
                options: if datapath.is_ovn() {
                    GeneveOptions::Ovn
                } else {
                    GeneveOptions::NONE
                },
                ..Geneve::default()
            };
            for plain in [
                Encapsulation::None,
                Encapsulation::Vxlan(Vxlan::default()),
                Encapsulation::Geneve(geneve),
            ] {
                assert_eq!(datapath.cannot(&plain), None);
            }
        }
    }

    #[test]
    fn ovn_decides_on_option_port_and_tag() {
        let cannot = |change: fn(&mut Vxlan)| {
            let mut vxlan = Vxlan::default();
            change(&mut vxlan);
            Datapath::Ovn.cannot(&Encapsulation::Vxlan(vxlan))
        };
        assert_eq!(cannot(|_| {}), None);
        for (change, word) in [
            ((|vxlan| vxlan.port = 8472) as fn(&mut Vxlan), "`port`"),
            (|vxlan| vxlan.vni = 4094, "`vni`"),
            (|vxlan| vxlan.vni = 0, "`vni`"),
            (|vxlan| vxlan.inner_vlan = Some(7), "`inner_vlan`"),
            (|vxlan| vxlan.df = OuterDf::Inherit, "inherit"),
        ] {
            let reason = cannot(change).expect(word);
            assert!(reason.contains(word), "{reason}");
        }
        let plain = Encapsulation::Geneve(Geneve::default());
        let reason = Datapath::OvnKernel.cannot(&plain).expect("no option");
        assert!(reason.contains("options: ovn"), "{reason}");
    }

    #[test]
    fn ebpf_sets_df_over_ipv4_and_the_record_says_so() {
        let vxlan = || Encapsulation::Vxlan(Vxlan::default());
        let df = |settled: &Encapsulation| settled.udp().map(|udp| udp.df);
        let set = Datapath::Ebpf.resolved(vxlan(), true);
        assert_eq!(df(&set), Some(OuterDf::Set));
        assert_eq!(Datapath::Ebpf.resolved(vxlan(), false), vxlan());
        assert_eq!(Datapath::Kernel.resolved(vxlan(), true), vxlan());
    }
}
