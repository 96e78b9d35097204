//! /proc/net/softnet_stat: packets dropped at a core's backlog, and exhausted receive budgets (`time_squeeze`).

use std::collections::BTreeMap;

use crate::error::ParseError;

pub(crate) const PATH: &str = "/proc/net/softnet_stat";

/// Counters of one core since boot. The kernel's counters are 32 bits wide and wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Softnet {
    dropped: u32,
    squeezed: u32,
}

impl Softnet {
    /// Dropped packets and exhausted budgets since `before`; one wrap of a counter is corrected.
    pub(crate) fn since(self, before: Self) -> (u64, u64) {
        (
            self.dropped.wrapping_sub(before.dropped).into(),
            self.squeezed.wrapping_sub(before.squeezed).into(),
        )
    }
}

/// Reads the rows by core (net/core/net-procfs.c, `softnet_seq_show`): hexadecimal columns, counted from 0. Column 1 is
/// `dropped`, column 2 `time_squeeze` and, since Linux 5.10, column 12 the core's number. On older kernels the rows are
/// the `online` cores in order.
pub(crate) fn parse(text: &str, online: &[u32]) -> Result<BTreeMap<u32, Softnet>, ParseError> {
    let mut cores = BTreeMap::new();
    for (row, line) in text.lines().enumerate() {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let hex = |column: usize, expected| {
            let field = columns.get(column).copied().unwrap_or("");
            u32::from_str_radix(field, 16).map_err(|_| ParseError::new(row + 1, expected, field))
        };
        let cpu = if columns.len() > 12 {
            hex(12, "a core's number in hexadecimal in column 12 (from 0)")?
        } else {
            *online
                .get(row)
                .ok_or_else(|| ParseError::new(row + 1, "no more rows than online cores", line))?
        };
        let softnet = Softnet {
            dropped: hex(1, "dropped packets in hexadecimal in column 1 (from 0)")?,
            squeezed: hex(2, "exhausted budgets in hexadecimal in column 2 (from 0)")?,
        };
        cores.insert(cpu, softnet);
    }
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_name_their_core_on_newer_kernels() {
        let text = include_str!("../fixtures/softnet_stat-6.18");
        let cores = parse(text, &[]).expect("recorded");
        insta::assert_debug_snapshot!(cores, @r"
        {
            0: Softnet {
                dropped: 0,
                squeezed: 4,
            },
            1: Softnet {
                dropped: 1181,
                squeezed: 0,
            },
        }
        ");
    }

    #[test]
    fn rows_are_the_online_cores_in_order_on_older_kernels() {
        let cores = parse(include_str!("../fixtures/softnet_stat-3.10"), &[0, 2]).expect("old");
        assert_eq!(cores.keys().copied().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(cores[&0].dropped, 0x6283);
        assert_eq!(cores[&2].squeezed, 3);
    }

    #[test]
    fn a_counter_that_wrapped_still_gives_its_gain() {
        let at = |dropped| Softnet {
            dropped,
            squeezed: 0,
        };
        assert_eq!(at(2).since(at(u32::MAX)), (3, 0));
    }

    #[test]
    fn what_is_not_hexadecimal_is_named() {
        let error = parse("00000001 dropped 0\n", &[0]).expect_err("words");
        insta::assert_snapshot!(error, @"line 1: expected dropped packets in hexadecimal in column 1 (from 0), found `dropped`");
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "(([0-9a-fx]{1,9} ?){0,16}\n){0,4}\\PC{0,40}") {
            let _ = parse(&text, &[0, 1]);
        }
    }
}
