//! Whether this host fragments the packets that carry its own: the kernel's counter of fragments around a few
//! datagrams. That covers every tunnel, whichever program created it and however its packets are routed.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use wirecost_check::SenderFragmentation;
use wirecost_probe::burst;
use wirecost_probe::message::Secret;

/// Fragments during a survey from which on the cause is examined.
const MIN_FRAGMENTS: u64 = 8;
/// Datagrams of full size, and datagrams of each size that is tried.
const FULL_SIZE_DATAGRAMS: u32 = 20;
const TRIAL_DATAGRAMS: u32 = 8;
/// Bounds on the wait for the counter, which is as long as the survey waited for answers: a userspace tunnel needs a
/// moment.
const WAIT: (Duration, Duration) = (Duration::from_millis(8), Duration::from_millis(60));
/// Upper bound on readings of the counter until it stops changing: other programs may fragment all the time.
const READINGS: u32 = 10;

/// Fragments made in this namespace, IPv4 and IPv6 together (/proc/net/snmp, snmp6).
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

/// The value of [`made`] once it has not changed for `quiet`.
fn settled(quiet: Duration) -> u64 {
    let mut last = made();
    for _ in 0..READINGS {
        thread::sleep(quiet);
        let now = made();
        if now == last {
            break;
        }
        last = now;
    }
    last
}

/// Which packets this host fragments, of up to `mtu` bytes, a size that passes; `None` where it fragments none.
/// `before` is [`made`] before the survey, `wait` how long the survey waited for answers.
pub(super) fn sender_fragmentation(
    socket: &UdpSocket,
    (low, mtu): (u32, u32),
    to: IpAddr,
    (before, wait): (u64, Duration),
    secret: &Secret,
) -> Option<SenderFragmentation> {
    if made() - before < MIN_FRAGMENTS {
        return None;
    }
    let quiet = wait.clamp(WAIT.0, WAIT.1);
    let mut before = settled(quiet);
    let mut fragments = |size: u32, count: u32| -> Option<u64> {
        burst(socket, to, (size, count), secret).ok()?;
        let after = settled(quiet);
        Some(after - std::mem::replace(&mut before, after))
    };
    let full = fragments(mtu, FULL_SIZE_DATAGRAMS)?;
    // The fragments are not from our datagrams: other programs on this host fragment.
    if full < u64::from(FULL_SIZE_DATAGRAMS) || fragments(low, FULL_SIZE_DATAGRAMS)? * 2 > full {
        return None;
    }
    let (mut unfragmented, mut fragmented) = (low, mtu);
    while fragmented - unfragmented > 1 {
        let size = u32::midpoint(unfragmented, fragmented);
        if fragments(size, TRIAL_DATAGRAMS)? < u64::from(TRIAL_DATAGRAMS) {
            unfragmented = size;
        } else {
            fragmented = size;
        }
    }
    Some(SenderFragmentation {
        sent: FULL_SIZE_DATAGRAMS,
        fragments: full,
        unfragmented: (unfragmented > low).then_some(unfragmented),
    })
}
