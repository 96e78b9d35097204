//! The datapath of an experiment, which a run may choose.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Experiment;
use crate::datapath::Datapath;
use crate::ip::IpVersion;

/// A datapath that a run chose because the first choice could not build every cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Who carries every cell, those without a tunnel too.
    pub datapath: Datapath,
    /// What the first choice could not build, and why, each once; of a study of OVN's also the second.
    pub instead: Vec<Unbuilt>,
    /// Whether the run chose for a study of OVN's ([`Datapath::OF_OVN`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_ovn: bool,
}

/// What a datapath could not build here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unbuilt {
    /// Its label.
    pub encapsulation: String,
    /// In words; what to do where there is something.
    pub reason: String,
}

/// The warning that a result and a dry run give: named with encapsulation, reason and what to do.
impl fmt::Display for Chosen {
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

/// The key of the factor.
const FACTOR: &str = "datapath";

impl Experiment {
    /// What a run chooses from, where the plan leaves the datapath to it.
    pub fn datapaths_to_choose(&self) -> &'static [Datapath] {
        let published = self.plan.published.as_ref();
        if published.is_some_and(|published| published.ovn) {
            &Datapath::OF_OVN
        } else {
            &Datapath::AUTO
        }
    }

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
