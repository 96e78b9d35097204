//! /proc/stat: time of each core by class.

use std::collections::BTreeMap;

use wirecost_model::usage::{ClassShares, CoreUsage};

use crate::error::{MeterError, ParseError, counter};
use crate::file::ProcFile;
use crate::idle::IdleTime;

/// `USER_HZ`, the unit of every tick that /proc shows: fixed at 100 by the kernel's ABI whatever
/// its own rate (include/asm-generic/param.h; alpha alone differs).
pub const TICKS_PER_SECOND: u32 = 100;

/// Length of one tick in seconds.
pub(crate) const STEP_S: f64 = 1.0 / TICKS_PER_SECOND as f64;

pub(crate) const PATH: &str = "/proc/stat";

/// Times of one core since boot, in ticks of 10 ms. Guest time is left out: user and nice contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CoreTicks {
    user: u64,
    nice: u64,
    system: u64,
    idle: u64,
    iowait: u64,
    irq: u64,
    softirq: u64,
    steal: u64,
}

/// Numbers of the online cores, ascending.
///
/// # Errors
/// /proc/stat cannot be read, or is not in its format.
pub fn online_cpus() -> Result<Vec<u32>, MeterError> {
    Ok(ProcFile::open(PATH)?.read(parse)?.into_keys().collect())
}

/// Reads the `cpuN` lines, which come first (fs/proc/stat.c, `show_stat`). Kernels before 2.6.11 have no steal column;
/// steal is 0 there.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<u32, CoreTicks>, ParseError> {
    let mut cores = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let Some(rest) = line.strip_prefix("cpu") else {
            break;
        };
        if rest.starts_with(' ') {
            continue;
        }
        let number = index + 1;
        let mut fields = rest.split_ascii_whitespace();
        let cpu = fields
            .next()
            .and_then(|field| field.parse().ok())
            .ok_or_else(|| ParseError::new(number, "`cpu` and a core's number", line))?;
        let mut next = |expected| counter(number, fields.next(), expected);
        let mut ticks = CoreTicks {
            user: next("user ticks in column 1")?,
            nice: next("nice ticks in column 2")?,
            system: next("system ticks in column 3")?,
            idle: next("idle ticks in column 4")?,
            iowait: next("iowait ticks in column 5")?,
            irq: next("irq ticks in column 6")?,
            softirq: next("softirq ticks in column 7")?,
            steal: 0,
        };
        if let Some(steal) = fields.next() {
            ticks.steal = counter(number, Some(steal), "steal ticks in column 8")?;
        }
        cores.insert(cpu, ticks);
    }
    if cores.is_empty() {
        let first = text.lines().next().unwrap_or("");
        return Err(ParseError::new(1, "`cpuN` lines at the top", first));
    }
    Ok(cores)
}

/// As [`parse`], with the context switches of the machine since boot: a kernel without CONFIG_SCHEDSTATS does not count
/// them per core.
pub(crate) fn parse_with_switches(
    text: &str,
) -> Result<(BTreeMap<u32, CoreTicks>, u64), ParseError> {
    let cores = parse(text)?;
    let (index, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.starts_with("ctxt "))
        .ok_or_else(|| ParseError::new(text.lines().count() + 1, "a line `ctxt`", ""))?;
    let switches = line.split_ascii_whitespace().nth(1);
    Ok((cores, counter(index + 1, switches, "context switches")?))
}

/// Usage of core `cpu` between two readings `window_s` seconds apart.
pub(crate) fn usage(cpu: u32, before: CoreTicks, after: CoreTicks, window_s: f64) -> CoreUsage {
    // A counter may decrease: iowait when a task wakes on another core, the others when a core was offline.
    let gained = |field: fn(&CoreTicks) -> u64| {
        field(&after).saturating_sub(field(&before)) as f64 / f64::from(TICKS_PER_SECOND)
    };
    let (idle_s, iowait_s, steal_s) = (
        gained(|ticks| ticks.idle),
        gained(|ticks| ticks.iowait),
        gained(|ticks| ticks.steal),
    );
    let user = gained(|ticks| ticks.user) + gained(|ticks| ticks.nice);
    let system = gained(|ticks| ticks.system);
    let softirq = gained(|ticks| ticks.softirq);
    let irq = gained(|ticks| ticks.irq);
    let classified = user + system + softirq + irq;
    let share = |class: f64| {
        if classified > 0.0 {
            class / classified
        } else {
            0.0
        }
    };
    CoreUsage {
        cpu,
        busy_s: (window_s - idle_s - iowait_s - steal_s).max(0.0),
        idle_s,
        iowait_s,
        steal_s,
        shares: ClassShares {
            user: share(user),
            system: share(system),
            softirq: share(softirq),
            irq: share(irq),
        },
    }
}

/// The usage `coarse` with idle and iowait replaced by their nanosecond times. Steal keeps its steps of 10 ms.
pub(crate) fn with_idle_times(
    coarse: &CoreUsage,
    before: IdleTime,
    after: IdleTime,
    window_s: f64,
) -> CoreUsage {
    let gained =
        |field: fn(&IdleTime) -> u64| field(&after).saturating_sub(field(&before)) as f64 / 1e9;
    let (idle_s, iowait_s) = (gained(|time| time.idle_ns), gained(|time| time.iowait_ns));
    CoreUsage {
        busy_s: (window_s - idle_s - iowait_s - coarse.steal_s).max(0.0),
        idle_s,
        iowait_s,
        cpu: coarse.cpu,
        steal_s: coarse.steal_s,
        shares: coarse.shares,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ticks(idle: u64, iowait: u64, user: u64, softirq: u64) -> CoreTicks {
        CoreTicks {
            user,
            idle,
            iowait,
            softirq,
            ..CoreTicks::default()
        }
    }

    #[test]
    fn the_recorded_file_reads_core_by_core() {
        let cores = parse(include_str!("../fixtures/stat-6.18")).expect("recorded");
        insta::assert_debug_snapshot!(cores, @r"
        {
            0: CoreTicks {
                user: 7031,
                nice: 0,
                system: 8019,
                idle: 224835,
                iowait: 134,
                irq: 0,
                softirq: 12245,
                steal: 5,
            },
            1: CoreTicks {
                user: 9134,
                nice: 0,
                system: 7000,
                idle: 227465,
                iowait: 785,
                irq: 0,
                softirq: 5546,
                steal: 18,
            },
        }
        ");
    }

    #[test]
    fn context_switches_are_found_behind_the_cores() {
        let (_, switches) =
            parse_with_switches(include_str!("../fixtures/stat-6.18")).expect("recorded");
        assert!(switches > 0);
        let error = parse_with_switches("cpu0 1 2 3 4 5 6 7\n").expect_err("none");
        insta::assert_snapshot!(error, @"line 2: expected a line `ctxt`, found nothing");
    }

    #[test]
    fn idle_time_in_nanoseconds_takes_the_place_of_ticks() {
        let coarse = usage(3, ticks(100, 10, 0, 0), ticks(150, 15, 3, 9), 1.0);
        let before = IdleTime {
            idle_ns: 1_000_000_000,
            iowait_ns: 0,
        };
        let after = IdleTime {
            idle_ns: 1_512_345_678,
            iowait_ns: 50_000,
        };
        let core = with_idle_times(&coarse, before, after, 1.0);
        assert!((core.busy_s - 0.487_604_322).abs() < 1e-9, "{core:?}");
        assert_eq!(core.shares, coarse.shares);
    }

    #[test]
    fn a_kernel_without_steal_shows_none() {
        let cores = parse(include_str!("../fixtures/stat-2.6.10")).expect("old");
        assert_eq!(cores.len(), 2);
        assert_eq!(cores[&0].steal, 0);
        assert_eq!(cores[&0].softirq, 50);
    }

    #[test]
    fn busy_is_what_is_neither_idle_nor_waiting_nor_stolen() {
        let core = usage(3, ticks(100, 10, 0, 0), ticks(150, 15, 3, 9), 1.0);
        assert!((core.busy_s - 0.45).abs() < 1e-9, "{core:?}");
        assert!((core.shares.user - 0.25).abs() < 1e-9, "{core:?}");
        assert!((core.shares.softirq - 0.75).abs() < 1e-9, "{core:?}");
    }

    #[test]
    fn iowait_that_steps_back_counts_as_none() {
        let core = usage(0, ticks(0, 50, 0, 0), ticks(20, 40, 0, 0), 1.0);
        assert!(core.iowait_s.abs() < 1e-9 && (core.busy_s - 0.8).abs() < 1e-9);
    }

    #[test]
    fn a_core_without_classified_ticks_has_no_shares() {
        let core = usage(0, ticks(0, 0, 5, 5), ticks(100, 0, 5, 5), 1.0);
        assert_eq!(core.shares, ClassShares::default());
    }

    #[test]
    fn a_line_cut_short_is_named_with_what_is_missing() {
        let error = parse("cpu  1 2 3 4 5 6 7\ncpu0 1 2 3\n").expect_err("short");
        insta::assert_snapshot!(error, @"line 2: expected idle ticks in column 4, found nothing");
        let error = parse("intr 1 2 3\n").expect_err("no cores");
        insta::assert_snapshot!(error, @"line 1: expected `cpuN` lines at the top, found `intr 1 2 3`");
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "(cpu[0-9]{0,3}( [0-9a-z-]{1,22}){0,12}\n){0,4}\\PC{0,40}") {
            let _ = parse(&text);
        }

        #[test]
        fn busy_time_is_never_negative(
            before: (u32, u32, u32, u32),
            after: (u32, u32, u32, u32),
            window in 0.0..100.0,
        ) {
            let of = |t: (u32, u32, u32, u32)| ticks(t.0.into(), t.1.into(), t.2.into(), t.3.into());
            let core = usage(0, of(before), of(after), window);
            prop_assert!(core.busy_s >= 0.0 && core.busy_s <= window);
            let sum = core.shares.user + core.shares.softirq;
            prop_assert!(sum == 0.0 || (sum - 1.0).abs() < 1e-9);
        }
    }
}
