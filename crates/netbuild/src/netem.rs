//! A fixed delay by netem (net/sched/sch_netem.c).

use std::io;

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};

use crate::device;
use crate::netlink::{Intent, Netlink};

/// `TCA_OPTIONS`, whose payload is `struct tc_netem_qopt` followed by attributes.
const TCA_OPTIONS: u16 = 2;
const TCA_NETEM_LATENCY64: u16 = 10;
/// Upper bound on the packets that wait: 10 ms of the smallest frames at 10 Gbit/s.
const LIMIT_PACKETS: u32 = 150_000;

/// Delays what a device sends by `microseconds`.
///
/// # Errors
/// `ENOENT` where the kernel has no netem.
pub(crate) fn delay(netlink: &mut Netlink, name: &str, microseconds: u32) -> io::Result<()> {
    let index = device::read(netlink, name)?.index;
    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = TcHandle::ROOT;
    message.attributes = vec![
        TcAttribute::Kind("netem".to_owned()),
        TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options(microseconds))),
    ];
    netlink.apply(
        RouteNetlinkMessage::NewQueueDiscipline(message),
        Intent::Replace,
    )
}

fn options(microseconds: u32) -> Vec<u8> {
    let nanoseconds = i64::from(microseconds) * 1000;
    let mut bytes = Vec::with_capacity(36);
    // latency (in ticks, replaced by the 64-bit attribute), limit, loss, gap, duplicate, jitter.
    for field in [0, LIMIT_PACKETS, 0, 0, 0, 0] {
        bytes.extend(field.to_ne_bytes());
    }
    bytes.extend(12u16.to_ne_bytes());
    bytes.extend(TCA_NETEM_LATENCY64.to_ne_bytes());
    bytes.extend(nanoseconds.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_struct_tc_netem_qopt_and_the_latency_behind_it() {
        let expected: Vec<u8> = [
            &[0u8; 4][..],
            &150_000u32.to_le_bytes(),
            &[0; 16],
            &[12, 0, 10, 0],
            &1_500_000i64.to_le_bytes(),
        ]
        .concat();
        assert_eq!(options(1500), expected);
    }
}
