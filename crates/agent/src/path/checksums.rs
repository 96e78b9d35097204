//! Checksum errors that the kernel has counted in this network namespace.

use std::fs;

/// Packets received with a wrong checksum (/proc/net/snmp and snmp6; TCP's counter covers IPv4 and IPv6).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WrongChecksums {
    pub(super) udp: u64,
    pub(super) tcp: u64,
}

impl WrongChecksums {
    /// Reads the counters; one that cannot be read is 0.
    pub(super) fn count() -> Self {
        let read = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}"));
        let four = read("snmp").unwrap_or_default();
        let six = read("snmp6").unwrap_or_default();
        let udp6 = six
            .lines()
            .find_map(|line| line.strip_prefix("Udp6InCsumErrors"));
        let udp6: u64 = udp6
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or(0);
        Self {
            udp: column(&four, "Udp: ", "InCsumErrors") + udp6,
            tcp: column(&four, "Tcp: ", "InCsumErrors"),
        }
    }
}

/// A counter of a file with rows of names and, below each, a row of values (net/ipv4/proc.c, `snmp_seq_show`).
pub(super) fn column(text: &str, protocol: &str, name: &str) -> u64 {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(protocol));
    let names = rows.next().unwrap_or_default().split(' ');
    let values = rows.next().unwrap_or_default().split(' ');
    let mut both = names.zip(values);
    both.find(|(other, _)| *other == name)
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "Udp: InDatagrams NoPorts InCsumErrors\nUdp: 5 6 7\nTcp: InErrs InCsumErrors\nTcp: 1 2\n";
        assert_eq!(column(text, "Udp: ", "InCsumErrors"), 7);
        assert_eq!(column(text, "Tcp: ", "InCsumErrors"), 2);
        assert_eq!(column(text, "Tcp: ", "None"), 0);
    }
}
