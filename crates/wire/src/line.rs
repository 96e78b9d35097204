//! The physical limit of an Ethernet line: what is left of its rate once every frame is framed.

/// Bytes that Ethernet adds to an IP packet on the line (IEEE 802.3, untagged): preamble and start delimiter 8,
/// header 14, FCS 4, gap 12.
pub const FRAMING_BYTES: u32 = 38;

/// TCP/IPv4 headers of a data segment with timestamps: IPv4 20, TCP 20, timestamps and padding 12 (RFC 7323).
pub const TCP_HEADER_BYTES: u32 = 52;

/// Bytes that one full-size guest packet occupies on the line, gap included.
///
/// `guest_mtu` is the IP MTU of the guest, `overhead` what the encapsulation adds in front of the guest's IP packet
/// within the underlay's IP MTU (0 without a tunnel, 50 for VXLAN over IPv4); both in bytes.
pub fn line_bytes(guest_mtu: u32, overhead: u32) -> u64 {
    u64::from(guest_mtu) + u64::from(overhead) + u64::from(FRAMING_BYTES)
}

/// The most TCP payload, in bits per second, that a line of `rate_bps` carries in full-size segments with timestamps.
///
/// Zero where the MTU leaves no room for payload. The reverse direction's acknowledgements do not share a full-duplex
/// line and are not counted.
pub fn tcp_goodput_bps(rate_bps: u64, guest_mtu: u32, overhead: u32) -> f64 {
    f64::from(guest_mtu.saturating_sub(TCP_HEADER_BYTES))
        * frames_per_second(rate_bps, guest_mtu, overhead)
        * 8.0
}

/// Full-size frames per second at which a line of `rate_bps` bits per second is full.
pub fn frames_per_second(rate_bps: u64, guest_mtu: u32, overhead: u32) -> f64 {
    rate_bps as f64 / 8.0 / line_bytes(guest_mtu, overhead) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEN_GBIT: u64 = 10_000_000_000;

    fn percent(guest_mtu: u32, overhead: u32) -> String {
        format!(
            "{:.1}",
            tcp_goodput_bps(TEN_GBIT, guest_mtu, overhead) / TEN_GBIT as f64 * 100.0
        )
    }

    #[test]
    fn a_plain_line_carries_94_percent_at_1500_and_99_at_9000() {
        assert_eq!(percent(1500, 0), "94.1");
        assert_eq!(percent(9000, 0), "99.0");
    }

    #[test]
    fn vxlan_leaves_91_percent_of_a_1500_underlay_and_98_of_9000() {
        assert_eq!(percent(1450, 50), "90.9");
        assert_eq!(percent(8950, 50), "98.5");
    }

    #[test]
    fn ten_gigabit_is_full_at_812_744_frames_of_1500() {
        assert_eq!(frames_per_second(TEN_GBIT, 1500, 0).round() as u64, 812_744);
    }

    #[test]
    fn an_mtu_of_headers_only_carries_nothing() {
        assert!(tcp_goodput_bps(TEN_GBIT, 52, 0) <= 0.0);
        assert!(tcp_goodput_bps(TEN_GBIT, 20, 0) <= 0.0);
    }

    proptest! {
        #[test]
        fn larger_frames_carry_more_and_never_more_than_the_line(mtu in 576u32..65_535, overhead in 0u32..120) {
            let here = tcp_goodput_bps(TEN_GBIT, mtu, overhead);
            prop_assert!(here < TEN_GBIT as f64);
            prop_assert!(here < tcp_goodput_bps(TEN_GBIT, mtu + 1, overhead));
        }
    }
}
