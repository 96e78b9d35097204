//! Progress on standard error: a bar with the time left on a terminal, a line per round elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use wirecost_model::cell::Experiment;
use wirecost_run::Progress;

use crate::screen;

/// Shows a run's steps.
pub(crate) struct Display<'a> {
    experiment: &'a Experiment,
    bar: Option<ProgressBar>,
    round: u32,
    total: u32,
}

impl<'a> Display<'a> {
    pub(crate) fn new(experiment: &'a Experiment) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len}  {wide_msg}");
            ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Self {
            experiment,
            bar,
            round: 0,
            total: 0,
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
                let expected = screen::duration(expected_s);
                let directory = directory.display();
                self.say(&format!(
                    "{samples} samples, about {expected}; record in {directory}"
                ));
                if let Some(bar) = &self.bar {
                    bar.set_length(samples.into());
                }
            }
            Progress::LabUp { network, seconds } => {
                self.say(&format!("built {network} in {:.0} ms", seconds * 1e3));
            }
            Progress::Taking { round, cell } => {
                self.round = round;
                if let Some(bar) = &self.bar {
                    let name = self.name(cell);
                    let left = bar.message();
                    let left = left.split(" | ").next().unwrap_or_default().to_owned();
                    bar.set_message(format!("{left} | round {}: {name}", round + 1));
                }
            }
            Progress::Taken {
                done,
                invalid,
                left_s,
                ..
            } => {
                if let Some(reason) = invalid {
                    self.say(&format!("sample {done} does not count: {reason}"));
                }
                let left = HumanDuration(Duration::from_secs_f64(left_s.max(0.0).round()));
                if let Some(bar) = &self.bar {
                    bar.set_position(done.into());
                    bar.set_message(format!("{left} left"));
                } else if done % self.experiment.cells.len() as u32 == 0 {
                    self.say(&format!(
                        "round {} of {} measured, {left} left",
                        self.round + 1,
                        self.experiment.plan.repeat.rounds
                    ));
                }
            }
        }
    }

    /// Takes the bar away, so that nothing is in the result's way.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => screen::say(text),
        }
    }

    /// The cell by its varied levels.
    fn name(&self, cell: u32) -> String {
        let Some(cell) = self.experiment.cells.get(cell as usize) else {
            return String::new();
        };
        let levels = self.experiment.varied().filter_map(|factor| {
            let level = cell.levels.get(&factor.key)?;
            Some(format!("{} {level}", factor.key.replace('_', " ")))
        });
        levels.collect::<Vec<_>>().join(", ")
    }
}
