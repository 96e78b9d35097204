//! The kernel's qdisc size table (`TCA_STAB`): the bytes on the line of a packet of a given length.
//!
//! The `overhead` of a token bucket is added once per packet, but an offloaded stream hands it
//! super-packets of up to 64 KiB: at MTU 1500 such a stream runs 1.6 % above the line's rate. A
//! size table maps every length to bytes on the line, so that a super-packet costs as much as the
//! frames that it is cut into.

use wirecost_model::ip::IpVersion;

use crate::line::tcp_header_bytes;

/// Length of the Ethernet header, which a qdisc counts in a packet's length, bytes.
const ETHERNET_HEADER: u32 = 14;
/// Length of the shortest Ethernet frame without its FCS, bytes (IEEE 802.3): shorter frames are padded.
const MIN_FRAME: u32 = 60;
/// Framing that a packet's length does not include, bytes: preamble 8, FCS 4, gap 12.
const UNSEEN: u32 = crate::line::FRAMING_BYTES - ETHERNET_HEADER;
/// Largest length that the table covers, bytes: a super-packet of 64 KiB of payload, and room for its headers.
const COVERED: u32 = 65_536 + 1024;
/// Binary logarithm of a cell's width: 4 bytes.
const CELL_LOG: u8 = 2;
/// Binary logarithm of the values' unit: they are halved, so that 16 bits reach 131070 bytes.
const SIZE_LOG: u8 = 1;

/// A size table as `struct tc_sizespec` and `TCA_STAB_DATA` carry it; `cell_align` and `overhead` are 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeTable {
    /// Binary logarithm of a cell's width in bytes.
    pub cell_log: u8,
    /// Number of bits by which values are shifted left.
    pub size_log: u8,
    /// One value per cell, in ascending order of lengths.
    pub data: Vec<u16>,
}

/// Sizes of the frames into which a path's packets are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameSizes {
    /// Length of each segment's headers, bytes.
    pub header: u32,
    /// Largest TCP payload of a frame, bytes; at least 1.
    pub payload: u32,
    /// Bytes of a frame on the line that a packet's length does not include.
    pub unseen: u32,
}

impl FrameSizes {
    /// Length of the shortest frame as a packet's length, bytes: shorter packets are padded.
    pub const SHORTEST: u32 = MIN_FRAME;

    /// The frames of a path whose guests have the IP version `guest_ip` and an IP MTU of
    /// `guest_mtu`, and whose encapsulation adds `overhead`. Each frame on the line has `tag` bytes
    /// of VLAN tags, which the kernel keeps in the packet's metadata and does not count in its
    /// length until the device sends it (include/linux/if_vlan.h, `__vlan_hwaccel_put_tag`). All
    /// sizes are in bytes.
    pub fn new(guest_mtu: u32, overhead: u32, guest_ip: IpVersion, tag: u32) -> Self {
        // The headers after the inner Ethernet header that each segment repeats: IP, and TCP with timestamps.
        let segment_header = tcp_header_bytes(guest_ip);
        Self {
            header: ETHERNET_HEADER + overhead + segment_header,
            payload: guest_mtu.saturating_sub(segment_header).max(1),
            unseen: UNSEEN + tag,
        }
    }

    /// Number of frames into which a packet of `len` bytes is cut.
    fn count(self, len: u32) -> u32 {
        len.saturating_sub(self.header)
            .div_ceil(self.payload)
            .max(1)
    }

    /// Bytes that a packet occupies on the line once it is cut into frames, gaps included.
    ///
    /// `len` is the packet's length as a qdisc sees it: Ethernet header included, FCS not. Up to
    /// the largest frame it is one frame (padded to 60 bytes); a longer one is taken for a TCP
    /// super-packet that is cut into full segments.
    pub fn wire_bytes(self, len: u32) -> u32 {
        match self.count(len) {
            1 => len.max(MIN_FRAME) + self.unseen,
            n => len + (n - 1) * self.header + n * self.unseen,
        }
    }

    /// The length that represents a cell: one that exactly fills its last frame if the cell has one
    /// (bulk traffic consists of these, and one byte more costs a frame more), otherwise the middle
    /// of the cell.
    fn representative(self, cell: u32, width: u32) -> u32 {
        let (middle, last) = (cell + width / 2, cell + width - 1);
        let full = self.header + (self.count(last) - 1).max(1) * self.payload;
        if (cell..=last).contains(&full) {
            full
        } else {
            middle
        }
    }

    /// The kernel's table for these frames. The lengths of full frames and full super-packets are
    /// exact within 1 byte. Any other length is within 4 bytes, except up to 3 bytes above a full
    /// one, where the table is short by one frame's headers and framing.
    pub fn table(self) -> SizeTable {
        let width = 1 << CELL_LOG;
        let value = |cell| {
            let bytes = self.wire_bytes(self.representative(cell, width));
            u16::try_from(bytes.div_ceil(1 << SIZE_LOG)).unwrap_or(u16::MAX)
        };
        SizeTable {
            cell_log: CELL_LOG,
            size_log: SIZE_LOG,
            data: (0..=COVERED).step_by(width as usize).map(value).collect(),
        }
    }
}

/// [`FrameSizes::wire_bytes`] for frames without a tag.
pub fn wire_bytes(len: u32, guest_mtu: u32, overhead: u32, guest_ip: IpVersion) -> u32 {
    FrameSizes::new(guest_mtu, overhead, guest_ip, 0).wire_bytes(len)
}

/// [`FrameSizes::table`] for frames without a tag; `guest_mtu` must be at least 73.
pub fn size_table(guest_mtu: u32, overhead: u32, guest_ip: IpVersion) -> SizeTable {
    FrameSizes::new(guest_mtu, overhead, guest_ip, 0).table()
}

impl SizeTable {
    /// The length that the kernel accounts for a packet of `len` bytes, bytes:
    /// `__qdisc_calculate_pkt_len` (`net/sched/sch_api.c`), with its extrapolation beyond the
    /// table.
    pub fn lookup(&self, len: u32) -> u32 {
        let Some(&largest) = self.data.last() else {
            return len.max(1);
        };
        let slot = (len >> self.cell_log) as usize;
        let (tables, rest) = (slot / self.data.len(), slot % self.data.len());
        let value = u64::from(largest) * tables as u64 + u64::from(self.data[rest]);
        u32::try_from(value << self.size_log)
            .unwrap_or(u32::MAX)
            .max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wirecost_model::ip::IpVersion::{Ipv4, Ipv6};

    /// Guest MTU, overhead, and what the guests speak.
    fn paths() -> impl Strategy<Value = (u32, u32, IpVersion)> {
        let overhead = prop_oneof![Just(0u32), Just(50), Just(70), Just(78)];
        let ip = prop_oneof![Just(Ipv4), Just(Ipv6)];
        (overhead, ip).prop_flat_map(|(overhead, ip)| {
            (ip.min_mtu()..=65_000).prop_map(move |mtu| (mtu, overhead, ip))
        })
    }

    #[test]
    fn a_full_frame_of_1500_is_1538_bytes_and_an_ack_90() {
        let table = size_table(1500, 0, Ipv4);
        assert_eq!(table.lookup(1514), 1538);
        assert_eq!(table.lookup(66), 90);
        assert!(table.lookup(60).abs_diff(84) <= 2);
        assert!(table.lookup(42).abs_diff(84) <= 2, "padded");
    }

    #[test]
    fn a_super_packet_costs_as_much_as_its_frames() {
        // 45 segments of 1448, in VXLAN: each frame is 1398 + 52 + 14 + 50 + 24.
        let table = size_table(1450, 50, Ipv4);
        assert_eq!(table.lookup(116 + 45 * 1398), 45 * 1538);
        assert_eq!(
            wire_bytes(116 + 45 * 1398 + 1, 1450, 50, Ipv4),
            45 * 1538 + 141
        );
    }

    #[test]
    fn a_super_packet_of_ipv6_guests_over_ipv6_repeats_40_bytes_more_in_each_frame() {
        // 45 segments of 1358: each frame is 1358 + 72 + 14 + 70 + 24.
        let table = size_table(1430, 70, Ipv6);
        assert_eq!(table.lookup(156 + 45 * 1358), 45 * 1538);
        // Taken for IPv4's it would pass for 1.3 % less than it costs.
        let mistaken = size_table(1430, 70, Ipv4).lookup(156 + 45 * 1358);
        assert!(mistaken < 45 * 1538 * 99 / 100, "{mistaken}");
        let untunnelled = size_table(1500, 0, Ipv6);
        assert_eq!(untunnelled.lookup(86 + 45 * 1428), 45 * 1538);
    }

    #[test]
    fn a_tag_costs_4_bytes_of_every_frame_a_super_packet_becomes() {
        let table = FrameSizes::new(1500, 0, Ipv4, 4).table();
        assert_eq!(table.lookup(1514), 1542);
        assert_eq!(table.lookup(66 + 45 * 1448), 45 * 1542);
        assert!(table.lookup(42).abs_diff(88) <= 2, "padded");
    }

    #[test]
    fn beyond_the_table_the_kernel_adds_whole_tables() {
        let table = SizeTable {
            cell_log: 2,
            size_log: 1,
            data: vec![10, 20, 30],
        };
        assert_eq!(table.lookup(11), 60);
        assert_eq!(table.lookup(12), (30 + 10) * 2);
        assert_eq!(table.lookup(4 * 7), (30 * 2 + 20) * 2);
        let empty = SizeTable {
            data: Vec::new(),
            ..table
        };
        assert_eq!((empty.lookup(0), empty.lookup(99)), (1, 99));
    }

    #[test]
    fn the_table_fits_one_netlink_attribute() {
        assert!(
            size_of_val(size_table(576, 50, Ipv4).data.as_slice()) < usize::from(u16::MAX) - 64
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn longer_packets_never_cost_less((mtu, overhead, ip) in paths(), start in 0u32..200_000) {
            let table = size_table(mtu, overhead, ip);
            prop_assert!(table.data.is_sorted());
            for len in start..start + 500 {
                prop_assert!(table.lookup(len) <= table.lookup(len + 1));
            }
        }

        #[test]
        fn single_frames_are_within_4_bytes((mtu, overhead, ip) in paths()) {
            let (table, full) = (size_table(mtu, overhead, ip), mtu + overhead + 14);
            for len in 14..=full {
                let error = table.lookup(len).abs_diff(len.max(60) + 24);
                prop_assert!(error <= 4, "{len}: {error}");
            }
            prop_assert!(table.lookup(full).abs_diff(full + 24) <= 1);
        }

        #[test]
        fn full_super_packets_are_within_1_byte((mtu, overhead, ip) in paths()) {
            let table = size_table(mtu, overhead, ip);
            let header = 14 + overhead + tcp_header_bytes(ip);
            let payload = mtu - tcp_header_bytes(ip);
            for n in 1..=65_536 / payload {
                let truth = n * (payload + header + 24);
                prop_assert!(table.lookup(header + n * payload).abs_diff(truth) <= 1);
            }
        }

        #[test]
        fn any_super_packet_is_within_4_bytes_or_just_above_a_full_one((mtu, overhead, ip) in paths()) {
            let table = size_table(mtu, overhead, ip);
            let header = 14 + overhead + tcp_header_bytes(ip);
            let payload = mtu - tcp_header_bytes(ip);
            for len in mtu + overhead + 15..=65_536 {
                let truth = wire_bytes(len, mtu, overhead, ip);
                let error = table.lookup(len).abs_diff(truth);
                let above_full = (len - header) % payload;
                let allowed = if (1..=3).contains(&above_full) { header + 24 + 4 } else { 4 };
                prop_assert!(error <= allowed, "{len}: {error} of {truth}");
            }
        }
    }
}
