//! Rules of the sizes of messages, requests and responses.

use super::super::{DATAGRAM_HEADER, MAX_DATAGRAM, MAX_IO, MAX_MESSAGE, SECTOR, Workload};
use super::{Fault, Load, unless};

pub(super) fn message(load: &Load) -> Option<Fault> {
    size(load.workload, message_option(load.workload), load.request)
}

pub(super) fn response(load: &Load) -> Option<Fault> {
    let has_one = load.workload.is_request_response() && !load.workload.is_storage();
    has_one
        .then(|| size(load.workload, "response", load.response))
        .flatten()
}

/// The name of the option for the size of a load's messages.
const fn message_option(workload: Workload) -> &'static str {
    if workload.is_storage() {
        "io_size"
    } else if workload.is_request_response() {
        "request"
    } else {
        "message"
    }
}

fn size(workload: Workload, option: &'static str, bytes: u32) -> Option<Fault> {
    if workload.is_udp() {
        return unless(
            (DATAGRAM_HEADER..=MAX_DATAGRAM).contains(&bytes),
            option,
            || {
                format!(
                    "a datagram of {bytes} bytes: {DATAGRAM_HEADER} to {MAX_DATAGRAM}, since each carries \
                 {DATAGRAM_HEADER} bytes that tell its run, flow and number (smaller messages go over tcp-rr or \
                 tcp-stream)"
                )
            },
        );
    }
    if workload.is_storage() {
        let fits = (SECTOR..=MAX_IO).contains(&bytes) && bytes.is_multiple_of(SECTOR);
        return unless(fits, option, || {
            format!("an I/O of {bytes} bytes: a multiple of {SECTOR}, at most {MAX_IO}")
        });
    }
    unless((1..=MAX_MESSAGE).contains(&bytes), option, || {
        format!("a {option} of {bytes} bytes: 1 to {MAX_MESSAGE}")
    })
}
