//! The cross product: cells, and the rules that take several factors to see.

use std::collections::BTreeMap;

use wirecost_model::cell::{Cell, Network, TcpStream};
use wirecost_model::plan::{Cores, Encapsulation, GuestMtu, Levels};

use crate::factors::{Axis, COUNT, Factors};
use crate::keys::MIN_MTU;
use crate::read::{Entry, Level, Reader};
use crate::select::Exclusion;

/// Most cells of an experiment, excluded ones counted: beyond it a plan is a slip of the pen.
pub const MAX_CELLS: usize = 4096;

/// Expands the factors into cells, in the order of the cross product. What it returns is meant
/// only where the reader has no faults.
pub(crate) fn cells(
    reader: &mut Reader,
    factors: &Factors,
    axes: &[Axis; COUNT],
    exclusions: &[Exclusion],
    exclude: Option<&Entry<'_>>,
    cores: Cores,
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
    for number in 0..total {
        let choice = digits(number, &sizes);
        if !exclusions
            .iter()
            .any(|exclusion| exclusion.matches(&choice))
        {
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
    let mut fit = Fit::default();
    let cells = kept
        .iter()
        .filter_map(|choice| cell(factors, axes, choice, cores, &mut fit))
        .zip(0..)
        .map(|(cell, index)| Cell { index, ..cell })
        .collect();
    fit.report(reader, factors);
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

/// Builds one cell; notes in `fit` where its guest MTU does not work out.
fn cell(
    factors: &Factors,
    axes: &[Axis; COUNT],
    choice: &[usize; COUNT],
    cores: Cores,
    fit: &mut Fit,
) -> Option<Cell> {
    let [
        mtu,
        rate,
        encapsulation,
        guest,
        offload,
        streams,
        message,
        congestion,
        buffer,
    ] = *choice;
    let underlay = factors.underlay_mtu.get(mtu)?;
    let encapsulation = factors.encapsulation.get(encapsulation)?;
    let guest_level = factors.guest_mtu.get(guest)?;
    let room = Room {
        largest: underlay
            .value
            .saturating_sub(encapsulation.value.overhead_bytes()),
        underlay: mtu,
        encapsulation: choice[2],
    };
    let guest_mtu = match guest_level.value {
        GuestMtu::Bytes(bytes) => bytes,
        GuestMtu::Max => room.largest,
    };
    if guest_mtu > room.largest || guest_mtu < MIN_MTU {
        fit.note_misfit(guest, room);
        return None;
    }
    let mut resolved = *choice;
    resolved[3] = guest_mtu as usize;
    if let Some(first) = fit.resolved.insert(resolved, guest) {
        fit.same.entry(guest).or_insert((first, room, guest_mtu));
    }
    let levels: Levels = axes
        .iter()
        .zip(choice)
        .filter_map(|(axis, level)| Some((axis.name.to_owned(), axis.labels.get(*level)?.clone())))
        .collect();
    Some(Cell {
        index: 0,
        levels,
        network: Network {
            underlay_mtu: underlay.value,
            rate: factors.rate.get(rate)?.value,
            encapsulation: encapsulation.value.clone(),
            cores,
        },
        guest_mtu,
        offload: factors.offload.get(offload)?.value.clone(),
        load: TcpStream {
            streams: factors.streams.get(streams)?.value,
            message: factors.message.get(message)?.value,
            congestion: factors.congestion.get(congestion)?.value.clone(),
            socket_buffer: factors.socket_buffer.get(buffer)?.value,
        },
    })
}

/// What a guest's datagram may take at most, and by which levels.
#[derive(Debug, Clone, Copy)]
struct Room {
    largest: u32,
    underlay: usize,
    encapsulation: usize,
}

/// Guest MTUs that do not work out, by the number of the level: one fault each is enough.
#[derive(Debug, Default)]
struct Fit {
    /// The tightest room that a level does not fit.
    misfits: BTreeMap<usize, Room>,
    /// Every cell with its guest MTU in bytes, and the level that gave it.
    resolved: BTreeMap<[usize; COUNT], usize>,
    /// A level that comes to the same number of bytes as an earlier one, and where.
    same: BTreeMap<usize, (usize, Room, u32)>,
}

impl Fit {
    fn note_misfit(&mut self, guest: usize, room: Room) {
        let tightest = self.misfits.entry(guest).or_insert(room);
        if room.largest < tightest.largest {
            *tightest = room;
        }
    }

    fn report(self, reader: &mut Reader, factors: &Factors) {
        for (guest, room) in self.misfits {
            report_misfit(reader, factors, guest, room);
        }
        for (guest, (first, room, bytes)) in self.same {
            let (Some(level), Some(first)) =
                (factors.guest_mtu.get(guest), factors.guest_mtu.get(first))
            else {
                continue;
            };
            let Some(path) = describe(factors, room) else {
                continue;
            };
            let message = format!(
                "the levels `{}` and `{}` of `guest_mtu` are both {bytes} bytes {path}",
                first.label, level.label
            );
            let help = "remove one of them, or `exclude` one of the two there: \
                        the same cell would be measured twice";
            let span = level.span.clone();
            reader.fault(span, &level.path, message, "the same cell again", help);
        }
    }
}

fn report_misfit(reader: &mut Reader, factors: &Factors, guest: usize, room: Room) {
    let (Some(level), Some(underlay), Some(encapsulation), Some(path)) = (
        factors.guest_mtu.get(guest),
        factors.underlay_mtu.get(room.underlay),
        factors.encapsulation.get(room.encapsulation),
        describe(factors, room),
    ) else {
        return;
    };
    let overhead = encapsulation.value.overhead_bytes();
    let room = room.largest;
    let help = if room < MIN_MTU {
        let least = MIN_MTU + overhead;
        format!(
            "the underlay's MTU must be at least {least} for a guest MTU of {MIN_MTU}, the smallest"
        )
    } else if overhead > 0 {
        format!(
            "the largest that fits is {room} ({} less {overhead} of overhead): write {room}, or \
             `max`, or `exclude` the combination",
            underlay.value
        )
    } else {
        format!(
            "the largest that fits is {room}: write {room}, or `max`, or `exclude` the combination"
        )
    };
    let (message, label) = match level.value {
        GuestMtu::Max => (
            format!("the guest MTU `max` is {room} {path}"),
            format!("below {MIN_MTU}"),
        ),
        GuestMtu::Bytes(bytes) => (
            format!("a guest MTU of {bytes} does not fit {path}"),
            format!("{} too large", bytes.saturating_sub(room)),
        ),
    };
    // Point at what the plan says, not at a default.
    let (span, path) = pick(level, underlay, encapsulation);
    reader.fault(span, &path, message, label, help);
}

fn pick(
    guest: &Level<GuestMtu>,
    underlay: &Level<u32>,
    encapsulation: &Level<Encapsulation>,
) -> (crate::yaml::Span, String) {
    if guest.written {
        (guest.span.clone(), guest.path.clone())
    } else if underlay.written {
        (underlay.span.clone(), underlay.path.clone())
    } else {
        (encapsulation.span.clone(), encapsulation.path.clone())
    }
}

/// `in vxlan over an underlay of 9000`.
fn describe(factors: &Factors, room: Room) -> Option<String> {
    let underlay = factors.underlay_mtu.get(room.underlay)?.value;
    let encapsulation = factors.encapsulation.get(room.encapsulation)?;
    Some(match encapsulation.value {
        Encapsulation::None => format!("over an underlay of {underlay}"),
        Encapsulation::Vxlan(_) => {
            format!("in {} over an underlay of {underlay}", encapsulation.label)
        }
    })
}
