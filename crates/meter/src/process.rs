//! /proc/PID/stat, schedstat and status: the fields that foreign load is computed from.

use crate::error::{ParseError, counter};
use crate::stat::TICKS_PER_SECOND;

/// `PF_KTHREAD` of include/linux/sched.h.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Fields of /proc/PID/stat (fs/proc/array.c, `do_task_stat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) kernel_thread: bool,
    /// Number of the parent process; 0 for none, or one in another PID namespace.
    pub(crate) parent: u32,
    /// Start time in ticks since boot; with the process number it identifies the process.
    pub(crate) start: u64,
    /// CPU time of all threads, ended ones included, in nanoseconds (steps of 10 ms).
    pub(crate) own_ns: u64,
    /// CPU time of children that ended and were waited for, and of their waited-for children, in nanoseconds (steps of
    /// 10 ms).
    pub(crate) reaped_ns: u64,
}

/// Reads /proc/PID/stat. The command name in field 2 may contain anything, brackets and line ends included, so fields
/// are counted from the last closing bracket.
pub(crate) fn parse_stat(text: &str) -> Result<ProcessStat, ParseError> {
    let (_, rest) = text
        .rsplit_once(')')
        .ok_or_else(|| ParseError::new(1, "a process name in brackets", text))?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |number: usize, expected| counter(1, fields.get(number - 3).copied(), expected);
    // These fields are signed in the kernel's format; a negative value is read as 0.
    let ticks = |number: usize| field(number, "ticks").unwrap_or(0);
    Ok(ProcessStat {
        parent: field(4, "the parent in field 4").unwrap_or(0) as u32,
        kernel_thread: field(9, "the flags in field 9")? & KERNEL_THREAD != 0,
        start: field(22, "the start time in field 22")?,
        own_ns: nanoseconds(ticks(14), ticks(15)),
        reaped_ns: nanoseconds(ticks(16), ticks(17)),
    })
}

/// The command name in /proc/PID/stat, at most 15 bytes.
pub(crate) fn name(stat: &str) -> Option<&str> {
    let (front, _) = stat.rsplit_once(')')?;
    Some(front.split_once('(')?.1)
}

/// Number of a process in its own PID namespace, from `NSpid` in /proc/PID/status (fs/proc/array.c, `task_state`);
/// `None` where that namespace is the one of /proc.
pub(crate) fn inner_number(status: &str) -> Option<u32> {
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    let inner = numbers.split_ascii_whitespace().skip(1);
    inner.last()?.parse().ok()
}

fn nanoseconds(user_ticks: u64, system_ticks: u64) -> u64 {
    user_ticks
        .saturating_add(system_ticks)
        .saturating_mul(1_000_000_000 / u64::from(TICKS_PER_SECOND))
}

/// A task's run time (`sum_exec_runtime`, nanoseconds) and its number of time slices (fs/proc/base.c,
/// `proc_pid_schedstat`).
pub(crate) fn parse_schedstat(text: &str) -> Result<(u64, u64), ParseError> {
    let mut fields = text.split_ascii_whitespace();
    let run_ns = counter(1, fields.next(), "run time in nanoseconds")?;
    let times = counter(1, fields.nth(1), "a count of time slices in field 3")?;
    Ok((run_ns, times))
}

/// Time since boot from /proc/uptime, converted from seconds to ticks.
pub(crate) fn parse_uptime(text: &str) -> Result<u64, ParseError> {
    let field = text.split_ascii_whitespace().next().unwrap_or("");
    match field.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds.is_finite() => {
            Ok((seconds * f64::from(TICKS_PER_SECOND)).round() as u64)
        }
        _ => Err(ParseError::new(1, "seconds since boot", field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KTHREADD: &str = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 24 0 0 \
        18446744073709551615 0 0 0 0 0 0 0 2147483647 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn a_kernel_thread_is_known_by_its_flag() {
        let stat = parse_stat(KTHREADD).expect("recorded");
        assert!(stat.kernel_thread);
        assert_eq!(stat.start, 24);
    }

    #[test]
    fn a_name_may_hold_brackets_and_blanks() {
        let text = "7 (a) S 1 (b)) R 1 7 7 0 -1 4194304 100 0 0 0 1 2 30 12 20 0 1 0 193835 0 0";
        let stat = parse_stat(text).expect("odd name");
        assert!(!stat.kernel_thread);
        assert_eq!((stat.parent, stat.start), (1, 193_835));
        assert_eq!((stat.own_ns, stat.reaped_ns), (30_000_000, 420_000_000));
    }

    #[test]
    fn a_process_in_a_container_has_a_number_there() {
        let status = |numbers: &str| {
            inner_number(&format!(
                "Name:\twirecost\nPid:\t812\nNSpid:\t{numbers}\nThreads:\t3\n"
            ))
        };
        assert_eq!(status("812"), None);
        assert_eq!(status("812\t17"), Some(17));
        assert_eq!(status("812\t40\t1"), Some(1));
        // Before Linux 4.1.
        assert_eq!(inner_number("Name:\twirecost\nPid:\t812\n"), None);
        assert_eq!(name("7 (a) S 1 (b)) R 1 7"), Some("a) S 1 (b)"));
        assert_eq!(name("7 a R"), None);
    }

    #[test]
    fn run_time_and_uptime_read() {
        assert_eq!(
            parse_schedstat("172827244 20809834 420\n"),
            Ok((172_827_244, 420))
        );
        assert_eq!(parse_uptime("2173.15 3912.84\n"), Ok(217_315));
        assert!(parse_uptime("NaN 1").is_err());
    }

    #[test]
    fn a_missing_field_is_named() {
        let error = parse_stat("7 (a) R 1 7").expect_err("short");
        insta::assert_snapshot!(error, @"line 1: expected the flags in field 9, found nothing");
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "[0-9]{0,5}( \\([a-z)( ]{0,9}\\))?( [0-9R-]{1,22}){0,25}\\PC{0,20}") {
            let _ = parse_stat(&text);
            let _ = (name(&text), inner_number(&text));
            let _ = parse_schedstat(&text);
            let _ = parse_uptime(&text);
        }
    }
}
