//! A token bucket (tbf) on the underlay that accounts what a line of the same rate would carry.
//!
//! Two things a plain `tc qdisc add ... tbf` gets wrong here:
//! - it counts 14 of the 38 bytes that frame a packet on an Ethernet line, so 24 are missing;
//! - its `overhead` is added once per super-packet, not once per segment, so that an offloaded
//!   stream at MTU 1500 may run up to 1.6 % above the line. The size table of `wirecost_wire::size_table`
//!   (`TCA_STAB`) gives each super-packet the bytes of all its frames.

use std::io;

use netlink_packet_core::{DefaultNla, Emitable};
use netlink_packet_route::tc::{TcAttribute, TcOption};
use wirecost_wire::size_table::SizeTable;

use crate::netlink::Netlink;
use crate::qdisc;

/// Tokens the bucket holds, as line time in seconds. The timer that refills it is late by up to
/// some hundred microseconds on a busy virtual machine; a smaller bucket overflows meanwhile and
/// loses rate (256 kB at 10 Gbit/s reached 97.5 % of the limit, 1 MB mostly 99.5 % and more). Over a window of
/// 1 s a full bucket at its start adds 0.1 %.
const BURST_SECONDS: f64 = 1.0e-3;
/// Upper bound on the queue, as line time in seconds.
const LATENCY_SECONDS: f64 = 4.0e-3;
/// Lower bound on the bucket: it must hold the largest super-packet, 64 KiB of payload and its headers per segment.
const MIN_BURST_BYTES: u32 = 160 * 1024;

const KIND: &str = "tbf";
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_STAB_BASE: u16 = 1;
const TCA_STAB_DATA: u16 = 2;
pub(crate) const LINKLAYER_ETHERNET: u8 = 1;

/// Size of the bucket in bytes, at a rate in bit/s.
pub(crate) fn burst_bytes(rate: u64) -> u32 {
    ((rate as f64 / 8.0 * BURST_SECONDS) as u32).max(MIN_BURST_BYTES)
}

/// Upper bound on the queue in bytes, the bucket included, at a rate in bit/s (`limit` of tc-tbf(8)).
pub(crate) fn limit_bytes(rate: u64) -> u32 {
    (rate as f64 / 8.0 * LATENCY_SECONDS) as u32 + burst_bytes(rate)
}

/// Makes a tbf of `rate` bit/s the device's root qdisc, in place of the one that is there.
pub(crate) fn set(
    netlink: &mut Netlink,
    index: u32,
    rate: u64,
    sizes: &SizeTable,
) -> io::Result<()> {
    let attributes = [
        TcAttribute::Options(options(rate)),
        TcAttribute::Stab(stab(sizes)),
    ];
    qdisc::set(netlink, index, KIND, attributes)
}

/// Rate in bit/s of the device's root tbf; `None` where its root qdisc is of another kind.
pub(crate) fn read_rate(netlink: &mut Netlink, index: u32) -> io::Result<Option<u64>> {
    let found = qdisc::read(netlink, index)?;
    Ok(found.and_then(|attributes| rate_of(&attributes)))
}

fn rate_of(attributes: &[TcAttribute]) -> Option<u64> {
    qdisc::rate(attributes, KIND, TCA_TBF_PARMS, TCA_TBF_RATE64)
}

/// `struct tc_tbf_qopt` (include/uapi/linux/pkt_sched.h), and the attributes for what does not fit into it.
fn options(rate: u64) -> Vec<TcOption> {
    let bytes_per_second = rate / 8;
    let rate32 = u32::try_from(bytes_per_second).unwrap_or(u32::MAX);
    let mut parms = Vec::with_capacity(36);
    // struct tc_ratespec: cell_log, linklayer, overhead, cell_align, mpu, rate.
    parms.extend([0, LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0]);
    parms.extend(rate32.to_ne_bytes());
    // No peak rate.
    parms.extend([0; 12]);
    parms.extend(limit_bytes(rate).to_ne_bytes());
    // `buffer` in ticks of 64 ns is superseded by TCA_TBF_BURST, `mtu` belongs to the peak rate.
    let ticks = f64::from(burst_bytes(rate)) / bytes_per_second as f64 * 1e9 / 64.0;
    parms.extend((ticks as u32).to_ne_bytes());
    parms.extend([0; 4]);
    let mut options = vec![
        TcOption::Other(DefaultNla::new(TCA_TBF_PARMS, parms)),
        TcOption::Other(DefaultNla::new(
            TCA_TBF_BURST,
            burst_bytes(rate).to_ne_bytes().into(),
        )),
    ];
    if rate32 == u32::MAX {
        let wide = bytes_per_second.to_ne_bytes().into();
        options.push(TcOption::Other(DefaultNla::new(TCA_TBF_RATE64, wide)));
    }
    options
}

/// `struct tc_sizespec` and its table, as nested attributes.
pub(crate) fn stab(sizes: &SizeTable) -> Vec<u8> {
    let mut spec = Vec::with_capacity(28);
    // cell_log, size_log, cell_align, overhead, linklayer, mpu, mtu, tsize.
    spec.extend([sizes.cell_log, sizes.size_log, 0, 0]);
    spec.extend([0; 16]);
    spec.extend((sizes.data.len() as u32).to_ne_bytes());
    let data: Vec<u8> = sizes
        .data
        .iter()
        .flat_map(|size| size.to_ne_bytes())
        .collect();
    let nested = [
        DefaultNla::new(TCA_STAB_BASE, spec),
        DefaultNla::new(TCA_STAB_DATA, data),
    ];
    let mut bytes = vec![0; nested.as_slice().buffer_len()];
    nested.as_slice().emit(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_struct_tc_tbf_qopt() {
        let options = options(10_000_000_000);
        let mut bytes = vec![0; options.as_slice().buffer_len()];
        options.as_slice().emit(&mut bytes);
        let expected: Vec<u8> = [
            &[40u8, 0, 1, 0][..],            // nla: 40 bytes, TCA_TBF_PARMS
            &[0, 1, 0, 0, 0, 0, 0, 0],       // ratespec: Ethernet
            &1_250_000_000u32.to_le_bytes(), // rate, bytes/s
            &[0; 12],                        // no peak rate
            &6_250_000u32.to_le_bytes(),     // limit: 5 ms
            &15_625u32.to_le_bytes(),        // buffer: 1 ms in 64 ns ticks
            &[0; 4],                         // mtu
            &[8, 0, 6, 0],                   // nla: 8 bytes, TCA_TBF_BURST
            &1_250_000u32.to_le_bytes(),
        ]
        .concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_rate_beyond_32_bits_goes_into_its_own_attribute_and_reads_back() {
        for rate in [1_000_000, 10_000_000_000, 400_000_000_000] {
            let attributes = qdisc::as_read(KIND, &options(rate));
            assert_eq!(rate_of(&attributes), Some(rate));
        }
    }

    #[test]
    fn the_size_table_is_nested_as_the_kernel_expects() {
        let sizes = SizeTable {
            cell_log: 2,
            size_log: 1,
            data: vec![42, 43, 44],
        };
        let expected: Vec<u8> = [
            &[28u8, 0, 1, 0][..],
            &[2, 1, 0, 0],
            &[0; 16],
            &3u32.to_le_bytes(),
            &[10, 0, 2, 0, 42, 0, 43, 0, 44, 0, 0, 0],
        ]
        .concat();
        assert_eq!(stab(&sizes), expected);
    }
}
