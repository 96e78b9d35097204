//! fq (net/sched/sch_fq.c), used only to hold packets back until the departure time that a program on the device's
//! egress has set: it paces no flow and bounds no queue, which the program does.

use std::io;

use netlink_packet_core::DefaultNla;
use netlink_packet_route::tc::{TcAttribute, TcOption};

use crate::netlink::Netlink;
use crate::qdisc;

/// Kind of the qdisc, by the kernel's name.
pub const KIND: &str = "fq";
/// Kernel configuration option of fq.
pub const CONFIG: &str = "CONFIG_NET_SCH_FQ";
/// Kernel module of fq.
pub const MODULE: &str = "sch_fq";

const TCA_FQ_PLIMIT: u16 = 1;
const TCA_FQ_FLOW_PLIMIT: u16 = 2;
const TCA_FQ_RATE_ENABLE: u16 = 5;
const TCA_FQ_TIMER_SLACK: u16 = 13;

/// Upper bound on queued packets, more than a line's queue ever holds: 4 ms of the shortest frames at 400 Gbit/s are
/// 2.4 million. By default fq drops beyond 100 packets of a flow.
const PACKETS: u32 = 1 << 22;
/// How late the timer may be, nanoseconds, to be joined with another: not at all, since departure times are in steps
/// already.
const TIMER_SLACK_NS: u32 = 0;

/// Makes an fq with these options the device's root qdisc, or keeps one that is there.
pub(crate) fn set(netlink: &mut Netlink, index: u32) -> io::Result<()> {
    qdisc::set(netlink, index, KIND, [TcAttribute::Options(options())])
}

/// Whether the device's root qdisc is an fq with these options.
pub(crate) fn is_there(netlink: &mut Netlink, index: u32) -> io::Result<bool> {
    let Some(found) = qdisc::read(netlink, index)? else {
        return Ok(false);
    };
    Ok(WANTED.iter().all(|(option, value)| {
        qdisc::option(&found, KIND, *option).is_some_and(|bytes| bytes == value.to_ne_bytes())
    }))
}

const WANTED: [(u16, u32); 4] = [
    (TCA_FQ_PLIMIT, PACKETS),
    (TCA_FQ_FLOW_PLIMIT, PACKETS),
    (TCA_FQ_RATE_ENABLE, 0),
    (TCA_FQ_TIMER_SLACK, TIMER_SLACK_NS),
];

fn options() -> Vec<TcOption> {
    WANTED
        .iter()
        .map(|(option, value)| {
            TcOption::Other(DefaultNla::new(*option, value.to_ne_bytes().into()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::Emitable;

    use super::*;

    #[test]
    fn flows_are_not_paced_and_queues_not_bounded() {
        let options = options();
        let mut bytes = vec![0; options.as_slice().buffer_len()];
        options.as_slice().emit(&mut bytes);
        let expected: Vec<u8> = [
            [8u8, 0, 1, 0, 0, 0, 0x40, 0],
            [8, 0, 2, 0, 0, 0, 0x40, 0],
            [8, 0, 5, 0, 0, 0, 0, 0],
            [8, 0, 13, 0, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(bytes, expected);
        let read = qdisc::as_read(KIND, &options);
        let slack = qdisc::option(&read, KIND, TCA_FQ_TIMER_SLACK);
        assert_eq!(slack, Some(vec![0; 4]));
        assert_eq!(qdisc::option(&read, "tbf", TCA_FQ_TIMER_SLACK), None);
    }
}
