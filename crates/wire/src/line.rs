//! The capacity of an Ethernet line: what framing leaves of its rate.

use wirecost_model::ip::IpVersion;

/// Bytes that Ethernet adds to an IP packet on the line (IEEE 802.3, untagged): preamble and start delimiter 8,
/// header 14, FCS 4, gap 12.
pub const FRAMING_BYTES: u32 = 38;

/// Length of the TCP/IP headers of a data segment with timestamps, bytes: IPv4 20 or IPv6 40, TCP 20, timestamps and
/// padding 12 (RFC 7323).
pub const fn tcp_header_bytes(ip: IpVersion) -> u32 {
    ip.header_bytes() + 20 + 12
}

/// Bytes that a full-size guest packet occupies on the line, interframe gap included.
///
/// `guest_mtu` is the guest's IP MTU. `overhead` is what the encapsulation adds before the guest's
/// IP packet within the underlay's IP MTU (0 without a tunnel, 50 for VXLAN over IPv4, 70 over
/// IPv6). Both are in bytes.
pub fn line_bytes(guest_mtu: u32, overhead: u32) -> u64 {
    u64::from(guest_mtu) + u64::from(overhead) + u64::from(FRAMING_BYTES)
}

/// Largest TCP goodput, bit/s, of a line of `rate_bps` bit/s with full-size segments with timestamps.
///
/// `guest_ip` is the guests' IP version; that of the underlay is part of `overhead`. Zero where the MTU leaves no
/// room for payload. Acknowledgements use the other direction of a full-duplex line and are not counted.
pub fn tcp_goodput_bps(rate_bps: u64, guest_mtu: u32, overhead: u32, guest_ip: IpVersion) -> f64 {
    f64::from(guest_mtu.saturating_sub(tcp_header_bytes(guest_ip)))
        * frames_per_second(rate_bps, guest_mtu, overhead)
        * 8.0
}

/// Full-size frames per second on a full line of `rate_bps` bit/s.
pub fn frames_per_second(rate_bps: u64, guest_mtu: u32, overhead: u32) -> f64 {
    rate_bps as f64 / 8.0 / line_bytes(guest_mtu, overhead) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wirecost_model::ip::IpVersion::{Ipv4, Ipv6};

    const TEN_GBIT: u64 = 10_000_000_000;

    fn percent(guest_mtu: u32, overhead: u32, guest_ip: IpVersion) -> String {
        format!(
            "{:.1}",
            tcp_goodput_bps(TEN_GBIT, guest_mtu, overhead, guest_ip) / TEN_GBIT as f64 * 100.0
        )
    }

    #[test]
    fn a_plain_line_carries_94_percent_at_1500_and_99_at_9000() {
        assert_eq!(percent(1500, 0, Ipv4), "94.1");
        assert_eq!(percent(9000, 0, Ipv4), "99.0");
    }

    #[test]
    fn vxlan_leaves_91_percent_of_a_1500_underlay_and_98_of_9000() {
        assert_eq!(percent(1450, 50, Ipv4), "90.9");
        assert_eq!(percent(8950, 50, Ipv4), "98.5");
    }

    #[test]
    fn ipv6_takes_20_bytes_of_each_segment_in_the_guest_and_20_more_under_the_tunnel() {
        assert_eq!(percent(1500, 0, Ipv6), "92.8"); // 1428 of 1538
        assert_eq!(percent(1450, 50, Ipv6), "89.6"); // 1378 of 1538
        assert_eq!(percent(1430, 70, Ipv4), "89.6");
        assert_eq!(percent(1430, 70, Ipv6), "88.3"); // 1358 of 1538
        assert_eq!(percent(8930, 70, Ipv6), "98.0"); // 8858 of 9038
    }

    #[test]
    fn ten_gigabit_is_full_at_812_744_frames_of_1500() {
        assert_eq!(frames_per_second(TEN_GBIT, 1500, 0).round() as u64, 812_744);
    }

    #[test]
    fn an_mtu_of_headers_only_carries_nothing() {
        assert!(tcp_goodput_bps(TEN_GBIT, 52, 0, Ipv4) <= 0.0);
        assert!(tcp_goodput_bps(TEN_GBIT, 72, 0, Ipv6) <= 0.0);
        assert!(tcp_goodput_bps(TEN_GBIT, 20, 0, Ipv4) <= 0.0);
    }

    proptest! {
        #[test]
        fn larger_frames_carry_more_and_never_more_than_the_line(mtu in 576u32..65_535, overhead in 0u32..120, ip in prop::sample::select(IpVersion::ALL.to_vec())) {
            let here = tcp_goodput_bps(TEN_GBIT, mtu, overhead, ip);
            prop_assert!(here < TEN_GBIT as f64);
            prop_assert!(here < tcp_goodput_bps(TEN_GBIT, mtu + 1, overhead, ip));
        }
    }
}
