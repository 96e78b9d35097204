//! Whether this host fragments what carries its own packets: its counter of fragments beside a few datagrams. That catches
//! every tunnel, whoever makes it and however its packets are routed.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use wirecost_check::Cut;
use wirecost_probe::burst;
use wirecost_probe::message::Secret;

/// Fragments beside a survey that are worth a look.
const SOME: u64 = 8;
/// Datagrams of full size, and of each size that is tried.
const MANY: u32 = 20;
const FEW: u32 = 8;
/// A program that encapsulates needs a moment.
const WAIT: Duration = Duration::from_millis(8);

/// Fragments that this namespace has made, of both versions (/proc/net/snmp, snmp6).
pub(super) fn made() -> u64 {
    let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}"));
    let four = read("snmp").unwrap_or_default();
    let six = read("snmp6").unwrap_or_default();
    let six = six
        .lines()
        .find_map(|line| line.strip_prefix("Ip6FragCreates"));
    let six: u64 = six.and_then(|it| it.trim().parse().ok()).unwrap_or(0);
    super::checksums::column(&four, "Ip: ", "FragCreates") + six
}

/// What is fragmented of packets of `mtu` bytes, which pass; `before`: what [`made`] said before the survey.
pub(super) fn cut(
    socket: &UdpSocket,
    (low, mtu): (u32, u32),
    to: IpAddr,
    before: u64,
    secret: &Secret,
) -> Option<Cut> {
    if made() - before < SOME {
        return None;
    }
    let fragments = |size: u32, count: u32| -> Option<u64> {
        let before = made();
        burst(socket, to, (size, count), secret).ok()?;
        thread::sleep(WAIT);
        Some(made() - before)
    };
    let full = fragments(mtu, MANY)?;
    // Others on this host fragment whatever we send.
    if full < u64::from(MANY) || fragments(low, MANY)? * 2 > full {
        return None;
    }
    let (mut whole, mut cut) = (low, mtu);
    while cut - whole > 1 {
        let size = u32::midpoint(whole, cut);
        if fragments(size, FEW)? < u64::from(FEW) {
            whole = size;
        } else {
            cut = size;
        }
    }
    Some(Cut {
        sent: MANY,
        fragments: full,
        whole: (whole > low).then_some(whole),
    })
}
