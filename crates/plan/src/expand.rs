//! Expands the factors into cells, and checks the rules that involve several factors.

use std::collections::BTreeSet;

use wirecost_model::cell::{Cell, Network};
use wirecost_model::datapath::Datapath;
use wirecost_model::ip::IpVersion;
use wirecost_model::offload::Role;
use wirecost_model::plan::{Cores, GuestMtu, Levels};
use wirecost_model::switch::OvsDatapath;
use wirecost_model::vary::Setting;

use crate::axis::{Axis, LoadSwitch};
use crate::factors::{COUNT, Factors};
use crate::fit::{FitCheck, GuestMtuRange};
use crate::keys;
use crate::loads::{Faults, Loads};
use crate::logical;
use crate::read::{Entry, Reader};
use crate::select::Exclusion;
use crate::transit::TransitSection;
use crate::vary::CustomFactor;

/// Upper bound on the cells of an experiment, excluded ones included: a plan with more is a mistake.
pub const MAX_CELLS: usize = 4096;

/// Positions of factors in a choice, as in [`Factors::axes`].
const UNDERLAY_IP: usize = 4;
const ENCAPSULATION: usize = 5;
const UDP_CHECKSUM: usize = 6;
const DATAPATH: usize = 7;
const TOPOLOGY: usize = 8;
const ACL: usize = 9;
const GUEST_MTU: usize = 10;
const OFFLOAD: usize = 13;

/// Stands for a level in a cell to which the factor does not apply: no entry of `exclude` matches it.
const NONE: usize = usize::MAX;

/// All factors of a plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlanFactors<'a> {
    pub(crate) factors: &'a Factors,
    pub(crate) loads: &'a Loads,
    pub(crate) varied: &'a [CustomFactor],
    /// The factors in the order of the cross product: of the network, of the loads, the plan's own.
    pub(crate) axes: &'a [Axis],
}

impl PlanFactors<'_> {
    /// Index of the first of the plan's own factors.
    fn own(&self) -> usize {
        self.axes.len() - self.varied.len()
    }

    /// Number of a cell's load in the plan's list.
    fn load(&self, choice: &[usize]) -> usize {
        let listed = self.loads.count() > 1;
        if listed { choice[COUNT] } else { 0 }
    }

    /// Number of levels of each factor for the load of that number; 1 where the factor is fixed.
    fn sizes(&self, load: usize) -> Vec<usize> {
        let size = |(at, axis): (usize, &Axis)| {
            let other = axis.of_load.is_some_and(|of| of != load);
            let chosen = at == COUNT && self.loads.count() > 1;
            // A factor none of whose levels could be read does not prevent the check of the others.
            if other || chosen {
                1
            } else {
                axis.labels.len().max(1)
            }
        };
        self.axes.iter().enumerate().map(size).collect()
    }
}

/// Whether a factor applies to a cell with the load of that number. An option of another load, or
/// of a load that does not run, does not.
fn means(axis: &Axis, load: usize, choice: &[usize]) -> bool {
    let runs = |by: LoadSwitch| choice.get(COUNT + by.axis) != Some(&by.without);
    axis.of_load.is_none_or(|of| of == load) && axis.runs_by.is_none_or(runs)
}

/// Expands the factors into cells, in the order of the cross product. The result is valid only if
/// the reader has no faults.
pub(crate) fn cells(
    reader: &mut Reader,
    varying: &PlanFactors<'_>,
    exclusions: &[Exclusion],
    exclude: Option<&Entry<'_>>,
    cores: Cores,
    between: &TransitSection,
) -> Vec<Cell> {
    let PlanFactors {
        factors,
        varied,
        axes,
        ..
    } = *varying;
    let sizes: Vec<Vec<usize>> = (0..varying.loads.count())
        .map(|load| varying.sizes(load))
        .collect();
    let product = |sizes: &Vec<usize>| {
        sizes
            .iter()
            .fold(1, |total: usize, size| total.saturating_mul(*size))
    };
    let total = sizes.iter().map(product).fold(0, usize::saturating_add);
    if total > MAX_CELLS {
        too_many(reader, axes, total);
        return Vec::new();
    }
    let mut kept = Vec::new();
    let mut known = BTreeSet::new();
    for (load, sizes) in sizes.iter().enumerate() {
        for number in 0..product(sizes) {
            let mut choice = digits(number, sizes);
            if varying.loads.count() > 1 {
                choice[COUNT] = load;
            }
            let mut meant = choice.clone();
            for (at, axis) in axes.iter().enumerate() {
                if !means(axis, load, &meant) {
                    (meant[at], choice[at]) = (NONE, 0);
                }
            }
            if exclusions.iter().any(|exclusion| exclusion.matches(&meant)) {
                continue;
            }
            // Without a tunnel, all levels of `underlay.ip` are the same cell.
            if !tunnels(factors, &choice) {
                choice[UNDERLAY_IP] = 0;
            }
            if !takes_checksum(factors, &choice) {
                choice[UDP_CHECKSUM] = 0;
            }
            if !logical::by_ovn(factors, choice[DATAPATH]) {
                (choice[TOPOLOGY], choice[ACL]) = (0, 0);
            }
            if known.insert(choice.clone()) {
                kept.push(choice);
            }
        }
    }
    if varying.loads.count() > 1 {
        // The loads of one network are measured one after the other.
        kept.sort_unstable();
    }
    if kept.is_empty() && reader.faults.is_empty() {
        if let Some(entry) = exclude {
            let message = "`exclude` drops every cell";
            let help = "remove an entry: at least one cell must be left to measure";
            reader.fault(
                entry.node.span.clone(),
                &entry.path,
                message,
                "nothing is left",
                help,
            );
        }
        return Vec::new();
    }
    if !kept.iter().any(|choice| tunnels(factors, choice)) {
        nothing_to_carry(reader, factors);
    }
    if !kept.iter().any(|choice| takes_checksum(factors, choice)) {
        nothing_to_sum(reader, factors);
    }
    if !kept
        .iter()
        .any(|choice| logical::by_ovn(factors, choice[DATAPATH]))
    {
        logical::changes_nothing(reader, factors);
    }
    without_tunnel(reader, factors, varied, varying.own(), &kept);
    let mut fit = FitCheck::default();
    let mut faults = Faults::default();
    let cells = kept
        .iter()
        .filter_map(|choice| {
            let judging = (&mut fit, &mut faults);
            let cell = cell(varying, choice, (cores, between), judging)?;
            fit.note_offload(choice[OFFLOAD], cell.idle_switch());
            Some(cell)
        })
        .zip(0..)
        .map(|(cell, index)| Cell { index, ..cell })
        .collect();
    fit.report(reader, factors, between);
    faults.report(reader);
    cells
}

/// The level numbers of the cell with that number: the last factor varies fastest.
fn digits(mut number: usize, sizes: &[usize]) -> Vec<usize> {
    let mut digits = vec![0; sizes.len()];
    for (digit, size) in digits.iter_mut().zip(sizes).rev() {
        *digit = number % size;
        number /= size;
    }
    digits
}

fn too_many(reader: &mut Reader, axes: &[Axis], total: usize) {
    let product: Vec<String> = axes
        .iter()
        .filter(|axis| axis.labels.len() > 1)
        .map(|axis| format!("{} of `{}`", axis.labels.len(), axis.name))
        .collect();
    let message = format!("the plan has {total} cells, which is more than {MAX_CELLS}");
    let help = format!("vary less at once: {}", product.join(" x "));
    reader.fault(0..0, "", message, "this plan", help);
}

/// Whether a cell has a tunnel; `true` if its encapsulation could not be read.
fn tunnels(factors: &Factors, choice: &[usize]) -> bool {
    let level = factors.encapsulation.get(choice[ENCAPSULATION]);
    level.is_none_or(|level| level.value.encapsulation.is_tunnel())
}

/// Whether the plan's `udp_checksum` applies to a cell.
fn takes_checksum(factors: &Factors, choice: &[usize]) -> bool {
    let level = factors.encapsulation.get(choice[ENCAPSULATION]);
    level.is_none_or(|level| level.value.takes_checksum())
}

/// A fault where `udp_checksum` is on but no cell has an outer UDP header whose checksum it decides.
fn nothing_to_sum(reader: &mut Reader, factors: &Factors) {
    let asked = |level: &&crate::read::Level<bool>| level.written && level.value;
    if let Some(level) = factors.udp_checksum.levels.iter().find(asked) {
        let message = "`udp_checksum` changes nothing: no cell has a tunnel that leaves it open";
        let help = "it is about the outer UDP header of `vxlan` and `geneve`: add one without an `udp_checksum` of \
                    its own, or leave the key out";
        let span = level.span.clone();
        reader.fault(span, &level.path, message, "no outer UDP header", help);
    }
}

/// A fault where `underlay.ip` is IPv6 but no cell has a tunnel: most likely `guest_ip` was meant.
fn nothing_to_carry(reader: &mut Reader, factors: &Factors) {
    let levels = &factors.underlay_ip.levels;
    let asked =
        |level: &&crate::read::Level<IpVersion>| level.written && level.value != IpVersion::Ipv4;
    if let Some(level) = levels.iter().find(asked) {
        let message = "`underlay.ip` changes nothing: no cell has a tunnel";
        let help = "it is the IP that carries tunnels: add an encapsulation, such as `vxlan`, or leave \
                    the key out; what the guests speak is `guest_ip`";
        let span = level.span.clone();
        reader.fault(span, &level.path, message, "carries nothing", help);
    }
}

/// Whether a cell has a tunnel device: not with eBPF or with Open vSwitch in userspace. Where the
/// run chooses the datapath, a cell that sets a tunnel device is built by the kernel.
fn has_tunnel_device(factors: &Factors, choice: &[usize]) -> bool {
    let datapath = factors.datapath.get(choice[DATAPATH]);
    let has_none = datapath.is_some_and(|level| {
        let without = Some(Datapath::Ebpf) == level.value;
        let switch = level.value.and_then(Datapath::open_vswitch);
        without || switch == Some(OvsDatapath::Userspace)
    });
    tunnels(factors, choice) && !has_none
}

/// A fault where a level sets features of a tunnel device in a cell without one.
fn without_tunnel(
    reader: &mut Reader,
    factors: &Factors,
    varied: &[CustomFactor],
    first: usize,
    kept: &[Vec<usize>],
) {
    for (place, factor) in (first..).zip(varied) {
        for (number, level) in factor.levels.levels.iter().enumerate() {
            let without = kept
                .iter()
                .find(|choice| choice[place] == number && !has_tunnel_device(factors, choice));
            let Some(choice) = without else { continue };
            if !level.value.ethtool.contains_key(&Role::Tunnel) {
                continue;
            }
            let none = factors.encapsulation.get(choice[ENCAPSULATION]);
            let none = none.map_or("none", |level| &level.label);
            let (name, label) = (&factor.name, &level.label);
            let message = format!(
                "the level `{label}` of `{name}` sets a tunnel, and a cell without one has it"
            );
            let help = format!(
                "leave `tunnel` out, or `exclude` the combination: `{{ encapsulation: {none}, {name}: {label} }}`"
            );
            let span = level.span.clone();
            reader.fault(span, &level.path, message, "no tunnel there", help);
        }
    }
}

/// Builds one cell, or notes in `fit` why its network does not fit and returns `None`.
fn cell(
    varying: &PlanFactors<'_>,
    choice: &[usize],
    (cores, between): (Cores, &TransitSection),
    (fit, faults): (&mut FitCheck, &mut Faults),
) -> Option<Cell> {
    let PlanFactors {
        factors,
        loads,
        varied,
        axes,
    } = *varying;
    let load = varying.load(choice);
    let [
        _pair,
        mtu,
        rate,
        links,
        underlay_ip,
        encapsulation,
        checksum,
        datapath,
        topology,
        acl,
        guest,
        guest_ip,
        guests,
        offload,
        queues,
        rps,
    ] = *choice.first_chunk::<COUNT>()?;
    let guests = factors.guests.get(guests).map_or(1, |level| level.value);
    // Faults of loads are reported whatever else is wrong.
    let loads = loads.cell(load, &choice[COUNT..varying.own()], guests, faults);
    let underlay_level = factors.underlay_mtu.get(mtu)?;
    let guest_level = factors.guest_mtu.get(guest)?;
    let tunnelled = tunnels(factors, choice);
    let encapsulated = &factors.encapsulation.get(encapsulation)?.value;
    let checksum_of_plan = factors.udp_checksum.get(checksum)?.value;
    let datapath = factors.datapath.get(datapath)?.value;
    let network = Network {
        underlay_mtu: underlay_level.value,
        // A rate that could not be read does not prevent the checks of sizes.
        rate: factors.rate.get(rate).and_then(|level| level.value),
        links: factors.links.get(links).map_or(1, |level| level.value),
        underlay_ip: match factors.underlay_ip.get(underlay_ip) {
            level if tunnelled => level?.value,
            _ => IpVersion::Ipv4,
        },
        encapsulation: encapsulated
            .encapsulation
            .clone()
            .with_udp_checksum(encapsulated.udp_checksum.unwrap_or(checksum_of_plan)),
        // Where the run chooses the datapath, its first candidate until then.
        datapath: datapath.unwrap_or(Datapath::AUTO[0]),
        logical: logical::of(factors, datapath, (topology, acl))?,
        guest_ip: factors.guest_ip.get(guest_ip)?.value,
        guests,
        transit: between.transit.clone(),
        cores,
        steering: factors.steering_of(queues, rps),
    };
    let range = GuestMtuRange::of(&network, mtu, encapsulation);
    if datapath.is_some() {
        fit.note_datapath(&network, range);
    }
    if !fit.check_underlay(&network, range, between) {
        return None;
    }
    let guest_mtu = match guest_level.value {
        GuestMtu::Bytes(bytes) => bytes,
        GuestMtu::Max => range.largest,
    };
    if !fit.check_guest(guest, guest_mtu, range, between) {
        return None;
    }
    let (of_plan, sizes) = (varying.loads, (guest_mtu, network.guest_ip));
    of_plan.check_fit(load, &loads, sizes, faults);
    let mut resolved = choice.to_vec();
    resolved[GUEST_MTU] = guest_mtu as usize;
    fit.note_cell(resolved, guest, range, guest_mtu);
    let mut levels: Levels = axes
        .iter()
        .zip(choice)
        .filter(|(axis, _)| has_level(varying, axis, choice, &network))
        .filter_map(|(axis, level)| {
            Some((
                axis.name.clone().into_owned(),
                axis.labels.get(*level)?.clone(),
            ))
        })
        .collect();
    if encapsulated.udp_checksum == Some(false) {
        // The encapsulation's label mentions only `on`.
        levels.insert(keys::UDP_CHECKSUM.path.to_owned(), "off".to_owned());
    }
    Some(Cell {
        index: 0,
        levels,
        network,
        guest_mtu,
        offload: factors.offload.get(offload)?.value.clone(),
        loads,
        settings: settings(varied, &choice[varying.own()..]),
    })
}

/// Whether a cell's record has its level of a factor: not where the factor does not apply.
fn has_level(varying: &PlanFactors<'_>, axis: &Axis, choice: &[usize], network: &Network) -> bool {
    let factors = varying.factors;
    match axis.key.path {
        path if path == keys::UNDERLAY_IP.path => tunnels(factors, choice),
        // Records from before there could be several links do not name the factor.
        path if path == keys::UNDERLAY_LINKS.path => {
            factors.links.levels.len() > 1 || network.links > 1
        }
        path if path == keys::UDP_CHECKSUM.path => takes_checksum(factors, choice),
        path if logical::has_key(path) => network.datapath.is_ovn(),
        _ => means(axis, varying.load(choice), choice),
    }
}

/// The settings of the plan's own factors in a cell.
fn settings(varied: &[CustomFactor], levels: &[usize]) -> Vec<Setting> {
    let each = varied
        .iter()
        .zip(levels)
        .filter_map(|(factor, level)| Some(factor.levels.get(*level)?.value.clone()));
    each.filter(|setting| !setting.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors;
    use crate::read::Fields;

    #[test]
    fn the_places_are_those_of_the_axes() {
        let absent = Fields::absent();
        let axes = factors::read(&mut Reader::default(), &absent, &absent, &absent).axes();
        assert_eq!(axes[UNDERLAY_IP].key.path, keys::UNDERLAY_IP.path);
        assert_eq!(axes[ENCAPSULATION].key.path, keys::ENCAPSULATION.path);
        assert_eq!(axes[UDP_CHECKSUM].key.path, keys::UDP_CHECKSUM.path);
        assert_eq!(axes[DATAPATH].key.path, keys::DATAPATH.path);
        assert_eq!(axes[TOPOLOGY].key.path, keys::TOPOLOGY.path);
        assert_eq!(axes[ACL].key.path, keys::ACL.path);
        assert_eq!(axes[GUEST_MTU].key.path, keys::GUEST_MTU.path);
        assert_eq!(axes[OFFLOAD].key.path, keys::OFFLOAD.path);
    }
}
