//! /proc/net/snmp and snmp6: TCP, UDP and ICMP counters of a network namespace.

use wirecost_model::usage::ProtocolDelta;

use crate::error::{ParseError, counter};

/// Reads the IPv4 file (net/ipv4/proc.c, `snmp_seq_show`): pairs of lines, names then values, each line beginning with
/// the protocol. TCP's counters cover IPv6 too.
pub(crate) fn parse(text: &str) -> Result<ProtocolDelta, ParseError> {
    Ok(ProtocolDelta {
        tcp_in: column(text, "Tcp:", "InSegs", "the counter `Tcp: InSegs`")?,
        tcp_out: column(text, "Tcp:", "OutSegs", "the counter `Tcp: OutSegs`")?,
        tcp_retransmitted: column(
            text,
            "Tcp:",
            "RetransSegs",
            "the counter `Tcp: RetransSegs`",
        )?,
        udp_in: column(
            text,
            "Udp:",
            "InDatagrams",
            "the counter `Udp: InDatagrams`",
        )?,
        udp_out: column(
            text,
            "Udp:",
            "OutDatagrams",
            "the counter `Udp: OutDatagrams`",
        )?,
        icmp_out: column(text, "Icmp:", "OutMsgs", "the counter `Icmp: OutMsgs`")?,
    })
}

fn column(
    text: &str,
    protocol: &str,
    name: &str,
    expected: &'static str,
) -> Result<u64, ParseError> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| Some((index + 1, line.strip_prefix(protocol)?)));
    let missing = || ParseError::new(text.lines().count().max(1), expected, "");
    let (number, names) = lines.next().ok_or_else(missing)?;
    let position = names
        .split_ascii_whitespace()
        .position(|other| other == name)
        .ok_or_else(|| ParseError::new(number, expected, names.trim()))?;
    let (number, values) = lines.next().ok_or_else(missing)?;
    let value = values.split_ascii_whitespace().nth(position);
    counter(number, value, expected)
}

/// Adds the counters of the IPv6 file (net/ipv6/proc.c): one name and value a line. A missing counter counts as 0.
pub(crate) fn add_v6(text: &str, mut counters: ProtocolDelta) -> Result<ProtocolDelta, ParseError> {
    for (index, line) in text.lines().enumerate() {
        let mut fields = line.split_ascii_whitespace();
        let (sum, expected) = match fields.next() {
            Some("Icmp6OutMsgs") => (&mut counters.icmp_out, "a count of ICMPv6 messages"),
            Some("Udp6InDatagrams") => (&mut counters.udp_in, "a count of UDP datagrams"),
            Some("Udp6OutDatagrams") => (&mut counters.udp_out, "a count of UDP datagrams"),
            _ => continue,
        };
        *sum = sum.saturating_add(counter(index + 1, fields.next(), expected)?);
    }
    Ok(counters)
}

/// Sum of the counters of two namespaces.
pub(crate) fn sum(one: &ProtocolDelta, other: &ProtocolDelta) -> ProtocolDelta {
    ProtocolDelta {
        tcp_in: one.tcp_in.saturating_add(other.tcp_in),
        tcp_out: one.tcp_out.saturating_add(other.tcp_out),
        tcp_retransmitted: one
            .tcp_retransmitted
            .saturating_add(other.tcp_retransmitted),
        udp_in: one.udp_in.saturating_add(other.udp_in),
        udp_out: one.udp_out.saturating_add(other.udp_out),
        icmp_out: one.icmp_out.saturating_add(other.icmp_out),
    }
}

/// Gain of each counter from `before` to `after`; 0 for one that decreased.
pub(crate) fn gained(before: &ProtocolDelta, after: &ProtocolDelta) -> ProtocolDelta {
    ProtocolDelta {
        tcp_in: after.tcp_in.saturating_sub(before.tcp_in),
        tcp_out: after.tcp_out.saturating_sub(before.tcp_out),
        tcp_retransmitted: after
            .tcp_retransmitted
            .saturating_sub(before.tcp_retransmitted),
        udp_in: after.udp_in.saturating_sub(before.udp_in),
        udp_out: after.udp_out.saturating_sub(before.udp_out),
        icmp_out: after.icmp_out.saturating_sub(before.icmp_out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OLD: &str = "Icmp: InMsgs OutMsgs\nIcmp: 4 5\n\
        Tcp: RtoMin MaxConn InSegs OutSegs RetransSegs\nTcp: 200 -1 10 20 3\n\
        Udp: InDatagrams OutDatagrams\nUdp: 6 7\n";

    #[test]
    fn the_recorded_files_add_up() {
        let counters = parse(include_str!("../fixtures/snmp-6.18")).expect("snmp");
        let counters = add_v6(include_str!("../fixtures/snmp6-6.18"), counters).expect("snmp6");
        insta::assert_debug_snapshot!(counters, @r"
        ProtocolDelta {
            tcp_in: 6809,
            tcp_out: 4834,
            tcp_retransmitted: 0,
            udp_in: 109,
            udp_out: 110,
            icmp_out: 9,
        }
        ");
    }

    #[test]
    fn columns_are_found_by_name_wherever_a_kernel_puts_them() {
        let counters = parse(OLD).expect("old");
        assert_eq!((counters.tcp_in, counters.tcp_out), (10, 20));
        assert_eq!((counters.udp_in, counters.udp_out), (6, 7));
        assert_eq!(counters.icmp_out, 5);
    }

    #[test]
    fn without_ipv6_nothing_is_added() {
        let counters = parse(OLD).expect("old");
        assert_eq!(add_v6("", counters), Ok(counters));
    }

    #[test]
    fn two_namespaces_count_what_both_did() {
        let one = parse(OLD).expect("old");
        let both = sum(&one, &one);
        assert_eq!((both.tcp_in, both.tcp_retransmitted), (20, 6));
        assert_eq!(gained(&one, &both), one);
    }

    #[test]
    fn a_missing_counter_is_named() {
        let error = parse(&OLD.replace("RetransSegs", "Other")).expect_err("missing");
        insta::assert_snapshot!(error, @"line 3: expected the counter `Tcp: RetransSegs`, found `RtoMin MaxConn InSegs OutSegs Other`");
        let error = parse("").expect_err("empty");
        insta::assert_snapshot!(error, @"line 1: expected the counter `Tcp: InSegs`, found nothing");
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "((Tcp|Udp|Icmp):( (InSegs|OutSegs|RetransSegs|OutMsgs|[0-9-]{1,22})){0,9}\n){0,8}\\PC{0,40}") {
            let _ = parse(&text);
            let _ = add_v6(&text.replace("Tcp: ", "Icmp6OutMsgs "), ProtocolDelta::default());
        }
    }
}
