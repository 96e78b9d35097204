//! Measures a case.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use wirecost_bench::program::{Answer, Wirecost};
use wirecost_model::record::file;
use wirecost_model::sample::Sample;

use crate::case::{Case, Expectation, Kind, RunMethod, SecondRun};
use crate::judge::{Finding, PlanOutcome, judge, of_comparison, unmeasured};

/// How many times as far apart the cores of [`RunMethod::CoresMoved`] are: those of one virtual machine of two cores
/// were 27 to 132 ns apart or 262 to 472 (docs/facts.md).
const CORE_DISTANCE_FACTOR: f64 = 4.0;
/// Exit code of `wirecost run` for a plan that cannot be used as it is.
const REFUSED: i32 = 2;

/// What became of a case.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) holds: bool,
    pub(crate) seconds: f64,
    pub(crate) findings: Vec<Finding>,
}

/// Measures a case and judges every claim of it.
///
/// # Errors
/// The program could not be run, a run of it came to no result, or a signal asked for the end.
pub(crate) fn case(wirecost: &Wirecost, case: &'static Case) -> Result<Outcome, String> {
    let begun = Instant::now();
    for name in ["first", "second"] {
        wirecost.remove_record(name);
    }
    let findings = match case.way {
        RunMethod::Run => one(case, &wirecost.run_recorded(case.plan, "first", None)?)?,
        RunMethod::OneCore => one(case, &wirecost.run_recorded(case.plan, "first", Some(0))?)?,
        RunMethod::CoresMoved(factor, level) => {
            measured(&wirecost.run_recorded(case.plan, "first", None)?)?;
            let moved = |sample: &mut Sample, levels: &Value| {
                if levels[factor] == level {
                    for apart in &mut sample.cores_apart {
                        apart.before_ns = apart.before_ns.map(|ns| ns * CORE_DISTANCE_FACTOR);
                        apart.after_ns = apart.after_ns.map(|ns| ns * CORE_DISTANCE_FACTOR);
                    }
                }
            };
            edit(&wirecost.record_dir("first"), moved)?;
            one(case, &wirecost.run_on_records("report", &["first"])?)?
        }
        RunMethod::Compare(second) => compared(wirecost, case, second)?,
    };
    Ok(Outcome {
        name: case.name,
        kind: case.kind.word(),
        holds: findings.iter().all(|finding| finding.holds),
        seconds: begun.elapsed().as_secs_f64(),
        findings,
    })
}

fn one(case: &Case, answer: &Answer) -> Result<Vec<Finding>, String> {
    let plan_outcome = match &answer.document {
        _ if answer.code == Some(REFUSED) => PlanOutcome::Refused(&answer.stderr),
        Some(document) => PlanOutcome::Result(document),
        None if may_be_refused(case) => PlanOutcome::Refused(&answer.stderr),
        None => return Err(format!("{}: {}", case.name, answer.stderr)),
    };
    let mut findings = match plan_outcome {
        PlanOutcome::Result(result) => unmeasured(result),
        PlanOutcome::Refused(_) => Vec::new(),
    };
    findings.extend(
        case.claims
            .iter()
            .flat_map(|claim| judge(claim, &plan_outcome)),
    );
    Ok(findings)
}

fn may_be_refused(case: &Case) -> bool {
    let may = |expectation| {
        matches!(
            expectation,
            Expectation::Refused(_) | Expectation::RefusedOrWithin(..)
        )
    };
    case.claims.iter().any(|claim| may(claim.expectation))
}

fn compared(wirecost: &Wirecost, case: &Case, second: SecondRun) -> Result<Vec<Finding>, String> {
    measured(&wirecost.run_recorded(case.plan, "first", None)?)?;
    let after = match second {
        SecondRun::WithBusyLoop => {
            let _loop = Loop::start().map_err(|error| format!("a loop beside it: {error}"))?;
            wirecost.run_recorded(case.plan, "second", None)?
        }
        SecondRun::OneCore => wirecost.run_recorded(case.plan, "second", Some(0))?,
        SecondRun::Plan(plan) => wirecost.run_recorded(plan, "second", None)?,
        SecondRun::Fewer(_) => wirecost.run_recorded(case.plan, "second", None)?,
    };
    measured(&after)?;
    if let SecondRun::Fewer(share) = second {
        edit(&wirecost.record_dir("second"), |sample, _| {
            for stream in sample
                .loads
                .iter_mut()
                .filter_map(|load| load.stream.as_mut())
            {
                stream.bytes = (stream.bytes as f64 * share) as u64;
            }
        })?;
    }
    let answer = wirecost.run_on_records("compare", &["first", "second"])?;
    let comparison = answer.document.as_ref().ok_or(answer.stderr.as_str())?;
    let result = of_comparison(comparison);
    let claims = case.claims.iter();
    let mut findings: Vec<Finding> = claims
        .flat_map(|claim| judge(claim, &PlanOutcome::Result(&result)))
        .collect();
    let wanted = match (second, case.kind) {
        // Throughput may truly be less.
        (SecondRun::Plan(_), _) => return Ok(findings),
        (_, Kind::Artefact) => 0,
        (_, Kind::Effect) => 1,
    };
    findings.push(Finding {
        what: "wirecost compare".into(),
        expected: format!("exit code {wanted}"),
        found: answer
            .code
            .map_or("killed".into(), |code| format!("exit code {code}")),
        holds: answer.code == Some(wanted),
    });
    Ok(findings)
}

/// A run that came to its end.
fn measured(answer: &Answer) -> Result<(), String> {
    match answer.code {
        Some(0) => Ok(()),
        _ => Err(answer.stderr.clone()),
    }
}

/// Changes samples of a record, each with the levels of its cell.
fn edit(record: &Path, change: impl Fn(&mut Sample, &Value)) -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", record.display());
    let read = |name| fs::read_to_string(record.join(name)).map_err(|error| told(&error));
    let head: Value = serde_json::from_str(&read(file::RUN)?).map_err(|error| told(&error))?;
    let mut text = String::new();
    for line in read(file::SAMPLES)?.lines() {
        let mut sample: Sample = serde_json::from_str(line).map_err(|error| told(&error))?;
        let levels = &head["experiment"]["cells"][sample.cell as usize]["levels"];
        change(&mut sample, levels);
        text.push_str(&serde_json::to_string(&sample).map_err(|error| told(&error))?);
        text.push('\n');
    }
    fs::write(record.join(file::SAMPLES), text).map_err(|error| told(&error))
}

/// Another program that keeps the machine's last core busy, which is host b's. Dropping it ends it.
struct Loop(Child);

impl Loop {
    fn start() -> io::Result<Self> {
        let last = available_parallelism()?.get() - 1;
        Command::new("taskset")
            .args(["-c", &last.to_string(), "sh", "-c", "while :; do :; done"])
            .stdin(Stdio::null())
            .spawn()
            .map(Self)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
