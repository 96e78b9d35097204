//! A report for people, for documents and for programs.

mod cells;
mod markdown;

use std::fmt::Write as _;
use std::io;

use wirecost_bench::figures::trim;
use wirecost_model::plan::Cores;

use self::cells::{Line, lines};
pub(crate) use self::markdown::markdown;
use crate::arguments::FoundPeer;
use crate::comparison::Pair;
use crate::error::BenchError;
use crate::lab::CONGESTION;
use crate::report::{CountedBy, OutcomeKind, Presence, Report};
use crate::row::Row;

/// What has to be known before a ratio is believed.
const NOTES: &str = "\
Ratios are ours / theirs: geometric mean over the pairs and its 95 % interval; below them the
medians, ours / theirs. Yardstick of all: payload that the receiving guest's kernel counted
(tcpi_bytes_received; datagrams read), over the same kind of window, which begins when data have
flowed for the warm-up. CPU: all that a host's cores did then, for each unit of the yardstick, in
percent of one core: what a loop of the lowest priority on each did not get, or where it says so
what the kernel did not count as idle.
LOW: the ratio is not where it has to be. HIGHER: CPU is above theirs beyond noise.
goal: CPU is at most 0.9 of theirs.
";

/// One JSON document, every sample included.
pub(crate) fn json(report: &Report) -> Result<String, BenchError> {
    serde_json::to_string_pretty(report)
        .map_err(|error| BenchError::machine("writing JSON")(io::Error::from(error)))
}

/// What can be chosen.
pub(crate) fn list(rows: &[Row], peers: &[FoundPeer]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for row in rows {
        let _ = writeln!(text, "{:<68} {}", row.name, row.bounds());
    }
    text.push('\n');
    for (peer, version) in peers {
        let _ = match version {
            Ok(version) => writeln!(text, "{:<11} {version}", peer.name()),
            Err(why) => writeln!(text, "{:<11} absent: {why}", peer.name()),
        };
    }
    text
}

/// Where and how it was measured.
fn head(report: &Report) -> String {
    let mut text = format!(
        "Linux {}, {}; sender on cores {:?}, receiver on {:?}\n\
         guest MTU {}, {CONGESTION}; windows of {} s after {} s, {}, seed {}\n",
        report.kernel,
        report.cpu_model,
        report.cpus_a,
        report.cpus_b,
        report.guest_mtu,
        report.seconds,
        report.warmup,
        pairs(report),
        report.seed,
    );
    if report.hooked {
        text.push_str("every bridged frame walks the firewall's hooks (br_netfilter)\n");
    }
    for peer in &report.peers {
        let _ = match &peer.presence {
            Presence::Version(version) => writeln!(text, "{}: {version}", peer.name),
            Presence::Absent(why) => writeln!(text, "{}: absent ({why})", peer.name),
        };
    }
    text
}

/// `25 to 75 pairs`.
fn pairs(report: &Report) -> String {
    if report.most > report.pairs {
        format!("{} to {} pairs", report.pairs, report.most)
    } else {
        format!("{} pairs", report.pairs)
    }
}

/// Where CPU is not counted as the notes say.
fn by(cpu: CountedBy) -> &'static str {
    match cpu {
        CountedBy::Looper => "",
        CountedBy::Idle => "; CPU by idle time",
    }
}

/// Tables no wider than 100 columns.
pub(crate) fn text(report: &Report) -> String {
    let mut text = head(report);
    for row in &report.rows {
        let _ = writeln!(text, "\n{}: {}{}", row.name, row.bound, by(row.cpu));
        for line in lines(row) {
            let _ = match line {
                Line::Figures(cells) => writeln!(
                    text,
                    "  {:<11} {:<22} {:<21} {:<21} {}\n  {:<11} {:<22} {:<21} {:<21}",
                    cells.opponent,
                    cells.figure.ratio,
                    cells.sender.ratio,
                    cells.receiver.ratio,
                    cells.verdict,
                    "",
                    cells.figure.medians,
                    cells.sender.medians,
                    cells.receiver.medians,
                ),
                Line::Words { opponent, words } => writeln!(text, "  {opponent:<11} {words}"),
            };
        }
    }
    text.push('\n');
    text.push_str(&disturbances(report));
    if report.cores == Cores::Shared {
        text.push_str("Both hosts share the cores: CPU of either is the machine's.\n");
    }
    text.push_str(NOTES);
    trim(&text)
}

/// In how many pairs the machine was not quiet, and of how many the processors are not known.
fn disturbances(report: &Report) -> String {
    let outcomes = report.rows.iter().flat_map(|row| &row.outcomes);
    let (mut pairs, mut moved, mut disturbed, mut without_cpu) = (0, 0, 0, 0);
    for outcome in outcomes {
        if let OutcomeKind::Compared(comparison) = &outcome.what {
            pairs += comparison.pairs.len();
            moved += comparison.moved_pairs;
            disturbed += comparison.disturbed_pairs;
            without_cpu += comparison.pairs_without_cpu;
        }
    }
    let said = [
        (
            moved,
            "the way between the hosts' cores changed: they do not count.",
        ),
        (
            disturbed,
            "others used the cores, or a backlog overflowed: they count.",
        ),
        (
            without_cpu,
            "the kernel counted no CPU at all: they count, but for the CPU.",
        ),
    ];
    said.iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("In {count} of {pairs} pairs {what}\n"))
        .chain(distances(report))
        .collect::<Vec<_>>()
        .concat()
}

/// How far apart the cores were, at the nearest and at the farthest.
fn distances(report: &Report) -> Option<String> {
    let outcomes = report.rows.iter().flat_map(|row| &row.outcomes);
    let samples = outcomes.flat_map(|outcome| match &outcome.what {
        OutcomeKind::Compared(comparison) => {
            comparison.pairs.iter().flat_map(Pair::samples).collect()
        }
        OutcomeKind::Alone { sample, .. } => vec![sample],
        OutcomeKind::Absent(_) | OutcomeKind::Cannot(_) | OutcomeKind::Failed(_) => Vec::new(),
    });
    let all = || samples.clone().flat_map(|sample| sample.apart_ns).flatten();
    let nearest = all().reduce(f64::min)?;
    let farthest = all().reduce(f64::max)?;
    Some(format!(
        "A cache line took {nearest:.0} to {farthest:.0} ns from a sending core to a receiving one and back.\n"
    ))
}

#[cfg(test)]
mod tests;
