//! What stands in a table, whatever draws it.

use wirecost_bench::cpu::Cpu;
use wirecost_bench::figures::{interval, short};
use wirecost_stats::PairedRatio;

use crate::comparison::{Comparison, Figures, Latency};
use crate::peer::BARE;
use crate::report::{Outcome, OutcomeKind, RowResult};

/// One opponent's line.
pub(super) enum Line {
    Figures(Box<Cells>),
    Words {
        opponent: &'static str,
        words: String,
    },
}

pub(super) struct Cells {
    pub(super) opponent: &'static str,
    pub(super) figure: Cell,
    pub(super) sender: Cell,
    pub(super) receiver: Cell,
    pub(super) verdict: String,
}

/// A ratio with its interval, and the medians behind it.
pub(super) struct Cell {
    pub(super) ratio: String,
    pub(super) medians: String,
}

pub(super) fn lines(row: &RowResult) -> Vec<Line> {
    row.outcomes
        .iter()
        .flat_map(|outcome| {
            [
                Some(line(row, outcome)),
                out_of_reach(row, outcome),
                latencies(outcome),
                breaks(outcome),
            ]
        })
        .flatten()
        .collect()
}

/// That a bound which is missed is beyond what system calls alone come to beside the same opponent.
fn out_of_reach(row: &RowResult, outcome: &Outcome) -> Option<Line> {
    let OutcomeKind::Compared(comparison) = &outcome.what else {
        return None;
    };
    let bare = row
        .outcomes
        .iter()
        .find_map(|outcome| match &outcome.what {
            OutcomeKind::Compared(bare) if outcome.opponent == BARE => Some(bare),
            _ => None,
        })?;
    let least = comparison.least?;
    let missed = comparison.judgement.reached == Some(false);
    let reach = comparison.figure.ratio? / bare.figure.ratio?;
    (missed && reach < least).then(|| Line::Words {
        opponent: outcome.opponent,
        words: format!(
            "{BARE}, system calls and nothing else, has {reach:.2} of it: {least} is out of reach here"
        ),
    })
}

/// Median and 99th percentile of latencies, where both tell them.
fn latencies(outcome: &Outcome) -> Option<Line> {
    let OutcomeKind::Compared(comparison) = &outcome.what else {
        return None;
    };
    let words = |name: &str, latency: &Latency| {
        let [ours, other] = latency.us.map(short);
        format!("{name} {}, {ours} / {other} us", interval(&latency.ratio))
    };
    let [median, p99] = comparison.latency.as_ref()?;
    Some(Line::Words {
        opponent: outcome.opponent,
        words: format!("{}; {}", words("p50", median), words("p99", p99)),
    })
}

/// How often it had to be started again.
fn breaks(outcome: &Outcome) -> Option<Line> {
    let last = outcome.broken.last()?;
    Some(Line::Words {
        opponent: outcome.opponent,
        words: format!(
            "broke {}x and was started again, last: {last}",
            outcome.broken.len()
        ),
    })
}

fn line(row: &RowResult, outcome: &Outcome) -> Line {
    let words = |words: String| Line::Words {
        opponent: outcome.opponent,
        words,
    };
    match &outcome.what {
        OutcomeKind::Compared(comparison) => {
            Line::Figures(Box::new(cells(row, outcome, comparison)))
        }
        OutcomeKind::Absent(why) => words(format!("absent: {why}")),
        OutcomeKind::Cannot(why) => words(format!("cannot: {why}")),
        OutcomeKind::Failed(why) => words(format!("FAILED: {why}")),
        OutcomeKind::Alone { sample, holds } => {
            let peak = sample.peak_bytes.unwrap_or(0) as f64 / f64::from(1 << 20);
            let verdict = if *holds { "" } else { " MISSED" };
            words(format!(
                "{:.2} {}, peak memory {peak:.1} MiB{verdict}",
                sample.figure, row.unit
            ))
        }
    }
}

fn cells(row: &RowResult, outcome: &Outcome, comparison: &Comparison) -> Cells {
    let medians = &comparison.medians;
    let cell = |ratio: &PairedRatio, of: fn(&Figures) -> f64, unit: &str| Cell {
        ratio: interval(ratio),
        medians: format!(
            "{} / {}{unit}",
            short(of(&medians.ours)),
            short(of(&medians.other))
        ),
    };
    Cells {
        opponent: outcome.opponent,
        figure: cell(
            &comparison.figure,
            |figures| figures.figure,
            &format!(" {}", abbreviated(row.unit)),
        ),
        sender: cell(
            &comparison.sender_cpu,
            |figures| figures.sender_cpu,
            " % snd",
        ),
        receiver: cell(
            &comparison.receiver_cpu,
            |figures| figures.receiver_cpu,
            " % rcv",
        ),
        verdict: verdict(comparison),
    }
}

fn abbreviated(unit: &str) -> &str {
    match unit {
        "k transactions/s" | "k datagrams/s" | "k I/O per s" => "k/s",
        unit => unit,
    }
}

/// In as few words as the table has room for.
pub(super) fn verdict(comparison: &Comparison) -> String {
    let judged = comparison.judgement;
    if !judged.holds() {
        let mut words = Vec::new();
        if judged.reached == Some(false) {
            words.push("LOW");
        }
        if judged.cpu.is_some_and(|cpu| cpu.contains(&Cpu::Higher)) {
            words.push("HIGHER");
        }
        return words.join(", ");
    }
    if judged.reached.is_none() {
        "shown".to_owned()
    } else if judged.cpu.is_some_and(|cpu| cpu == [Cpu::Goal; 2]) {
        "holds, goal".to_owned()
    } else {
        "holds".to_owned()
    }
}
