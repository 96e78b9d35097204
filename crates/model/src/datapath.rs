//! Who puts guests' frames into an encapsulation, and what each cannot.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::encapsulation::{Encapsulation, GeneveOptions, OuterDf};
use crate::switch::OvsDatapath;

/// Who encapsulates. Cells of different datapaths differ in more than their headers: they are compared only where the
/// datapath is the factor.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Datapath {
    /// The kernel's own devices, and its bridge. What a record from before there was a choice means.
    #[default]
    Kernel,
    /// Our own eBPF programs on tc hooks, with no bridge (docs/encapsulations.md).
    Ebpf,
    /// Open vSwitch's userspace datapath, private to each host. In a record from before there was
    /// [`Datapath::OvsKernel`], the kernel datapath where the kernel had the module: a sample says which
    /// ([`crate::switch`]).
    Ovs,
    /// Open vSwitch with its datapath in the kernel's openvswitch module.
    OvsKernel,
}

impl Datapath {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Kernel, Self::Ebpf, Self::Ovs, Self::OvsKernel];
    /// Those that a run chooses from where the plan leaves it to it, the first choice first. Open vSwitch is measured
    /// where it is asked for: in userspace it is several times slower, and says little of another's headers.
    pub const AUTO: [Self; 2] = [Self::Kernel, Self::Ebpf];

    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Ebpf => "ebpf",
            Self::Ovs => "ovs",
            Self::OvsKernel => "ovs-kernel",
        }
    }

    /// Where an Open vSwitch switches packets; `None` where it is none.
    pub const fn open_vswitch(self) -> Option<OvsDatapath> {
        match self {
            Self::Kernel | Self::Ebpf => None,
            Self::Ovs => Some(OvsDatapath::Userspace),
            Self::OvsKernel => Some(OvsDatapath::Kernel),
        }
    }

    /// Why it cannot build an encapsulation on whatever host; `None` where it can, as far as that goes.
    pub fn cannot(self, encapsulation: &Encapsulation) -> Option<&'static str> {
        match (self, encapsulation) {
            (_, encapsulation) if !encapsulation.kind().datapaths.contains(&self) => {
                Some(encapsulation.kind().only)
            }
            // drivers/net/geneve.c: options come with a packet's tunnel metadata only.
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
            (Self::Ovs | Self::OvsKernel, encapsulation)
                if encapsulation
                    .udp()
                    .is_some_and(|udp| udp.df == OuterDf::Inherit) =>
            {
                Some(
                    "Open vSwitch sets the outer don't-fragment bit or leaves it, and does not inherit it",
                )
            }
            // lib/tun-metadata.c: a table of class and type, each with one place and one length above 0.
            (Self::Ovs | Self::OvsKernel, Encapsulation::Geneve(geneve))
                if matches!(geneve.options, GeneveOptions::Bytes(1..8 | 129..)) =>
            {
                Some(
                    "Open vSwitch sends an option of one type once in a packet, and one has 8 to 128 bytes",
                )
            }
            (Self::OvsKernel, encapsulation)
                if encapsulation
                    .udp()
                    .is_some_and(|udp| udp.source_ports.is_some()) =>
            {
                Some("Open vSwitch's kernel datapath takes no range of outer source ports")
            }
            _ => None,
        }
    }

    /// An encapsulation as it is on the wire where the plan leaves room: eBPF endpoints do not let others fragment
    /// (RFC 7348, section 4.3), so over IPv4 `df` is always set. What a datapath cannot build stays as it was asked for.
    pub fn settled(self, mut encapsulation: Encapsulation, over_ipv4: bool) -> Encapsulation {
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

/// As people write it: `the kernel`, `eBPF`, `Open vSwitch`.
impl fmt::Display for Datapath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "the kernel",
            Self::Ebpf => "eBPF",
            Self::Ovs => "Open vSwitch",
            Self::OvsKernel => "Open vSwitch's kernel datapath",
        })
    }
}

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
        assert_eq!(Datapath::Ebpf.settled(inherits.clone(), true), inherits);
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
            for plain in [
                Encapsulation::None,
                Encapsulation::Vxlan(Vxlan::default()),
                Encapsulation::Geneve(Geneve::default()),
            ] {
                assert_eq!(datapath.cannot(&plain), None);
            }
        }
    }

    #[test]
    fn ebpf_sets_df_over_ipv4_and_the_record_says_so() {
        let vxlan = || Encapsulation::Vxlan(Vxlan::default());
        let df = |settled: &Encapsulation| settled.udp().map(|udp| udp.df);
        let set = Datapath::Ebpf.settled(vxlan(), true);
        assert_eq!(df(&set), Some(OuterDf::Set));
        assert_eq!(Datapath::Ebpf.settled(vxlan(), false), vxlan());
        assert_eq!(Datapath::Kernel.settled(vxlan(), true), vxlan());
    }
}
