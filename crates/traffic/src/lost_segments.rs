//! Finds connections that opened and carried their handshake, but have no full segment acknowledged: a PMTU black hole,
//! or a filter. The kernel goes on to retransmit for minutes.

use std::fs;
use std::time::Duration;

use wirecost_sys::socket::{TcpInfo, tcp_info};

use crate::error::TrafficError;
use crate::ops::ClientFlow;

/// Retransmissions from which on a connection counts as stuck. Timeouts back off from 200 ms (RFC 6298;
/// `TCP_RTO_MIN`): the third is over after 1.4 s on a path with a short round trip, and later on others, as the
/// timeout follows the round trip.
const RETRANSMITS: u32 = 3;
/// Time since the last acknowledgement from which on a connection counts as stuck.
const SILENT: Duration = Duration::from_millis(1200);

/// Whether the kernel looks for a smaller segment after some timeouts in the calling thread's network namespace
/// (`net.ipv4.tcp_mtu_probing`, which covers IPv6 too): then a connection may recover.
pub(crate) fn may_recover() -> bool {
    let probing = fs::read_to_string("/proc/sys/net/ipv4/tcp_mtu_probing");
    probing.is_ok_and(|value| value.trim() != "0")
}

/// The error of the first connection, if every connection is stuck.
pub(crate) fn all_lost(flows: &[ClientFlow]) -> Option<TrafficError> {
    let mut first = None;
    for flow in flows {
        let info = tcp_info(&*flow.socket).ok()?;
        if !is_stuck(&info) {
            return None;
        }
        first.get_or_insert_with(|| of_flow(flow.index, &info));
    }
    first
}

fn is_stuck(info: &TcpInfo) -> bool {
    let silent = Duration::from_millis(info.last_ack_recv.into());
    has_none_acknowledged(info) && info.total_retrans >= RETRANSMITS && silent >= SILENT
}

/// Whether a segment of full size is lost and none was ever acknowledged. Small requests alone do not count.
pub(crate) fn has_none_acknowledged(info: &TcpInfo) -> bool {
    let full = u64::from(info.snd_mss);
    let under_way = info.bytes_sent_once.saturating_sub(info.bytes_acked);
    info.unacked > 0 && info.total_retrans > 0 && info.bytes_acked < full && under_way >= full
}

pub(crate) fn of_flow(flow: u32, info: &TcpInfo) -> TrafficError {
    TrafficError::SegmentsLost {
        flow,
        mss: info.snd_mss,
        retransmits: info.total_retrans,
        silent: Duration::from_millis(info.last_ack_recv.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> TcpInfo {
        TcpInfo {
            unacked: 10,
            total_retrans: 3,
            last_ack_recv: 1500,
            bytes_acked: 64,
            bytes_sent_once: 64 + 10 * 8948,
            snd_mss: 8948,
            ..TcpInfo::default()
        }
    }

    #[test]
    fn a_connection_that_carried_nothing_but_its_handshake_is_stuck() {
        assert!(is_stuck(&info()));
        let words = of_flow(0, &info()).to_string();
        assert!(
            words.contains("8948 bytes") && words.contains("wirecost check"),
            "{words}"
        );
    }

    /// An outage in the middle of a load ends, perhaps, and is measured.
    #[test]
    fn a_connection_that_carried_a_full_segment_or_is_young_is_not() {
        let carried = TcpInfo {
            bytes_acked: 8948,
            ..info()
        };
        let young = TcpInfo {
            last_ack_recv: 700,
            ..info()
        };
        let twice = TcpInfo {
            total_retrans: 2,
            ..info()
        };
        let idle = TcpInfo {
            unacked: 0,
            ..info()
        };
        let small = TcpInfo {
            bytes_sent_once: 64 + 128,
            ..info()
        };
        for other in [carried, young, twice, idle, small] {
            assert!(!is_stuck(&other), "{other:?}");
        }
    }
}
