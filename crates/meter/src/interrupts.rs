//! /proc/interrupts: interrupts of each core, which wake the core where it is idle.

use std::collections::BTreeMap;

use wirecost_model::usage::Wakeups;

use crate::error::ParseError;

pub(crate) const PATH: &str = "/proc/interrupts";

/// Class of interrupts that a row of the file counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Timer,
    FunctionCall,
    Reschedule,
    Device,
}

/// Sum of the interrupts of the cores `cpus` since boot. Context switches are not in this file and are left at 0.
///
/// The first line names the columns' cores; rows have a label, a count for each core and a description
/// (kernel/irq/proc.c, `show_interrupts`; arch/x86/kernel/irq.c and arch/arm64/kernel/smp.c, `arch_show_interrupts`).
/// Rows with fewer counts are of the machine, not of a core, and are skipped.
pub(crate) fn parse(text: &str, cpus: &[u32]) -> Result<Wakeups, ParseError> {
    let mut lines = text.lines().enumerate();
    let (_, heading) = lines.next().unwrap_or_default();
    let columns = heading
        .split_ascii_whitespace()
        .map(|name| name.strip_prefix("CPU")?.parse().ok())
        .collect::<Option<Vec<u32>>>()
        .filter(|columns| !columns.is_empty())
        .ok_or_else(|| ParseError::new(1, "a heading of `CPUn` columns", heading))?;
    let mut sums: BTreeMap<u8, u64> = BTreeMap::new();
    for (index, line) in lines {
        let Some((label, rest)) = line.split_once(':') else {
            return Err(ParseError::new(index + 1, "a label and `:`", line));
        };
        let mut fields = rest.split_ascii_whitespace();
        let counts: Vec<u64> = fields
            .by_ref()
            .take(columns.len())
            .map_while(|field| field.parse().ok())
            .collect();
        let description = fields.collect::<Vec<_>>().join(" ");
        let Some(kind) = kind(label.trim(), &description) else {
            continue;
        };
        if counts.len() == columns.len() {
            let ours = columns
                .iter()
                .zip(&counts)
                .filter(|(cpu, _)| cpus.contains(cpu));
            *sums.entry(kind as u8).or_default() += ours.map(|(_, count)| count).sum::<u64>();
        }
    }
    let of = |kind: Kind| sums.get(&(kind as u8)).copied().unwrap_or_default();
    Ok(Wakeups {
        timer: of(Kind::Timer),
        function_call: of(Kind::FunctionCall),
        reschedule: of(Kind::Reschedule),
        device: of(Kind::Device),
        context_switches: 0,
    })
}

/// Class of a row. `None` for interrupts that do not wake a core for work: spurious, performance counters, TLB
/// shootdowns.
fn kind(label: &str, description: &str) -> Option<Kind> {
    match label {
        // Local APIC timer; Hyper-V's synthetic timer.
        "LOC" | "HVS" => return Some(Kind::Timer),
        "CAL" => return Some(Kind::FunctionCall),
        "RES" => return Some(Kind::Reschedule),
        // Hypervisor callback, by which Xen and Hyper-V deliver interrupts of devices.
        "HYP" => return Some(Kind::Device),
        _ => {}
    }
    if label.starts_with("IPI") {
        // Architectures other than x86 number these rows; the description tells the class.
        return match description {
            "Rescheduling interrupts" => Some(Kind::Reschedule),
            "Function call interrupts" => Some(Kind::FunctionCall),
            "Timer broadcast interrupts" => Some(Kind::Timer),
            _ => None,
        };
    }
    label.parse::<u32>().ok()?;
    let timer = ["arch_timer", "riscv-timer"]
        .iter()
        .any(|name| description.contains(name));
    Some(if timer { Kind::Timer } else { Kind::Device })
}

/// Gain of each counter from `before` to `after`. A counter of one core and row is 32 bits wide: where a wrap makes the
/// sum smaller, the gain is 0.
pub(crate) fn gained(before: &Wakeups, after: &Wakeups) -> Wakeups {
    let gain = |field: fn(&Wakeups) -> u64| field(after).saturating_sub(field(before));
    Wakeups {
        timer: gain(|w| w.timer),
        function_call: gain(|w| w.function_call),
        reschedule: gain(|w| w.reschedule),
        device: gain(|w| w.device),
        context_switches: gain(|w| w.context_switches),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_recorded_file_reads_by_kind_for_the_cores_asked_for() {
        let text = include_str!("../fixtures/interrupts-6.18");
        let first = Wakeups {
            timer: 206_088,
            function_call: 243_716,
            reschedule: 78_953,
            device: 8_559,
            context_switches: 0,
        };
        assert_eq!(parse(text, &[0]).expect("recorded"), first);
        let [zero, one, both] =
            [&[0][..], &[1], &[0, 1]].map(|cpus| parse(text, cpus).expect("recorded"));
        assert_eq!(zero.interrupts() + one.interrupts(), both.interrupts());
        assert_eq!(parse(text, &[7]).expect("another"), Wakeups::default());
    }

    #[test]
    fn arm_numbers_its_interprocessor_interrupts() {
        let text = include_str!("../fixtures/interrupts-arm64-6.1");
        let found = parse(text, &[0, 1]).expect("arm64");
        assert_eq!(found.timer, 81_244 + 79_120);
        assert_eq!(found.reschedule, 1_204 + 1_311);
        assert_eq!(found.function_call, 5_120 + 4_877);
        assert_eq!(found.device, 3_301 + 15);
    }

    #[test]
    fn a_file_without_a_heading_is_named() {
        let error = parse("LOC: 1 2\n", &[0]).expect_err("none");
        insta::assert_snapshot!(error, @"line 1: expected a heading of `CPUn` columns, found `LOC: 1 2`");
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "( CPU[0-9]{1,3}){0,3}\n([A-Z0-9]{1,4}:( [0-9a-z]{1,21}){0,5}\n){0,5}\\PC{0,40}") {
            let _ = parse(&text, &[0, 1]);
        }
    }
}
