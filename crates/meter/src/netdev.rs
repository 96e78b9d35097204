//! /proc/net/dev: packets, bytes and drops of a network namespace's devices.

use std::collections::BTreeMap;

use wirecost_model::usage::LinkDelta;

use crate::error::{ParseError, counter};

/// Reads the counters of every device but loopback, each since its device was created (net/core/net-procfs.c,
/// `dev_seq_printf_stats`). Two header lines, then `name:` and 16 columns.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, LinkDelta>, ParseError> {
    let mut links = BTreeMap::new();
    for (index, line) in text.lines().enumerate().skip(2) {
        let number = index + 1;
        // Split at the last colon: old kernels allowed a colon in an alias, and a wide counter may follow the colon
        // directly.
        let (name, counters) = line
            .rsplit_once(':')
            .ok_or_else(|| ParseError::new(number, "a device's name and a colon", line))?;
        let name = name.trim();
        if name == "lo" {
            continue;
        }
        let columns: Vec<&str> = counters.split_ascii_whitespace().collect();
        let at = |column: usize, expected| counter(number, columns.get(column).copied(), expected);
        links.insert(
            name.to_owned(),
            LinkDelta {
                rx_bytes: at(0, "received bytes in column 0")?,
                rx_packets: at(1, "received packets in column 1")?,
                rx_dropped: at(3, "receive drops in column 3")?,
                tx_bytes: at(8, "sent bytes in column 8")?,
                tx_packets: at(9, "sent packets in column 9")?,
                tx_dropped: at(11, "send drops in column 11")?,
            },
        );
    }
    Ok(links)
}

/// Adds the devices of another namespace to `all`; devices of the same name are summed.
pub(crate) fn add(all: &mut BTreeMap<String, LinkDelta>, more: BTreeMap<String, LinkDelta>) {
    for (name, more) in more {
        let sum = all.entry(name).or_default();
        *sum = LinkDelta {
            rx_packets: sum.rx_packets.saturating_add(more.rx_packets),
            tx_packets: sum.tx_packets.saturating_add(more.tx_packets),
            rx_bytes: sum.rx_bytes.saturating_add(more.rx_bytes),
            tx_bytes: sum.tx_bytes.saturating_add(more.tx_bytes),
            rx_dropped: sum.rx_dropped.saturating_add(more.rx_dropped),
            tx_dropped: sum.tx_dropped.saturating_add(more.tx_dropped),
        };
    }
}

/// Gains of the devices in `after`; a device that is not in `before` started at 0.
pub(crate) fn gained<'a>(
    before: &'a BTreeMap<String, LinkDelta>,
    after: &'a BTreeMap<String, LinkDelta>,
) -> impl Iterator<Item = (&'a str, LinkDelta)> {
    after.iter().map(|(name, after)| {
        let before = before.get(name).copied().unwrap_or_default();
        let gain = LinkDelta {
            rx_packets: after.rx_packets.saturating_sub(before.rx_packets),
            tx_packets: after.tx_packets.saturating_sub(before.tx_packets),
            rx_bytes: after.rx_bytes.saturating_sub(before.rx_bytes),
            tx_bytes: after.tx_bytes.saturating_sub(before.tx_bytes),
            rx_dropped: after.rx_dropped.saturating_sub(before.rx_dropped),
            tx_dropped: after.tx_dropped.saturating_sub(before.tx_dropped),
        };
        (name.as_str(), gain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "Inter-| Receive | Transmit\n face |bytes packets\n";

    #[test]
    fn the_recorded_file_reads_without_loopback() {
        let links = parse(include_str!("../fixtures/dev-6.18")).expect("recorded");
        insta::assert_debug_snapshot!(links, @r#"
        {
            "eth0": LinkDelta {
                rx_packets: 6903,
                tx_packets: 4900,
                rx_bytes: 161191210,
                tx_bytes: 478963,
                rx_dropped: 0,
                tx_dropped: 0,
            },
            "ifb0": LinkDelta {
                rx_packets: 0,
                tx_packets: 0,
                rx_bytes: 0,
                tx_bytes: 0,
                rx_dropped: 0,
                tx_dropped: 0,
            },
            "ifb1": LinkDelta {
                rx_packets: 0,
                tx_packets: 0,
                rx_bytes: 0,
                tx_bytes: 0,
                rx_dropped: 0,
                tx_dropped: 0,
            },
        }
        "#);
    }

    #[test]
    fn a_wide_counter_may_touch_the_name() {
        let text = format!("{HEADER}eth0:123 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18\n");
        let links = parse(&text).expect("touching");
        assert_eq!(links["eth0"].rx_bytes, 123);
        assert_eq!(links["eth0"].rx_dropped, 6);
        assert_eq!(links["eth0"].tx_dropped, 14);
    }

    #[test]
    fn a_device_that_came_during_the_window_began_at_zero() {
        let link = LinkDelta {
            rx_packets: 7,
            ..LinkDelta::default()
        };
        let after = BTreeMap::from([("veth".to_owned(), link)]);
        let none = BTreeMap::new();
        assert_eq!(gained(&none, &after).collect::<Vec<_>>(), [("veth", link)]);
        assert_eq!(gained(&after, &none).count(), 0);
    }

    #[test]
    fn a_line_without_its_columns_is_named() {
        let error = parse(&format!("{HEADER}  eth0: 1 2 3\n")).expect_err("short");
        insta::assert_snapshot!(error, @"line 3: expected receive drops in column 3, found nothing");
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "(\\PC{0,20}\n){0,2}([a-z:]{0,9}:( [0-9]{1,22}){0,17}\n){0,4}\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
