//! Links between namespaces: the peers of veths, and the namespaces of tunnel sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use wirecost_sys::namespace::Netns;

use super::reader::{NamespaceReader, read};
use super::{namespaces, routes};
use crate::snapshot::{ReadFailure, VethPeer};

/// Upper bound on the namespaces read: a host of a thousand containers is not read completely.
const MOST_NAMESPACES: usize = 128;

/// Reads the namespaces, not read yet, that veths of the namespace at position `at` and the sockets of its tunnels lead
/// to.
pub(super) fn follow_links(
    at: usize,
    readings: &mut Vec<NamespaceReader>,
    unread: &mut Vec<ReadFailure>,
) {
    let mut wanted: BTreeSet<i32> = readings[at]
        .other_ends
        .iter()
        .filter_map(|(_, _, number)| *number)
        .chain(
            readings[at]
                .cross_netns_tunnels
                .iter()
                .map(|tunnel| tunnel.socket),
        )
        .collect();
    for position in 0..readings.len() {
        let descriptor = readings[position].netns.as_raw_fd();
        if let Some(number) = namespaces::number_of(&mut readings[at].netlink, descriptor) {
            wanted.remove(&number);
        }
    }
    if wanted.is_empty() {
        return;
    }
    let mut seen = BTreeSet::new();
    for candidate in namespaces::candidates() {
        if wanted.is_empty() || readings.len() >= MOST_NAMESPACES {
            break;
        }
        let identity = fs::metadata(&candidate.path)
            .ok()
            .map(|about| (about.dev(), about.ino()));
        let Some(identity) = identity else { continue };
        if !seen.insert(identity) {
            continue;
        }
        let Ok(file) = namespaces::open(&candidate) else {
            continue;
        };
        let descriptor = namespaces::number(&file);
        let Some(number) = namespaces::number_of(&mut readings[at].netlink, descriptor) else {
            continue;
        };
        if !wanted.contains(&number) {
            continue;
        }
        let label = (candidate.label.as_str(), candidate.enter);
        match read(Netns::from(file), label.clone(), false, unread) {
            Ok(reading) => {
                wanted.remove(&number);
                readings.push(reading);
            }
            Err(error) => unread.push(ReadFailure {
                what: format!("the namespace of {}", label.0),
                why: format!("{error}; entering it needs CAP_SYS_ADMIN over it"),
            }),
        }
    }
    if !wanted.is_empty() {
        unread.push(ReadFailure {
            what: format!(
                "{} namespace(s) that devices of {} lead to",
                wanted.len(),
                readings[at].namespace.label
            ),
            why: "no process that can be seen is in it; as root of the machine more is visible"
                .into(),
        });
    }
}

/// Sets the peer of every veth.
pub(super) fn link_peers(readings: &mut [NamespaceReader]) {
    for at in 0..readings.len() {
        let positions = positions(at, readings);
        let reading = &mut readings[at];
        for (device, index, number) in &reading.other_ends {
            reading.namespace.devices[*device].peer = Some(VethPeer {
                namespace: number.map_or(Some(at), |number| positions.get(&number).copied()),
                index: *index,
            });
        }
    }
}

/// Looks up the routes of tunnels whose socket is in another namespace: packets leave from there. Where that namespace
/// was not read, the remotes stay empty.
pub(super) fn route_from_sockets(readings: &mut [NamespaceReader]) {
    for at in 0..readings.len() {
        let cross_netns_tunnels = std::mem::take(&mut readings[at].cross_netns_tunnels);
        if cross_netns_tunnels.is_empty() {
            continue;
        }
        let positions = positions(at, readings);
        for tunnel in cross_netns_tunnels {
            let Some(&position) = positions.get(&tunnel.socket) else {
                continue;
            };
            let device = &readings[at].namespace.devices[tunnel.device];
            let port = device.tunnel.as_ref().map_or(0, |tunnel| tunnel.port);
            let netlink = &mut readings[position].netlink;
            let remotes = tunnel.remotes.into_iter();
            let remotes = remotes
                .map(|to| routes::tunnel_towards(netlink, (to, port), tunnel.outer))
                .collect();
            if let Some(told) = &mut readings[at].namespace.devices[tunnel.device].tunnel {
                told.socket = Some(position);
                told.remotes = remotes;
            }
        }
    }
}

/// Positions in `readings`, by the namespace id (nsid) that the namespace at position `at` has for each.
fn positions(at: usize, readings: &mut [NamespaceReader]) -> BTreeMap<i32, usize> {
    let mut positions = BTreeMap::new();
    for position in 0..readings.len() {
        let descriptor = readings[position].netns.as_raw_fd();
        if let Some(number) = namespaces::number_of(&mut readings[at].netlink, descriptor) {
            positions.insert(number, position);
        }
    }
    positions
}
