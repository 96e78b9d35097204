//! htb (net/sched/sch_htb.c) as several links on one device: a class for each link, without borrowing. A packet's
//! priority (`1:LINK`), set by a program on the device's egress, selects its class.

use std::io;

use netlink_packet_core::DefaultNla;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};
use wirecost_wire::size_table::SizeTable;

use crate::netlink::{Intent, Netlink};
use crate::qdisc;
use crate::tbf::{LINKLAYER_ETHERNET, burst_bytes, limit_bytes, stab};

const KIND: &str = "htb";
const TCA_OPTIONS: u16 = 2;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// `TC_HTB_PROTOVER` of sch_htb.c, in `struct tc_htb_glob`.
const VERSION: u32 = 3;
/// Bytes that a class sends in its turn; without effect where nothing is borrowed.
const QUANTUM: u32 = 60_000;
/// Major handle of the root qdisc, and of the first link's queue.
const ROOT: u16 = 1;
const FIRST_QUEUE: u16 = 0x10;

/// Gives a device a class of `rate` bit/s for each of so many links, in place of its root qdisc.
pub(crate) fn set(
    netlink: &mut Netlink,
    index: u32,
    (rate, links): (u64, u32),
    sizes: &SizeTable,
) -> io::Result<()> {
    // An htb that is there cannot be changed.
    if is_there(netlink, index)? {
        qdisc::remove(netlink, index)?;
    }
    let mut glob = Vec::with_capacity(20);
    // version, rate2quantum, defcls, debug, direct_pkts: packets without a class of their own use the first.
    for word in [VERSION, 10, 1, 0, 0] {
        glob.extend(word.to_ne_bytes());
    }
    let root = message(
        index,
        (ROOT, 0),
        TcHandle::ROOT,
        KIND,
        [
            TcAttribute::Options(vec![TcOption::Other(DefaultNla::new(TCA_HTB_INIT, glob))]),
            TcAttribute::Stab(stab(sizes)),
        ],
    );
    netlink.apply(
        RouteNetlinkMessage::NewQueueDiscipline(root),
        Intent::Replace,
    )?;
    for link in 0..links as u16 {
        let (class, root) = ((ROOT, link + 1), handle((ROOT, 0)));
        let options = TcAttribute::Options(options(rate));
        let class = message(index, class, root, KIND, [options]);
        let parent = class.header.handle;
        netlink.apply(RouteNetlinkMessage::NewTrafficClass(class), Intent::Replace)?;
        // struct tc_fifo_qopt, which is not made of attributes.
        let limit = DefaultNla::new(TCA_OPTIONS, limit_bytes(rate).to_ne_bytes().into());
        let queue = message(
            index,
            (FIRST_QUEUE + link, 0),
            parent,
            "bfifo",
            [TcAttribute::Other(limit)],
        );
        netlink.apply(
            RouteNetlinkMessage::NewQueueDiscipline(queue),
            Intent::Replace,
        )?;
    }
    Ok(())
}

/// Whether the device's root qdisc is htb.
pub(crate) fn is_there(netlink: &mut Netlink, index: u32) -> io::Result<bool> {
    let found = qdisc::read(netlink, index)?.unwrap_or_default();
    let is_kind = |one: &TcAttribute| matches!(one, TcAttribute::Kind(kind) if kind == KIND);
    Ok(found.iter().any(is_kind))
}

/// Rate in bit/s of each class of the device's htb; empty where it has none.
pub(crate) fn read_rates(netlink: &mut Netlink, index: u32) -> io::Result<Vec<u64>> {
    // The kernel lists the classes of one device (net/sched/sch_api.c, `tc_dump_tclass`).
    let all = RouteNetlinkMessage::GetTrafficClass(TcMessage::with_index(index as i32));
    let classes = netlink.dump(all)?.into_iter();
    let rates = classes.filter_map(|message| match message {
        RouteNetlinkMessage::NewTrafficClass(class) => rate_of(&class.attributes),
        _ => None,
    });
    Ok(rates.collect())
}

fn rate_of(attributes: &[TcAttribute]) -> Option<u64> {
    qdisc::rate(attributes, KIND, TCA_HTB_PARMS, TCA_HTB_RATE64)
}

fn handle((major, minor): (u16, u16)) -> TcHandle {
    TcHandle { major, minor }
}

fn message<const N: usize>(
    index: u32,
    own: (u16, u16),
    parent: TcHandle,
    kind: &str,
    more: [TcAttribute; N],
) -> TcMessage {
    let mut message = TcMessage::with_index(index as i32);
    message.header.handle = handle(own);
    message.header.parent = parent;
    message.attributes = vec![TcAttribute::Kind(kind.to_owned())];
    message.attributes.extend(more);
    message
}

/// `struct tc_htb_opt` (include/uapi/linux/pkt_sched.h), and the 64-bit rates where they do not fit into it.
fn options(rate: u64) -> Vec<TcOption> {
    let bytes_per_second = rate / 8;
    let rate32 = u32::try_from(bytes_per_second).unwrap_or(u32::MAX);
    let mut parms = Vec::with_capacity(44);
    // Two struct tc_ratespec: rate and ceiling.
    for _ in 0..2 {
        parms.extend([0, LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0]);
        parms.extend(rate32.to_ne_bytes());
    }
    // In ticks of 64 ns.
    let burst = f64::from(burst_bytes(rate)) / bytes_per_second as f64 * 1e9 / 64.0;
    // buffer, cbuffer, quantum, level, prio.
    for word in [burst as u32, burst as u32, QUANTUM, 0, 0] {
        parms.extend(word.to_ne_bytes());
    }
    let mut options = vec![TcOption::Other(DefaultNla::new(TCA_HTB_PARMS, parms))];
    if rate32 == u32::MAX {
        for wide in [TCA_HTB_RATE64, TCA_HTB_CEIL64] {
            let bytes = bytes_per_second.to_ne_bytes().into();
            options.push(TcOption::Other(DefaultNla::new(wide, bytes)));
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use wirecost_model::ip::IpVersion;
    use wirecost_sys::namespace::HeldNetns;
    use wirecost_wire::size_table::FrameSizes;

    use super::*;
    use crate::device;

    #[test]
    fn the_rate_of_each_link_reads_back_from_the_kernel() {
        let held = match HeldNetns::create("held") {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                wirecost_skips::skip(format!("this needs root: {error}"));
                return;
            }
            held => held.expect("a namespace"),
        };
        let netlink = held.netns().within(Netlink::open).expect("the namespace");
        let mut netlink = netlink.expect("rtnetlink");
        let index = device::read(&mut netlink, "lo").expect("lo").index;
        let sizes = FrameSizes::new(1500, 0, IpVersion::Ipv4, 0).table();
        // The last beyond 32 bits of bytes per second.
        for (rate, links) in [(1_000_000_000, 2), (2_500_000_000, 1), (100_000_000_000, 3)] {
            match set(&mut netlink, index, (rate, links), &sizes) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    wirecost_skips::skip(format!("this kernel has no htb: {error}"));
                    return;
                }
                set => set.expect("root of the namespace"),
            }
            let found = read_rates(&mut netlink, index).expect("classes");
            assert_eq!(found, vec![rate; links as usize]);
        }
        qdisc::remove(&mut netlink, index).expect("removed");
        let found = read_rates(&mut netlink, index).expect("classes");
        assert!(found.is_empty(), "{found:?}");
    }
}
