//! The datapath of an experiment, which a run may choose.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Experiment;
use crate::datapath::Datapath;
use crate::ip::IpVersion;

/// A datapath that a run chose because the first choice could not build every cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenDatapath {
    /// The datapath of every cell, cells without a tunnel included.
    pub datapath: Datapath,
    /// What the first choice could not build, each encapsulation once; in a study of OVN also the second choice's.
    pub instead: Vec<UnsupportedEncapsulation>,
    /// Whether the run chose from [`Datapath::OF_OVN`], for a study of OVN.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_ovn: bool,
}

/// An encapsulation that a datapath could not build here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsupportedEncapsulation {
    /// The encapsulation's label.
    pub encapsulation: String,
    /// Why it could not be built, and what to do about it where something can be done.
    pub reason: String,
}

/// The warning of results and dry runs: the datapath, and each encapsulation that ruled out the choices before it, with
/// the reason.
impl fmt::Display for ChosenDatapath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.datapath {
            Datapath::Kernel => "the kernel's devices carry",
            Datapath::Ebpf => "eBPF carries",
            Datapath::Ovs => "Open vSwitch carries",
            Datapath::OvsKernel => "Open vSwitch's kernel datapath carries",
            Datapath::Ovn => "OVN carries",
            Datapath::OvnKernel => "OVN over Open vSwitch's kernel datapath carries",
        };
        let each = self.instead.iter();
        let each = each.map(|one| format!("{} ({})", one.encapsulation, one.reason));
        let each = each.collect::<Vec<_>>().join(", ");
        if self.for_ovn {
            let with = match self.datapath {
                Datapath::Ebpf => "with OVN's header, and without OVN's switches and flows",
                _ => "in userspace, packet by packet",
            };
            return write!(
                f,
                "{by} every cell, {with}; what is nearer to the study cannot be built here: {each}"
            );
        }
        write!(
            f,
            "{by} every cell, those without a tunnel too, because the kernel cannot build {each}: CPU and throughput are those \
             of these programs and not of the kernel's devices. Give the kernel what it lacks, leave that encapsulation \
             out, or write `datapath` into the plan"
        )
    }
}

/// Key of the factor `datapath`.
const FACTOR: &str = "datapath";

impl Experiment {
    /// The datapaths that a run chooses from where the plan names none, the first choice first.
    pub fn datapaths_to_choose(&self) -> &'static [Datapath] {
        let published = self.plan.published.as_ref();
        if published.is_some_and(|published| published.ovn) {
            &Datapath::OF_OVN
        } else {
            &Datapath::AUTO
        }
    }

    /// The experiment with this datapath in the plan, in the factor's levels and in every cell.
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

    /// The experiment with every encapsulation as the cell's datapath puts it on the wire ([`Datapath::resolved`]).
    #[must_use]
    pub fn resolved(mut self) -> Self {
        for cell in self.cells.iter_mut().chain(&mut self.twin) {
            let network = &mut cell.network;
            let over_ipv4 = network.underlay_ip == IpVersion::Ipv4;
            let encapsulation = network.encapsulation.clone();
            network.encapsulation = network.datapath.resolved(encapsulation, over_ipv4);
        }
        self
    }
}
