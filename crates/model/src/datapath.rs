//! Who puts guests' frames into an encapsulation, and what each cannot.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cell::Experiment;
use crate::encapsulation::{Encapsulation, GeneveOptions, OuterDf};
use crate::ip::IpVersion;

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
    /// Open vSwitch, private to each host: its kernel datapath where the kernel has the module, else the one in
    /// userspace. A sample says which ([`crate::switch`]).
    Ovs,
}

impl Datapath {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Ebpf, Self::Ovs];
    /// Those that a run chooses from where the plan leaves it to it, the first choice first. Open vSwitch is measured
    /// where it is asked for: in userspace it is several times slower, and says little of another's headers.
    pub const AUTO: [Self; 2] = [Self::Kernel, Self::Ebpf];

    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Ebpf => "ebpf",
            Self::Ovs => "ovs",
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
            (Self::Ovs, encapsulation)
                if encapsulation
                    .udp()
                    .is_some_and(|udp| udp.df == OuterDf::Inherit) =>
            {
                Some(
                    "Open vSwitch sets the outer don't-fragment bit or leaves it, and does not inherit it",
                )
            }
            // lib/tun-metadata.c: a table of class and type, each with one place and one length above 0.
            (Self::Ovs, Encapsulation::Geneve(geneve))
                if matches!(geneve.options, GeneveOptions::Bytes(1..8 | 129..)) =>
            {
                Some(
                    "Open vSwitch sends an option of one type once in a packet, and one has 8 to 128 bytes",
                )
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
        })
    }
}

/// The key of the factor.
const FACTOR: &str = "datapath";

impl Experiment {
    /// The experiment with all of its cells built by one datapath, which its plan and its levels then name.
    #[must_use]
    pub fn with_datapath(mut self, datapath: Datapath) -> Self {
        let key = datapath.key().to_owned();
        self.plan.datapath = vec![datapath];
        for factor in &mut self.factors {
            if factor.key == FACTOR {
                factor.levels = vec![key.clone()];
            }
        }
        for cell in self.cells.iter_mut().chain(&mut self.twin) {
            cell.network.datapath = datapath;
            if let Some(level) = cell.levels.get_mut(FACTOR) {
                level.clone_from(&key);
            }
        }
        self
    }

    /// The experiment with every encapsulation as its cell's datapath puts it on the wire ([`Datapath::settled`]).
    #[must_use]
    pub fn settled(mut self) -> Self {
        for cell in self.cells.iter_mut().chain(&mut self.twin) {
            let network = &mut cell.network;
            let over_ipv4 = network.underlay_ip == IpVersion::Ipv4;
            let encapsulation = network.encapsulation.clone();
            network.encapsulation = network.datapath.settled(encapsulation, over_ipv4);
        }
        self
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
