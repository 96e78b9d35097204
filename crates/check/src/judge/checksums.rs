//! Findings about wrong checksums.

use wirecost_audit::Finding;

use super::{add, device_of, ends};
use crate::report::{PathReport, Stream};

/// Fewest wrong checksums that are attributed to the path: other traffic has one now and then, and a size counts as
/// lost after at least seven copies.
pub(super) const BAD_CHECKSUMS: u64 = 7;

/// Fewest wrong checksums that explain a dead path: there are only a few probes, or neighbour requests through a
/// tunnel.
pub(super) const DEAD: u64 = 2;

/// Adds the finding of a dead path on which every packet arrives with a wrong checksum.
pub(super) fn every_one(path: &PathReport, found: &mut Vec<Finding>) {
    let evidence = format!(
        "{}: no answer, not even to small packets: datagrams arrive with a wrong UDP checksum, {} of them (UdpInCsumErrors), \
         and are dropped by the receiving host",
        ends(path),
        path.bad_checksums
    );
    add(found, "bad-checksums", path, evidence, offloads_off(path));
}

pub(super) fn datagrams(path: &PathReport, carries: &str, found: &mut Vec<Finding>) {
    add(
        found,
        "bad-checksums",
        path,
        format!(
            "{}: {carries} pass and no more; larger ones arrive with a wrong UDP checksum, {} of them, and are dropped by \
             the receiving host",
            ends(path),
            path.bad_checksums
        ),
        offloads_off(path),
    );
}

fn offloads_off(path: &PathReport) -> Vec<String> {
    let device = device_of(path);
    vec![
        "# a card, its driver or a virtual switch on the way computes it wrongly: switch its offloads off, one by \
         one, and check again"
            .into(),
        format!(
            "ethtool -K {device} tx-checksum-ip-generic off tx-checksum-ipv4 off tx-checksum-ipv6 off"
        ),
        format!("ethtool -K {device} tx-tcp-segmentation off tx-tcp6-segmentation off"),
        format!(
            "ethtool -K {device} tx-udp_tnl-csum-segmentation off tx-udp_tnl-segmentation off"
        ),
        "# at the receiving host: nstat -az UdpInCsumErrors Udp6InCsumErrors TcpInCsumErrors".into(),
    ]
}

/// Fewest segments with a wrong checksum that are attributed to the stream; one or two may be of other connections.
const BAD_SEGMENTS: u64 = 3;

/// Adds the finding of a TCP stream with wrong checksums or changed content. A stream that only stalls proves neither:
/// loss has the same effect.
pub(super) fn segments(path: &PathReport, found: &mut Vec<Finding>) {
    let changed = path.stream == Some(Stream::Changed);
    // Where a size of datagrams fails, which has a finding of its own, no stream was sent.
    if path.stream.is_none() || (path.bad_segments < BAD_SEGMENTS && !changed) {
        return;
    }
    let what = if changed {
        "what a TCP stream carries arrives changed".to_owned()
    } else {
        format!(
            "datagrams of {} bytes pass, and of a TCP stream {} segments arrive with a wrong checksum and are dropped by the \
             receiving host",
            path.required.bytes(),
            path.bad_segments
        )
    };
    let evidence = format!("{}: {what}", ends(path));
    add(found, "bad-checksums", path, evidence, offloads_off(path));
}
