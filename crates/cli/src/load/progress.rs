//! Progress of `wirecost load` on standard error: a line for each load and interval.

use std::fmt::Write as _;

use wirecost_control::load::{Interval, LoadEvent, ManualLoad};
use wirecost_model::host::HostAddress;
use wirecost_model::units::format_per_second;

use super::values::{throughput, time};
use crate::screen::print_stderr;
use crate::verbosity::Verbosity;

/// Prints progress on standard error.
pub(super) struct LoadProgress<'a> {
    asked: &'a ManualLoad,
    quiet: bool,
    /// Length of the longest load's name.
    width: usize,
}

impl<'a> LoadProgress<'a> {
    pub(super) fn new(asked: &'a ManualLoad, verbosity: Verbosity) -> Self {
        let names = asked.loads.iter().map(|named| named.name.len());
        Self {
            asked,
            quiet: verbosity.quiet,
            width: names.max().unwrap_or_default(),
        }
    }

    pub(super) fn show(&self, event: &LoadEvent<'_>) {
        if self.quiet {
            return;
        }
        match event {
            LoadEvent::Reached { addresses, .. } => {
                let [a, b] = &self.asked.hosts;
                let place = |host: &HostAddress| host.place.to_string();
                let [at_a, at_b] = addresses;
                print_stderr(&format!(
                    "a {} at {at_a}, b {} at {at_b}",
                    place(a),
                    place(b)
                ));
            }
            LoadEvent::Fragments(words) => print_stderr(&format!("note: {words}")),
            LoadEvent::Round(number) if self.asked.rounds > 1 => {
                print_stderr(&format!("round {number} of {}", self.asked.rounds));
            }
            LoadEvent::Began if self.asked.seconds.is_some() && self.asked.warmup_s > 0.0 => {
                print_stderr(&format!("warming up for {} s", self.asked.warmup_s));
            }
            LoadEvent::Round(_) | LoadEvent::Began => {}
            LoadEvent::Interval(interval) => print_stderr(&self.lines(interval)),
        }
    }

    fn lines(&self, interval: &Interval) -> String {
        let mut lines = String::new();
        for load in &interval.loads {
            if !lines.is_empty() {
                lines.push('\n');
            }
            let (end, name, width) = (interval.end_s, &load.name, self.width);
            let _ = write!(lines, "{end:7.1} s  {name:width$}");
            if let Some(gbps) = load.gbps {
                let _ = write!(lines, "  {}", throughput(gbps));
            }
            if let Some(back) = load.back_gbps {
                let _ = write!(lines, ", back {}", throughput(back));
            }
            if let Some(retransmits) = load.retransmits {
                let _ = write!(lines, "  {retransmits} retransmits");
            }
            if let Some(per_s) = load.datagrams_per_s {
                let _ = write!(lines, "  {:>9} datagrams/s", format_per_second(per_s));
            }
            if let Some(lost) = load.lost {
                let _ = write!(lines, "  {lost} lost");
            }
            if let Some(per_s) = load.transactions_per_s {
                let _ = write!(lines, "  {:>9} /s", format_per_second(per_s));
            }
            for (percentile, latency) in [("p50", load.p50_s), ("p99", load.p99_s)] {
                if let Some(latency) = latency {
                    let _ = write!(lines, "  {percentile} {}", time(latency));
                }
            }
            if let Some(timeouts @ 1..) = load.timeouts {
                let _ = write!(lines, "  {timeouts} without answer");
            }
        }
        lines
    }
}
