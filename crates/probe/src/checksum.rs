//! Datagrams that arrived and were thrown away for their checksum: they show in no socket, and in one counter.

use std::fs;
use std::io;

/// UDP datagrams, over IPv4 and IPv6, that the calling thread's namespace threw away for a wrong checksum since it was
/// made (`InCsumErrors`: net/ipv4/udp.c, net/ipv6/udp.c).
///
/// # Errors
/// Where /proc does not tell of IPv4. Without IPv6 there are none of it.
pub fn checksum_errors() -> io::Result<u64> {
    let v4 = fs::read_to_string("/proc/thread-self/net/snmp")?;
    let v6 = fs::read_to_string("/proc/thread-self/net/snmp6").unwrap_or_default();
    let v4 = of_v4(&v4)
        .ok_or_else(|| io::Error::other("/proc/net/snmp has no counter `Udp: InCsumErrors`"))?;
    Ok(v4 + of_v6(&v6))
}

/// A line of names and one of values, both begun by the protocol.
fn of_v4(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (lines.next()?, lines.next()?);
    let at = names.split(' ').position(|name| name == "InCsumErrors")?;
    values.split(' ').nth(at)?.parse().ok()
}

fn of_v6(text: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Udp6InCsumErrors"));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_are_read() {
        let v4 = "Tcp: InSegs InCsumErrors\nTcp: 5 6\n\
            Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors IgnoredMulti MemErrors\n\
            Udp: 10 1 2 3 4 5 77 0 0\nUdpLite: InCsumErrors\nUdpLite: 9\n";
        assert_eq!(of_v4(v4), Some(77));
        assert_eq!(of_v4("Udp: InDatagrams\nUdp: 1\n"), None);
        let v6 = "Udp6InErrors                    \t3\nUdp6InCsumErrors                \t8\n";
        assert_eq!((of_v6(v6), of_v6("")), (8, 0));
        assert!(checksum_errors().is_ok(), "this machine's");
    }
}
