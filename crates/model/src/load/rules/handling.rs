//! Rules of how data is passed to the kernel and from it.

use super::super::{Receiving, Sending, Workload};
use super::{Fault, Load, unless};

pub(super) fn zero_copy(load: &Load) -> Option<Fault> {
    let fits = load.sending == Sending::Copy || load.workload.is_tcp_stream();
    unless(fits, "zero_copy", || {
        "zero copy is for TCP streams: datagrams are numbered in place, and small messages are copied faster than \
         their pages are pinned"
            .to_owned()
    })
}

pub(super) fn discard(load: &Load) -> Option<Fault> {
    if load.receiving == Receiving::Copy {
        return None;
    }
    let streams = !load.workload.is_request_response();
    if !streams {
        return unless(false, "discard_on_receive", || {
            "request/response loads read what they receive".to_owned()
        });
    }
    unless(!load.segmentation.receive, "discard_on_receive", || {
        "datagrams that are received as one cannot be discarded: all but the first one's number would be lost"
            .to_owned()
    })
}

pub(super) fn segmentation(load: &Load) -> Option<Fault> {
    let wanted = load.segmentation.send || load.segmentation.receive;
    let fits = !wanted || load.workload == Workload::UdpStream;
    unless(fits, "segmentation_offload", || {
        "segmentation_offload is for udp-stream (TCP's is the device's)".to_owned()
    })
}
