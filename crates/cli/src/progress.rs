//! Progress of a run on standard error: a bar with the time left on a terminal, else a line per round; a line per
//! sample with `--verbose`, nothing with `--quiet`.

mod not_counted;

use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use wirecost_control::experiment::Progress;
use wirecost_model::cell::Experiment;
use wirecost_model::metric::Metric;

use self::not_counted::NotCounted;
use crate::screen;
use crate::verbosity::Verbosity;

/// Interval at which the bar's time left is redrawn within a sample.
const TICK: Duration = Duration::from_secs(1);

/// Shows the progress of a run.
pub(crate) struct Display<'a> {
    experiment: &'a Experiment,
    verbosity: Verbosity,
    bar: Option<ProgressBar>,
    /// Round of the sample that is being taken, from 0.
    round: u32,
    /// Cell of the sample that is being taken.
    cell: u32,
    /// Number of samples of the run; an expected number in an adaptive run.
    total: u32,
    /// Number of rounds of the run; an expected number in an adaptive run.
    rounds: u32,
    /// Adaptive run: effects that are known, and effects that the run waits for.
    known: Option<(u32, u32)>,
    /// Figure of the last sample that has one: throughput (bit/s) or transactions/s.
    last: Option<(Metric, f64)>,
    /// Lowest and highest figure of this round.
    range: Option<(Metric, f64, f64)>,
    not_counted: NotCounted,
    /// When the run is expected to end.
    end: Expected,
}

/// The expected end of the run, shared with the thread of the bar.
type Expected = Arc<Mutex<Option<Instant>>>;

fn bar(end: Expected) -> ProgressBar {
    let left = move |_: &ProgressState, out: &mut dyn Write| {
        if let Some(end) = *end.lock().unwrap_or_else(PoisonError::into_inner) {
            let left = end.saturating_duration_since(Instant::now());
            let _ = write!(out, "{} left | ", whole_seconds(left));
        }
    };
    // No count before the number of samples is known.
    let count = |state: &ProgressState, out: &mut dyn Write| {
        if let Some(all @ 1..) = state.len() {
            let _ = write!(out, "{}/{all} ", state.pos());
        }
    };
    let style = ProgressStyle::with_template("{bar:8} {count}{left}{wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("count", count)
        .with_key("left", left);
    let bar = ProgressBar::new(0).with_style(style);
    bar.set_message("building the first lab");
    bar.enable_steady_tick(TICK);
    bar
}

fn whole_seconds(time: Duration) -> HumanDuration {
    HumanDuration(Duration::from_secs(time.as_secs_f64().round() as u64))
}

impl<'a> Display<'a> {
    pub(crate) fn new(experiment: &'a Experiment, verbosity: Verbosity) -> Self {
        // The log of --verbose and a bar would overwrite each other.
        let wanted = stderr().is_terminal() && !verbosity.quiet && verbosity.verbose == 0;
        let end = Arc::new(Mutex::new(None));
        let bar = wanted.then(|| bar(end.clone()));
        Self {
            experiment,
            verbosity,
            bar,
            round: 0,
            cell: 0,
            total: 0,
            rounds: experiment.plan.repeat.rounds,
            known: None,
            last: None,
            range: None,
            not_counted: NotCounted::default(),
            end,
        }
    }

    pub(crate) fn show(&mut self, step: Progress) {
        match step {
            Progress::Started {
                directory,
                samples,
                expected_s,
            } => {
                self.total = samples;
                self.rounds = samples / self.experiment.samples_a_round();
                let expected = screen::duration(expected_s);
                let directory = directory.display();
                self.print(&format!(
                    "{}, about {expected}; record in {directory}",
                    self.size(samples)
                ));
                if let Some(bar) = &self.bar {
                    bar.set_length(samples.into());
                }
            }
            Progress::Reached {
                addresses: [a, b],
                traffic,
            } => self.print(&format!("measures between {a} and {b}: {traffic}")),
            Progress::LabUp { network, seconds } => {
                self.print(&format!("built {network} in {:.0} ms", seconds * 1e3));
            }
            Progress::Taking { round, cell } => {
                if round != self.round {
                    self.range = None;
                    self.not_counted.begin_round();
                }
                (self.round, self.cell) = (round, cell);
                self.draw();
            }
            Progress::Again { reason } => {
                if self.verbosity.verbose > 0 {
                    self.print(&format!("measured again: {reason}"));
                }
            }
            Progress::Taken {
                done,
                speed,
                invalid,
                left_s,
            } => self.taken(done, speed, invalid.as_deref(), left_s),
            Progress::InterimAnalysis {
                known,
                asked,
                rounds,
            } => {
                self.known = Some((known, asked));
                self.rounds = rounds;
                self.total = rounds * self.experiment.samples_a_round();
                if let Some(bar) = &self.bar {
                    bar.set_length(self.total.into());
                }
            }
        }
    }

    /// The number of samples to measure, in words.
    fn size(&self, samples: u32) -> String {
        let repeat = &self.experiment.plan.repeat;
        match &repeat.until {
            None => format!("{samples} samples"),
            Some(until) => format!(
                "adaptive run, {} to {} rounds of {} samples each",
                until.min_rounds,
                repeat.rounds,
                self.experiment.samples_a_round()
            ),
        }
    }

    /// `, 3 of 7 effects known`; empty where the number of rounds is fixed.
    fn known(&self) -> String {
        self.known.map_or_else(String::new, |(known, asked)| {
            format!(", {known} of {asked} effects known")
        })
    }

    /// The number of rounds: `17`, or `about 17` in an adaptive run.
    fn rounds(&self) -> String {
        match self.experiment.plan.repeat.until {
            Some(_) => format!("about {}", self.rounds),
            None => self.rounds.to_string(),
        }
    }

    fn taken(
        &mut self,
        done: u32,
        speed: Option<(Metric, f64)>,
        invalid: Option<&str>,
        left_s: f64,
    ) {
        let left = Duration::from_secs_f64(left_s.max(0.0));
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + left);
        if let Some(reason) = invalid
            && (self.not_counted.add(self.cell, reason) || self.verbosity.verbose > 0)
        {
            self.print(&format!("sample {done} does not count: {reason}"));
        }
        if let Some((metric, value)) = speed {
            self.last = Some((metric, value));
            // Bits and transactions have no common range: keep that of the last kind.
            let known = self.range.filter(|(known, ..)| *known == metric);
            let (_, low, high) = known.unwrap_or((metric, value, value));
            self.range = Some((metric, low.min(value), high.max(value)));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done.into());
            self.draw();
            return;
        }
        let left = whole_seconds(left);
        if self.verbosity.verbose > 0 {
            let figure = speed.map_or_else(
                || "no figure".to_owned(),
                |(metric, value)| self.said(metric, value),
            );
            self.print(&format!(
                "sample {done} of {}, round {}, {}: {figure}, {left} left",
                self.total,
                self.round + 1,
                self.name(self.cell)
            ));
        } else if done.is_multiple_of(self.experiment.samples_a_round()) {
            let range = match self.range {
                Some((Metric::Throughput, low, high)) if low < high => {
                    let (low, high) = (low / 1e9, high / 1e9);
                    format!(" at {} to {}", bare(low, high), throughput(high))
                }
                Some((metric, low, high)) if low < high => {
                    format!(" at {low:.0} to {}", self.said(metric, high))
                }
                Some((metric, only, _)) => format!(" at {}", self.said(metric, only)),
                None => String::new(),
            };
            self.print(&format!(
                "round {} of {} measured{range}{}{}, {left} left",
                self.round + 1,
                self.rounds(),
                self.not_counted.text(),
                self.known()
            ));
        }
    }

    /// A figure with its unit: `9.41 Gbit/s`, `12345 transactions/s`.
    fn said(&self, metric: Metric, value: f64) -> String {
        let load = self
            .experiment
            .cells
            .first()
            .and_then(|cell| cell.loads.first());
        let unit = load
            .map_or_else(|| metric.unit(), |one| metric.unit_of(one.load.workload))
            .0;
        match metric {
            Metric::Throughput => throughput(value / 1e9),
            _ => format!("{value:.0} {unit}"),
        }
    }

    /// Redraws the bar's message: the cell that is being measured, and the last figure.
    fn draw(&self) {
        let Some(bar) = &self.bar else { return };
        // The cell first, since a narrow terminal cuts off the end.
        let mut parts = vec![self.name(self.cell)];
        if let Some((metric, value)) = self.last {
            parts.push(format!("last {}", self.said(metric, value)));
        }
        let (round, rounds) = (self.round + 1, self.rounds());
        let (not_counted, known) = (self.not_counted.text(), self.known());
        parts.push(format!("round {round} of {rounds}{not_counted}{known}"));
        bar.set_message(parts.join(" | "));
    }

    /// Removes the bar before the result is printed.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn print(&self, text: &str) {
        match &self.bar {
            _ if self.verbosity.quiet => {}
            Some(bar) => bar.println(text),
            None => screen::print_stderr(text),
        }
    }

    /// The name of a cell: its levels of the varied factors.
    fn name(&self, cell: u32) -> String {
        let Some(cell) = self.experiment.measured().nth(cell as usize) else {
            return String::new();
        };
        let levels = self.experiment.varied().filter_map(|factor| {
            let level = cell.levels.get(&factor.key)?;
            // A number alone does not say which factor it belongs to.
            let named = level.starts_with(|c: char| c.is_ascii_digit());
            Some(if named {
                format!("{} {level}", factor.key.replace('_', " "))
            } else {
                level.clone()
            })
        });
        let mut name = levels.collect::<Vec<_>>().join(", ");
        if name.is_empty() {
            name.push_str("the only cell");
        }
        match &self.experiment.twin {
            Some(twin) if twin.index == cell.index => format!("{name} (self-test)"),
            _ => name,
        }
    }
}

/// A throughput in Gbit/s as text with three significant digits, in Mbit/s below 1 Gbit/s.
fn throughput(gbps: f64) -> String {
    let (value, unit) = if gbps < 1.0 {
        (gbps * 1e3, "Mbit/s")
    } else {
        (gbps, "Gbit/s")
    };
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

/// The lower end of a throughput range (Gbit/s) as text, without its unit where the upper end has the same.
fn bare(low: f64, high: f64) -> String {
    let (low, high) = (throughput(low), throughput(high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => number.to_owned(),
        _ => low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_has_three_digits_in_the_unit_that_fits() {
        let cases = [
            (0.0123, "12.3 Mbit/s"),
            (0.5, "500 Mbit/s"),
            (4.876, "4.88 Gbit/s"),
            (98.76, "98.8 Gbit/s"),
            (9.996, "10.0 Gbit/s"),
            (0.09996, "100 Mbit/s"),
        ];
        for (gbps, words) in cases {
            assert_eq!(throughput(gbps), words);
        }
    }

    #[test]
    fn a_range_names_a_shared_unit_once() {
        assert_eq!(bare(4.0, 9.0), "4.00");
        assert_eq!(bare(0.5, 9.0), "500 Mbit/s");
    }
}
