//! The factors of OVN's logical network, which apply only where OVN builds it.

use wirecost_model::datapath::Datapath;
use wirecost_model::logical::{Acl, Logical, Topology};

use crate::factors::Factors;
use crate::keys;
use crate::read::Reader;

/// Whether the path is that of one of these factors' keys.
pub(crate) fn has_key(path: &str) -> bool {
    [keys::TOPOLOGY.path, keys::ACL.path].contains(&path)
}

/// The logical network of a cell by its datapath and level numbers; `None` where a level could not be read.
pub(crate) fn of(
    factors: &Factors,
    datapath: Option<Datapath>,
    (topology, acl): (usize, usize),
) -> Option<Logical> {
    if !datapath.is_some_and(Datapath::is_ovn) {
        return Some(Logical::default());
    }
    Some(Logical {
        topology: factors.topology.get(topology)?.value,
        acl: factors.acl.get(acl)?.value,
    })
}

/// Whether OVN builds a cell, by the number of its level of `datapath`. A run never chooses OVN by itself.
pub(crate) fn by_ovn(factors: &Factors, datapath: usize) -> bool {
    // If no level could be read, OVN cannot be ruled out.
    let level = factors.datapath.get(datapath);
    level.is_none_or(|level| level.value.is_some_and(Datapath::is_ovn))
}

/// A fault where a logical network is set but no cell is built by OVN.
pub(crate) fn changes_nothing(reader: &mut Reader, factors: &Factors) {
    let help = "it is about OVN's logical network: write `datapath: ovn`, or leave the key out";
    let mut fault = |key: &keys::Key, span, path: &str| {
        let message = format!("`{}` changes nothing: no cell is built by OVN", key.path);
        reader.fault(span, path, message, "no logical network", help);
    };
    let mut topologies = factors.topology.levels.iter();
    if let Some(level) = topologies.find(|level| level.written && level.value != Topology::Switched)
    {
        fault(&keys::TOPOLOGY, level.span.clone(), &level.path);
    }
    let mut acls = factors.acl.levels.iter();
    if let Some(level) = acls.find(|level| level.written && level.value != Acl::None) {
        fault(&keys::ACL, level.span.clone(), &level.path);
    }
}
