//! The cross product: cells, and the rules that take several factors to see.

use std::collections::BTreeSet;

use wirecost_model::cell::{Cell, Network};
use wirecost_model::ip::IpVersion;
use wirecost_model::load::{Load, NamedLoad, Workload};
use wirecost_model::plan::{Cores, GuestMtu, Levels};

use crate::factors::{Axis, COUNT, Factors};
use crate::fit::{Fit, Room};
use crate::guests::{self, Division};
use crate::keys;
use crate::read::{Entry, Reader};
use crate::select::Exclusion;
use crate::transit::Written;

/// Most cells of an experiment, excluded ones counted: beyond it a plan is a slip of the pen.
pub const MAX_CELLS: usize = 4096;

/// Places of factors in a choice, which are those in [`Factors::axes`].
const UNDERLAY_IP: usize = 2;
const ENCAPSULATION: usize = 3;
const GUEST_MTU: usize = 4;

/// Expands the factors into cells, in the order of the cross product. What it returns is meant
/// only where the reader has no faults.
pub(crate) fn cells(
    reader: &mut Reader,
    factors: &Factors,
    axes: &[Axis; COUNT],
    exclusions: &[Exclusion],
    exclude: Option<&Entry<'_>>,
    cores: Cores,
    between: &Written,
) -> Vec<Cell> {
    // A factor with no level that could be read does not keep the others from being checked.
    let sizes: [usize; COUNT] = std::array::from_fn(|axis| axes[axis].labels.len().max(1));
    let total = sizes
        .iter()
        .fold(1, |total: usize, size| total.saturating_mul(*size));
    if total > MAX_CELLS {
        too_many(reader, axes, total);
        return Vec::new();
    }
    let mut kept = Vec::new();
    let mut known = BTreeSet::new();
    for number in 0..total {
        let mut choice = digits(number, &sizes);
        if exclusions
            .iter()
            .any(|exclusion| exclusion.matches(&choice))
        {
            continue;
        }
        // Where nothing tunnels, every level of `underlay.ip` is the same cell.
        if !tunnels(factors, &choice) {
            choice[UNDERLAY_IP] = 0;
        }
        if known.insert(choice) {
            kept.push(choice);
        }
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
    let (mut fit, mut division) = (Fit::default(), Division::default());
    let cells = kept
        .iter()
        .filter_map(|choice| {
            cell(
                factors,
                axes,
                choice,
                (cores, between),
                (&mut fit, &mut division),
            )
        })
        .zip(0..)
        .map(|(cell, index)| Cell { index, ..cell })
        .collect();
    fit.report(reader, factors, between);
    division.report(reader, factors);
    cells
}

/// The levels' numbers of one cell: the last factor varies fastest.
fn digits(mut number: usize, sizes: &[usize; COUNT]) -> [usize; COUNT] {
    let mut digits = [0; COUNT];
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

/// Whether a cell has a tunnel, as far as its encapsulation could be read.
fn tunnels(factors: &Factors, choice: &[usize; COUNT]) -> bool {
    let level = factors.encapsulation.get(choice[ENCAPSULATION]);
    level.is_none_or(|level| level.value.is_tunnel())
}

/// An IP for tunnels where there are none is a slip: most likely the guests' was meant.
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

/// Builds one cell; notes in `fit` where its network does not work out.
fn cell(
    factors: &Factors,
    axes: &[Axis; COUNT],
    choice: &[usize; COUNT],
    (cores, between): (Cores, &Written),
    (fit, division): (&mut Fit, &mut Division),
) -> Option<Cell> {
    let [
        mtu,
        rate,
        underlay_ip,
        encapsulation,
        guest,
        guest_ip,
        guests,
        offload,
        streams,
        per_guest,
        message,
        congestion,
        buffer,
    ] = *choice;
    let underlay_level = factors.underlay_mtu.get(mtu)?;
    let guest_level = factors.guest_mtu.get(guest)?;
    let tunnelled = tunnels(factors, choice);
    let network = Network {
        underlay_mtu: underlay_level.value,
        // A rate that could not be read keeps nothing from being held against its room.
        rate: factors.rate.get(rate).and_then(|level| level.value),
        underlay_ip: if tunnelled {
            factors.underlay_ip.get(underlay_ip)?.value
        } else {
            IpVersion::Ipv4
        },
        encapsulation: factors.encapsulation.get(encapsulation)?.value.clone(),
        guest_ip: factors.guest_ip.get(guest_ip)?.value,
        guests: factors.guests.get(guests)?.value,
        transit: between.transit.clone(),
        cores,
    };
    let room = Room::of(&network, mtu, encapsulation);
    if !fit.takes_underlay(&network, room, between) {
        return None;
    }
    let guest_mtu = match guest_level.value {
        GuestMtu::Bytes(bytes) => bytes,
        GuestMtu::Max => room.largest,
    };
    if !fit.takes_guest(guest, guest_mtu, room, between) {
        return None;
    }
    let streams = division.streams(factors, network.guests, streams, per_guest)?;
    let mut resolved = *choice;
    resolved[GUEST_MTU] = guest_mtu as usize;
    fit.note_cell(resolved, guest, room, guest_mtu);
    let levels: Levels = axes
        .iter()
        .zip(choice)
        .filter(|(axis, _)| tunnelled || axis.key.path != keys::UNDERLAY_IP.path)
        .filter(|(axis, _)| !guests::is_unused(factors, axis.key.path))
        .filter_map(|(axis, level)| Some((axis.name.to_owned(), axis.labels.get(*level)?.clone())))
        .collect();
    Some(Cell {
        index: 0,
        levels,
        network,
        guest_mtu,
        offload: factors.offload.get(offload)?.value.clone(),
        loads: vec![NamedLoad::alone(Load {
            streams,
            request: factors.message.get(message)?.value,
            congestion: Some(factors.congestion.get(congestion)?.value.clone()),
            socket_buffer: factors.socket_buffer.get(buffer)?.value,
            ..Load::new(Workload::TcpStream)
        })],
    })
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
        assert_eq!(axes[GUEST_MTU].key.path, keys::GUEST_MTU.path);
    }
}
