//! Every row in turn: its plan, run by `wirecost`, and what its record says.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use serde::Serialize;
use wirecost_bench::program::{ProgramError, Wirecost};
use wirecost_model::plan::Cores;
use wirecost_model::record::{Outcome, Run, RunHead};
use wirecost_model::sample::DeviceState;

use crate::Arguments;
use crate::comparison::{Comparison, Judgement, Measured};
use crate::row::{Bound, Row, Side};

/// Everything that is printed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// Of this document.
    pub(crate) format: u32,
    /// Where it was measured; `None` where nothing was.
    pub(crate) machine: Option<Machine>,
    /// Pairs asked for.
    pub(crate) pairs: u32,
    pub(crate) seconds: f64,
    pub(crate) warmup: f64,
    /// The first row's; each has the next one.
    pub(crate) seed: u32,
    pub(crate) rows: Vec<RowResult>,
}

impl Report {
    /// Whether every bound was shown.
    pub(crate) fn holds(&self) -> bool {
        self.rows.iter().all(RowResult::holds)
    }
}

/// Where it was measured.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    pub(crate) kernel: String,
    pub(crate) cpu_model: String,
    /// Whether each host had cores of its own.
    pub(crate) cores: Cores,
    /// By host: `a` sends, `b` receives.
    pub(crate) cpus: BTreeMap<String, Vec<u32>>,
}

impl Machine {
    fn of(head: &RunHead) -> Self {
        let environment = &head.environment;
        let hosts = environment.hosts.iter();
        Self {
            kernel: environment.kernel.clone(),
            cpu_model: environment.cpu_model.clone(),
            cores: head.experiment.plan.cores,
            cpus: hosts
                .map(|(name, host)| (name.clone(), host.cpus.clone()))
                .collect(),
        }
    }
}

/// One row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RowResult {
    pub(crate) name: String,
    /// `None`: judged by nobody.
    pub(crate) bound: Option<Bound>,
    /// As it was run.
    pub(crate) plan: String,
    /// By cell: the devices of the path, as they were read back.
    pub(crate) devices: BTreeMap<String, Vec<DeviceState>>,
    pub(crate) comparisons: Vec<Compared>,
}

impl RowResult {
    /// Whether the bound was shown, where there is one: of what could not be measured it was not.
    fn holds(&self) -> bool {
        let shown = |compared: &Compared| match &compared.what {
            ComparisonOutcome::Measured(comparison) => {
                let judgement = comparison.judgement.as_ref();
                judgement.is_none_or(Judgement::holds)
            }
            ComparisonOutcome::CannotBeBuilt(_) | ComparisonOutcome::Failed(_) => {
                self.bound.is_none()
            }
        };
        self.comparisons.iter().all(shown)
    }
}

/// One comparison of a row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Compared {
    pub(crate) ours: Side,
    pub(crate) other: Side,
    #[serde(flatten)]
    pub(crate) what: ComparisonOutcome,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ComparisonOutcome {
    Measured(Box<Comparison>),
    /// Not on this machine, or not by this program.
    CannotBeBuilt(String),
    /// It was begun and broke.
    Failed(String),
}

/// Measures the rows; what ended it early comes beside what there is.
pub(crate) fn all(
    wirecost: &Wirecost,
    arguments: &Arguments,
    rows: Vec<Row>,
) -> Result<(Report, Option<String>), String> {
    let drawn = || random().map_err(|error| format!("reading /dev/urandom: {error}"));
    let mut report = Report {
        format: 1,
        machine: None,
        pairs: arguments.pairs,
        seconds: arguments.seconds,
        warmup: arguments.warmup,
        seed: arguments.seed.map_or_else(drawn, Ok)?,
        rows: Vec::with_capacity(rows.len()),
    };
    let count = rows.len();
    for (number, row) in (1..).zip(rows) {
        eprintln!("{number} of {count}: {}", row.name);
        let seed = report.seed.wrapping_add(number - 1);
        match one(wirecost, arguments, &row, seed) {
            Ok((result, machine)) => {
                report.rows.push(result);
                report.machine = report.machine.or(machine);
            }
            Err(error) => return Ok((report, Some(error.to_string()))),
        }
    }
    let stopped = report
        .machine
        .is_none()
        .then(|| "nothing could be measured".to_owned());
    Ok((report, stopped))
}

fn random() -> io::Result<u32> {
    let mut bytes = [0; 4];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u32::from_ne_bytes(bytes))
}

/// One row, and where it was measured, if it was.
///
/// # Errors
/// Where no other row could be measured either.
fn one(
    wirecost: &Wirecost,
    arguments: &Arguments,
    row: &Row,
    seed: u32,
) -> Result<(RowResult, Option<Machine>), ProgramError> {
    let plan = row.plan(arguments.pairs, arguments.seconds, arguments.warmup);
    let record = wirecost.record(&plan, seed);
    let mut result = RowResult {
        name: row.name.clone(),
        bound: row.bound,
        plan,
        devices: BTreeMap::new(),
        comparisons: Vec::new(),
    };
    let run = match record {
        Ok(reading) => reading.run,
        Err(ProgramError::Ended { stderr, .. }) => {
            // A plan that is refused, or no lab at all: nothing was begun.
            let what = || ComparisonOutcome::CannotBeBuilt(in_a_line(&stderr));
            result.comparisons = row.pairs.iter().map(|&sides| with(sides, what())).collect();
            return Ok((result, None));
        }
        Err(error) => return Err(error),
    };
    let measured = Measured::new(&run.head.experiment, &run.samples);
    for side in row.sides() {
        let devices = measured.devices(side).map(<[DeviceState]>::to_vec);
        result
            .devices
            .extend(devices.map(|devices| (side.to_string(), devices)));
    }
    result.comparisons = row
        .pairs
        .iter()
        .map(|&sides| with(sides, judged(&measured, &run, row, sides, arguments)))
        .collect();
    Ok((result, Some(Machine::of(&run.head))))
}

fn with([ours, other]: [Side; 2], what: ComparisonOutcome) -> Compared {
    Compared { ours, other, what }
}

fn judged(
    measured: &Measured<'_>,
    run: &Run,
    row: &Row,
    sides: [Side; 2],
    arguments: &Arguments,
) -> ComparisonOutcome {
    for side in sides {
        if let Some(why) = measured.never(side) {
            return ComparisonOutcome::CannotBeBuilt(format!("{side}: {why}"));
        }
        if let Some(why) = measured.differs(side, row) {
            return ComparisonOutcome::Failed(format!("{side}: {why}"));
        }
    }
    match &run.end {
        Some(end) if end.outcome == Outcome::Complete => {}
        end => {
            let why = end.as_ref().and_then(|end| end.reason.clone());
            return ComparisonOutcome::Failed(
                why.unwrap_or_else(|| "the run has no end".to_owned()),
            );
        }
    }
    match measured.compare(sides, row.bound, arguments.pairs, arguments.seconds) {
        Ok(comparison) => ComparisonOutcome::Measured(Box::new(comparison)),
        Err(why) => ComparisonOutcome::Failed(why),
    }
}

/// What a program said in several lines, without the frame and the excerpt of a plan that it may have around it.
fn in_a_line(said: &str) -> String {
    let before = said.split('\u{256d}').next().unwrap_or(said);
    let words = before.split_whitespace();
    let words: Vec<&str> = words
        .filter(|word| !matches!(*word, "\u{d7}" | "Error:"))
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_plan_is_told_in_a_line() {
        let said = "  \u{d7} 1 error in <standard input>\n\nError:   \u{d7} `datapath[0]` cannot be `x`\n   \u{256d}\u{2500}[1:2]\n";
        insta::assert_snapshot!(in_a_line(said), @"1 error in <standard input> `datapath[0]` cannot be `x`");
        assert_eq!(
            in_a_line("wirecost: no lab\n  could be built"),
            "wirecost: no lab could be built"
        );
    }
}
