//! Idle time of each core in nanoseconds, from /proc/timer_list, which only root may read.
//!
//! The kernel keeps in nanoseconds (kernel/time/tick-sched.c, `idle_sleeptime` and `iowait_sleeptime`) what /proc/stat
//! shows in steps of 10 ms; /proc/timer_list prints the nanoseconds (kernel/time/timer_list.c, `print_cpu`). A core
//! adds its idle time when it stops being idle, so the time of a core that is idle now is missing: each core is
//! interrupted just before the file is read. cpuidle's times are not used: they are measured around the halt, and on
//! processors that halt with interrupts enabled (`hlt`) the work of the interrupt that ends the halt, softirq included,
//! counts as idle.

use std::collections::BTreeMap;
use std::time::Instant;

use wirecost_sys::core_interrupt::CoreInterrupt;

use crate::error::{MeterError, ParseError};
use crate::file::ProcFile;

const PATH: &str = "/proc/timer_list";

/// Idle time of one core since boot, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IdleTime {
    pub(crate) idle_ns: u64,
    /// Time idle with I/O outstanding.
    pub(crate) iowait_ns: u64,
}

/// Idle times by core number.
pub(crate) type Cores = BTreeMap<u32, IdleTime>;

/// Reads the idle times of some cores.
#[derive(Debug)]
pub(crate) struct IdleTimes {
    file: ProcFile,
    nudges: BTreeMap<u32, CoreInterrupt>,
}

impl IdleTimes {
    /// `None` where the kernel does not print these times, or this process may not read the file or interrupt the
    /// cores.
    pub(crate) fn open(cpus: &[u32]) -> Option<Self> {
        let core_interrupt = |&cpu: &u32| Some((cpu, CoreInterrupt::of_core(cpu).ok()?));
        let mut times = Self {
            file: ProcFile::open(PATH).ok()?,
            nudges: cpus.iter().map(core_interrupt).collect::<Option<_>>()?,
        };
        times.read().ok().flatten().map(|_| times)
    }

    /// The cores' idle times and the moment they are of; `None` where the file lacks one of the cores.
    pub(crate) fn read(&mut self) -> Result<Option<(Instant, Cores)>, MeterError> {
        let begin = Instant::now();
        for core_interrupt in self.nudges.values_mut() {
            core_interrupt.now().map_err(|cause| MeterError::Read {
                path: PATH.into(),
                cause,
            })?;
        }
        let at = begin + begin.elapsed() / 2;
        let mut all = self.file.read(parse)?;
        all.retain(|cpu, _| self.nudges.contains_key(cpu));
        Ok((all.len() == self.nudges.len()).then_some((at, all)))
    }
}

/// Idle times by core. A core that never stops its tick (`nohz=off`) is left out: its times stand still.
fn parse(text: &str) -> Result<BTreeMap<u32, IdleTime>, ParseError> {
    let mut cores = BTreeMap::new();
    let mut cpu = None;
    let (mut idle_ns, mut stopping) = (None, false);
    for (index, line) in text.lines().enumerate() {
        if let Some(number) = line.strip_prefix("cpu: ") {
            let number = number.trim().parse();
            cpu = Some(number.map_err(|_| ParseError::new(index + 1, "a core's number", line))?);
            (idle_ns, stopping) = (None, false);
            continue;
        }
        let Some((name, value)) = line
            .strip_prefix("  .")
            .and_then(|rest| rest.split_once(':'))
        else {
            continue;
        };
        let nanoseconds = || {
            let value = value.trim().trim_end_matches("nsecs").trim_end();
            value
                .parse::<u64>()
                .map_err(|_| ParseError::new(index + 1, "nanoseconds", value))
        };
        match name.trim_end() {
            // Named `nohz` since Linux 6.9, `nohz_mode` before.
            "nohz" | "nohz_mode" => stopping = value.trim() != "0",
            "idle_sleeptime" => idle_ns = Some(nanoseconds()?),
            "iowait_sleeptime" => {
                if let (Some(cpu), Some(idle_ns), true) = (cpu, idle_ns, stopping) {
                    let iowait_ns = nanoseconds()?;
                    cores.insert(cpu, IdleTime { idle_ns, iowait_ns });
                }
            }
            _ => {}
        }
    }
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::stat;

    #[test]
    fn the_recorded_file_reads_core_by_core() {
        let cores = parse(include_str!("../fixtures/timer_list-6.18")).expect("recorded");
        assert_eq!(cores.len(), 2);
        let times = |cpu: u32| (cores[&cpu].idle_ns, cores[&cpu].iowait_ns);
        assert_eq!(times(0), (417_019_504_973, 10_510_032_790));
        assert_eq!(times(1), (370_275_509_859, 21_210_838_098));
    }

    #[test]
    fn an_older_kernel_names_its_mode_and_one_that_ticks_always_has_none() {
        let text = include_str!("../fixtures/timer_list-5.10");
        let cores = parse(text).expect("older");
        assert_eq!(cores[&0].idle_ns, 15_230_951_337);
        assert_eq!(cores[&0].iowait_ns, 201_339_007);
        let ticking = text.replace(".nohz_mode      : 2", ".nohz_mode      : 0");
        assert!(parse(&ticking).expect("ticking").is_empty());
    }

    #[test]
    fn idle_time_is_that_of_proc_stat_but_finer() {
        let cpus = stat::online_cpus().expect("cores");
        let Some(mut times) = IdleTimes::open(&cpus) else {
            wirecost_skips::skip(format!(
                "{PATH} cannot be read, or cores not be interrupted"
            ));
            return;
        };
        let mut stat = ProcFile::open(stat::PATH).expect("stat");
        let mut both = || {
            let fine = times.read().expect("read").expect("every core").1;
            (fine, stat.read(stat::parse).expect("stat"))
        };
        // The two files are not read at the same moment, and a test may be kept waiting between: as often as it takes.
        let agrees = |_| {
            let began = both();
            sleep(Duration::from_millis(200));
            let ended = both();
            cpus.iter().all(|cpu| {
                let fine = ended.0[cpu].idle_ns - began.0[cpu].idle_ns;
                let coarse = stat::usage(*cpu, began.1[cpu], ended.1[cpu], 0.2).idle_s;
                (fine as f64 / 1e9 - coarse).abs() < 0.02
            })
        };
        assert!((0..50).any(agrees), "idle time differs from /proc/stat's");
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "((cpu: |  \\.(nohz|idle_sleeptime|iowait_sleeptime)) ?:? ?[0-9a-z]{0,20}( nsecs)?\n){0,9}\\PC{0,40}") {
            let _ = parse(&text);
        }
    }
}
