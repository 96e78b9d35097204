//! A report for people and for programs.

use std::fmt::Write as _;
use std::io;

use comfy_table::{Table, presets};
use wirecost_model::plan::Cores;
use wirecost_stats::PairedRatio;

use crate::comparison::{Comparison, Figures, THROUGHPUT_BOUND};
use crate::configuration::{CONGESTION, MESSAGE};
use crate::error::BenchError;
use crate::measure::Tool;
use crate::pairs::Report;

/// What has to be known before a ratio is believed.
const NOTES: &str = "\
Yardstick of both: bytes that the receiving guest's device counted over the same kind of window, headers
included. CPU: everything the host's cores did then, in percent of one core per Gbit/s of that yardstick.
Each tool's own figure is of payload: ours over the window, iperf3's over its whole test.
iperf3 spends CPU outside its stream too: its control connection, timers and reports. The built-in load
has only full segments leave (TCP_CORK) and keeps little unsent (TCP_NOTSENT_LOWAT); iperf3 has no such
options: each of its writes may end in a small segment. Buffers: the kernel's autotuning.
";

/// One JSON document, every sample included.
pub(crate) fn json(report: &Report) -> Result<String, BenchError> {
    serde_json::to_string_pretty(report)
        .map_err(|error| BenchError::machine("writing JSON")(io::Error::from(error)))
}

/// A table, one sentence for each configuration, and what has to be known.
pub(crate) fn text(report: &Report) -> String {
    let mut text = head(report);
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "ours / iperf3 [95 %]\nmedians: ours, iperf3",
        "pairs",
        "throughput\nGbit/s",
        "sender CPU\n% of a core per Gbit/s",
        "receiver CPU\n% of a core per Gbit/s",
        "own figures\nGbit/s",
    ]);
    for comparison in &report.comparisons {
        table.add_row(row(comparison));
    }
    // Writing to a string does not fail.
    let _ = writeln!(text, "{table}\n");
    for comparison in &report.comparisons {
        let _ = writeln!(text, "{}", sentence(comparison));
    }
    if report.cores == Cores::Shared {
        text.push_str(
            "Both hosts share the cores: sender and receiver CPU are both the machine's.\n",
        );
    }
    text.push('\n');
    text.push_str(NOTES);
    text
}

fn head(report: &Report) -> String {
    format!(
        "{} beside {}: one TCP stream, {CONGESTION}, writes of {} KiB, guest MTU {}\n\
         Linux {}, {}; sender on cores {:?}, receiver on {:?}\n\
         windows of {} s after {} s, seed {}\n\n",
        Tool::Ours.name(),
        report.iperf3,
        MESSAGE / 1024,
        report.guest_mtu,
        report.kernel,
        report.cpu_model,
        report.cpus_a,
        report.cpus_b,
        report.seconds,
        report.warmup,
        report.seed,
    )
}

fn row(comparison: &Comparison) -> [String; 6] {
    let medians = &comparison.medians;
    let cell = |ratio: &PairedRatio, decimals: usize, figure: fn(&Figures) -> f64| {
        let (ours, iperf3) = (figure(&medians.ours), figure(&medians.iperf3));
        format!(
            "{}\n{ours:.decimals$}, {iperf3:.decimals$}",
            interval(ratio)
        )
    };
    [
        comparison.configuration.clone(),
        comparison.throughput.pairs.to_string(),
        cell(&comparison.throughput, 2, |figures| figures.gbps),
        cell(&comparison.sender_cpu, 1, |figures| figures.sender_cpu),
        cell(&comparison.receiver_cpu, 1, |figures| figures.receiver_cpu),
        cell(&comparison.own_throughput, 2, |figures| figures.own_gbps),
    ]
}

/// `1.012 [1.003, 1.021]`.
fn interval(ratio: &PairedRatio) -> String {
    let number =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"));
    format!(
        "{} [{}, {}]",
        number(ratio.ratio),
        number(ratio.low),
        number(ratio.high)
    )
}

fn sentence(comparison: &Comparison) -> String {
    let judged = comparison.judgement;
    let reached = if judged.throughput_reached {
        "at least"
    } else {
        "BELOW"
    };
    let low = comparison.throughput.low.unwrap_or(f64::NAN);
    let cpu = match (judged.sender_cpu_higher, judged.receiver_cpu_higher) {
        (false, false) => "CPU per Gbit/s is not higher beyond noise",
        (true, false) => "the sender's CPU per Gbit/s is HIGHER beyond noise",
        (false, true) => "the receiver's CPU per Gbit/s is HIGHER beyond noise",
        (true, true) => "both hosts' CPU per Gbit/s is HIGHER beyond noise",
    };
    let mut words = format!(
        "{}: the throughput ratio's lower bound {low:.3} is {reached} {THROUGHPUT_BOUND}; {cpu}",
        comparison.configuration
    );
    if comparison.disturbed_pairs > 0 {
        let pairs = comparison.throughput.pairs;
        let _ = write!(
            words,
            " (in {} of {pairs} pairs others used the cores, or a backlog overflowed; all pairs count)",
            comparison.disturbed_pairs
        );
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::comparison;

    fn report(comparisons: Vec<Comparison>) -> Report {
        Report {
            iperf3: "iperf 3.12".to_owned(),
            kernel: "6.18".to_owned(),
            cpu_model: "a CPU".to_owned(),
            cores: Cores::Split,
            cpus_a: vec![0],
            cpus_b: vec![1],
            guest_mtu: 1500,
            pairs: 3,
            seconds: 1.0,
            warmup: 0.4,
            seed: 7,
            comparisons,
        }
    }

    #[test]
    fn the_table_shows_ratios_above_medians() {
        let text = text(&report(vec![comparison(
            &[0.99, 1.0, 1.01],
            &[1.0, 0.9, 0.95],
        )]));
        let (shown, notes) = text.split_once("\nYardstick").expect("notes");
        assert!(notes.contains("TCP_CORK"));
        insta::assert_snapshot!(shown, @"
        the built-in load beside iperf 3.12: one TCP stream, cubic, writes of 128 KiB, guest MTU 1500
        Linux 6.18, a CPU; sender on cores [0], receiver on [1]
        windows of 1 s after 0.4 s, seed 7

        ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
         ours / iperf3 [95 %]            pairs   throughput             sender CPU               receiver CPU             own figures          
         medians: ours, iperf3                   Gbit/s                 % of a core per Gbit/s   % of a core per Gbit/s   Gbit/s               
        ═══════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════════
         vxlan, offload none, no limit   3       1.000 [0.975, 1.025]   0.949 [0.833, 1.082]     1.000 [1.000, 1.000]     1.000 [0.975, 1.025] 
                                                 10.00, 10.00           9.5, 10.0                10.0, 10.0               9.50, 9.50           
        ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

        vxlan, offload none, no limit: the throughput ratio's lower bound 0.975 is at least 0.97; CPU per Gbit/s is not higher beyond noise
        ");
    }

    #[test]
    fn what_is_missed_stands_out() {
        let mut missed = comparison(&[0.9, 0.91, 0.9], &[1.2, 1.21, 1.2]);
        missed.disturbed_pairs = 2;
        insta::assert_snapshot!(sentence(&missed), @"vxlan, offload none, no limit: the throughput ratio's lower bound 0.889 is BELOW 0.97; the sender's CPU per Gbit/s is HIGHER beyond noise (in 2 of 3 pairs others used the cores, or a backlog overflowed; all pairs count)");
    }

    #[test]
    fn the_document_holds_every_sample() {
        let json = json(&report(vec![comparison(&[1.0; 3], &[1.0; 3])])).expect("plain figures");
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let comparison = &value["comparisons"][0];
        assert_eq!(comparison["pairs"].as_array().map(Vec::len), Some(3));
        assert_eq!(comparison["judgement"]["throughput_reached"], true);
    }
}
