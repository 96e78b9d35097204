//! The result of `wirecost load` as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use wirecost_control::load::{Cpu, Document, FlowFigures, LoadReport, Outcome, Requests, Summary};
use wirecost_model::end_window::ThreadWindow;
use wirecost_model::load::{Direction, Rate};
use wirecost_model::units::{format_bytes, format_per_second, format_rate};

use super::migration;
use super::values::{throughput, time};
use crate::screen::wrap;

/// Largest number of flows that are printed; of more flows, the slowest and the fastest are.
const FLOWS: usize = 16;

/// The result as text; notes are wrapped at `width` columns.
pub(super) fn text(document: &Document, width: usize) -> String {
    let mut text = String::new();
    let [a, b] = &document.hosts;
    let _ = write!(
        text,
        "a {} at {}, b {} at {}",
        a.place, a.address, b.place, b.address
    );
    for load in &document.loads {
        let _ = write!(text, "\n\n{}", heading(load));
        if let Some(spread) = &load.spread {
            rounds(&mut text, spread);
        }
        lines(&mut text, load);
    }
    let storage = document
        .loads
        .iter()
        .all(|load| load.asked.load.workload.is_storage());
    if let Some(cpu) = &document.cpu {
        let _ = write!(text, "\n\nprocessors  {}", processors(cpu, storage));
    }
    for note in &document.notes {
        let note = wrap(&format!("note: {note}"), "  ", width);
        let _ = write!(text, "\n{note}");
    }
    match document.outcome {
        Outcome::Complete => {}
        Outcome::Interrupted => text.push_str("\ninterrupted: these are the counts so far"),
        Outcome::Failed => text.push_str("\nfailed: these are the counts so far"),
    }
    text
}

/// Appends the figures over all rounds, by their names in the JSON document.
fn rounds(text: &mut String, spread: &BTreeMap<&str, Summary>) {
    for (figure, of) in spread {
        let interval = match (of.low, of.high) {
            (Some(low), Some(high)) => format!(" [{}, {}]", digits(low), digits(high)),
            _ => String::new(),
        };
        let (mean, n) = (digits(of.mean), of.n);
        let rounds = if n == 1 { "round" } else { "rounds" };
        let _ = write!(text, "\n  {figure:30}  {mean}{interval}, {n} {rounds}");
    }
    text.push_str("\n  mean and 95 % interval; what follows is the last round");
}

/// A number with four significant digits or all digits before the point, and at most four decimals.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        ..1.0 => 4,
        ..10.0 => 3,
        ..100.0 => 2,
        ..1000.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

fn bytes(bytes: u32) -> String {
    format_bytes(bytes.into())
}

fn heading(load: &LoadReport) -> String {
    let asked = &load.asked.load;
    let way = match asked.direction {
        Direction::AToB => "a to b",
        Direction::BToA => "b to a",
    };
    let streams = asked.streams;
    let flows = match (asked.workload.is_migration(), streams) {
        (true, 1) => "machine",
        (true, _) => "machines",
        (false, 1) => "flow",
        (false, _) => "flows",
    };
    let seconds = load.result.as_ref().map(|result| {
        let seconds = if result.requests.is_some() {
            result.client_seconds
        } else {
            result.seconds
        };
        if seconds < 1.0 {
            format!(", {}", time(seconds))
        } else {
            format!(", {seconds:.2} s")
        }
    });
    let sizes = if let Some(migration) = asked.migration {
        let (memory, rate) = (format_bytes(migration.memory), migration.dirty_rate);
        let channels = match migration.channels {
            1 => String::new(),
            channels => format!(", {channels} connections each"),
        };
        format!(
            "{memory} of memory written at {} each{channels}",
            format_rate(rate)
        )
    } else if let Some(storage) = asked.storage {
        let mix = if storage.pattern.is_mix() {
            format!(" with {} % reads", storage.reads)
        } else {
            String::new()
        };
        let (pattern, depth) = (storage.pattern.name(), asked.depth);
        let server = match (&asked.server, &asked.path) {
            (Some(server), _) => format!(" at {server}"),
            (None, Some(path)) => format!(" at {path}"),
            (None, None) => String::new(),
        };
        format!(
            "{pattern}{mix} of {}{server}, depth {depth}",
            bytes(asked.request)
        )
    } else if asked.workload.is_request_response() {
        format!("{} and {}", bytes(asked.request), bytes(asked.response))
    } else {
        format!("messages of {}", bytes(asked.request))
    };
    let seconds = seconds.unwrap_or_default();
    let each = if streams == 1 { "" } else { " each" };
    let rate = match asked.rate {
        None => String::new(),
        Some(Rate::BitsPerSecond(bits)) => format!(", at {}{each}", format_rate(bits)),
        Some(Rate::RequestsPerSecond(requests)) => format!(", at {requests}/s{each}"),
    };
    format!(
        "{}  {way}, {streams} {flows}, {sizes}{rate}{seconds}",
        load.asked.name
    )
}

fn lines(text: &mut String, load: &LoadReport) {
    let Some(result) = &load.result else {
        text.push_str("\n  no result: it ended before its counts could be read");
        return;
    };
    if let Some(stream) = &load.stream {
        if load.asked.load.workload.is_storage() {
            let read = stream.back_gbps.unwrap_or_default();
            let [read, written] = [read, stream.gbps].map(throughput);
            let _ = write!(
                text,
                "\n  throughput  read {}, written {}",
                read.trim(),
                written.trim()
            );
        } else {
            let _ = write!(text, "\n  throughput  {}", throughput(stream.gbps).trim());
            if let Some(back) = stream.back_gbps {
                let _ = write!(text, ", back {}", throughput(back).trim());
            }
        }
        if let Some(retransmits) = stream.retransmits {
            let _ = write!(text, ", {retransmits} retransmits");
        }
        if let Some(fairness) = stream.fairness.filter(|_| load.flows.len() > 1) {
            let _ = write!(text, ", fairness {fairness:.4}");
        }
    }
    if let (Some(rates), Some(counted)) = (&load.datagrams, &result.datagrams) {
        let lost = rates
            .lost_share
            .map_or_else(String::new, |share| format!(" ({:.3} %)", share * 100.0));
        // The ends of a load that ends by itself were counted over different times: print counts instead of rates.
        let [sent, received] = if load.asked.load.ends_by_itself() {
            [counted.sent.to_string(), counted.received.to_string()]
        } else {
            [rates.sent_per_s, rates.received_per_s]
                .map(|rate| format!("{}/s", format_per_second(rate)))
        };
        let _ = write!(
            text,
            "\n  datagrams   {sent} sent, {received} received, {} lost{lost}, {} reordered, {} duplicated, jitter {}",
            counted.lost,
            counted.reordered,
            counted.duplicated,
            time(counted.jitter_s)
        );
    }
    if let (Some(figures), Some(counted)) = (&load.requests, &result.requests) {
        requests(text, figures, load.asked.load.workload.is_storage());
        if load.asked.load.workload.is_udp() {
            let _ = write!(
                text,
                "\n  unanswered  {} requests; {} late responses, {} duplicates",
                counted.timeouts, counted.late, counted.duplicated
            );
        }
    }
    if let Some(counts) = &result.zero_copy {
        let _ = write!(
            text,
            "\n  zero copy   {} sends, {} completed, {} copied by the kernel, {} sent with a copy",
            counts.sends, counts.completed, counts.copied, counts.fallbacks
        );
    }
    if let Some(path) = &result.path {
        let _ = write!(text, "\n  path        {}", path.words());
    }
    migration::lines(text, &result.moves);
    flows(text, load);
    for generator in &result.generator {
        let threads = &generator.threads;
        let busy: f64 = threads.iter().map(|thread| thread.busy).sum();
        let waited: f64 = threads.iter().map(ThreadWindow::slept).sum();
        let count = threads.len().max(1) as f64;
        let _ = write!(
            text,
            "\n  {:10}  {} on {}: {busy:.2} cores, asleep {:.0} % of the time{}",
            "generator",
            generator.end.words(),
            generator.host,
            waited / count * 100.0,
            if generator.bound {
                ", generator-bound"
            } else {
                ""
            }
        );
    }
}

fn requests(text: &mut String, figures: &Requests, storage: bool) {
    let per_s = format_per_second(figures.per_s);
    let answered = if storage { "I/O" } else { "answered" };
    let _ = write!(text, "\n  {answered:10}  {per_s} /s");
    for (name, times) in [
        ("latency", &figures.latency),
        ("lateness", &figures.lateness),
    ] {
        let Some(times) = times else { continue };
        let _ = write!(text, "\n  {name:10}");
        for (percentile, seconds) in &times.percentiles {
            let _ = write!(text, "  {percentile} {}", time(*seconds));
        }
        let _ = write!(text, "  max {}", time(times.max));
    }
    for within in &figures.within {
        if let Some(share) = within.share {
            let bound = time(within.bound_s);
            let _ = write!(text, "\n  within      {bound}: {:.3} %", share * 100.0);
        }
    }
}

fn flows(text: &mut String, load: &LoadReport) {
    let count = load.flows.len();
    if load.stream.is_none() && load.flows.iter().all(|flow| flow.rtt_us.is_none()) {
        return;
    }
    let mut order: Vec<(usize, &FlowFigures)> = load.flows.iter().enumerate().collect();
    if count > FLOWS {
        // Print the slowest and the fastest flows; the JSON document has all.
        order.sort_by(|(_, one), (_, other)| one.gbps.total_cmp(&other.gbps));
        let rest = order.split_off(FLOWS / 2);
        order.extend(rest.into_iter().rev().take(FLOWS / 2).rev());
    }
    for (position, (number, flow)) in order.into_iter().enumerate() {
        if count > FLOWS && position == FLOWS / 2 {
            let _ = write!(
                text,
                "\n  ...         {} more flows between these",
                count - FLOWS
            );
        }
        let _ = write!(text, "\n  flow {number:<6} ");
        if load.stream.is_some() {
            text.push_str(&throughput(flow.gbps));
            if flow.back_gbps > 0.0 {
                let _ = write!(text, ", back {}", throughput(flow.back_gbps));
            }
        }
        if let Some(retransmits) = flow.retransmits {
            let _ = write!(text, "  {retransmits} retransmits");
        }
        if let (Some(rtt), Some(cwnd), Some(mss), Some(congestion)) =
            (flow.rtt_us, flow.cwnd, flow.mss, &flow.congestion)
        {
            let rtt = time(f64::from(rtt) / 1e6);
            let _ = write!(text, "  rtt {rtt}  cwnd {cwnd}  MSS {mss}  {congestion}");
        }
    }
}

fn processors(cpu: &Cpu, storage: bool) -> String {
    let mut text = match cpu.b_cores {
        Some(b) => format!("a {:.2} cores, b {b:.2} cores busy", cpu.a_cores),
        None => format!(
            "{:.2} cores busy, of the machine that both hosts share",
            cpu.a_cores
        ),
    };
    // With almost no traffic, the figure would show the machine's other work.
    if let Some(percent) = cpu.percent_per_gbps.filter(|percent| *percent < 1e4) {
        let _ = write!(text, ": {percent:.1} % of a core per Gbit/s");
    }
    if let Some(us) = cpu.us_per_transaction {
        let each = if storage { "I/O" } else { "transaction" };
        let _ = write!(text, ": {} of core time per {each}", time(us / 1e6));
    }
    text
}
