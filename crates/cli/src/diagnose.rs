//! `wirecost diagnose`: what limits a path, and which settings of its hosts matter. Each change is measured on its own
//! and compared with the path as it is.

mod budget;
mod commands;
mod print;
mod switch;
mod tried_changes;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use wirecost_answer::diagnosis::{Diagnosis, Evidence};
use wirecost_check::{Document, Severity};
use wirecost_control::experiment::{self, InspectedHosts, Options};
use wirecost_control::hosts::{AgentRole, HostsContext};
use wirecost_control::path::{Check, CheckTarget, check};
use wirecost_model::cell::{Cell, Experiment};
use wirecost_model::host::HostAddress;
use wirecost_model::plan::HostPair;
use wirecost_model::record::{Outcome, file};
use wirecost_model::sample::Sample;
use wirecost_model::units::parse_seconds;
use wirecost_report::RunResult;

use self::budget::{LEAST_ROUNDS, SelectedChanges};
use self::print::{ChangeVerdict, DiagnosisResult};
use self::switch::Switch;
use self::tried_changes::Measured;
use crate::binaries::AgentBinaries;
use crate::failure::{Cause, CommandResult, Failure};
use crate::progress::Display;
use crate::verbosity::Verbosity;
use crate::{check as checks, existing, exit, interrupt, plan, run, screen};

/// The plan's factor whose levels are the changes.
const FACTOR: &str = "switch";
/// Label of the level that every change is compared with.
const AS_IT_IS: &str = "as it is";
/// Ids of the check's findings that say that full-size packets do not pass.
const OF_MTU: [&str; 6] = [
    "path-drops-silently",
    "expected-size-fails",
    "one-path-of-several",
    "too-big-dropped-here",
    "signal-names-wrong-size",
    "tcp-segments-lost",
];
/// Flows of the check before the measurement.
const FLOWS: u32 = 16;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing to gain, 1 something helps or a check found something, 2 the command line is wrong, 3 it \
                  could not be completed."
)]
pub(crate) struct Diagnose {
    /// The host that sends: local, netns:NAME, ssh:HOST or exec:COMMAND, each optionally with =ADDRESS
    a: HostAddress,
    /// The host that receives
    b: HostAddress,
    /// Also try settings of both hosts: each is listed, changed for its own samples only, and undone
    #[arg(long)]
    allow_host_changes: bool,
    /// Load and change the hosts without asking
    #[arg(long, short)]
    yes: bool,
    /// How long it may take, the check included
    #[arg(long, value_name = "DURATION", default_value = "3min", value_parser = parse_seconds)]
    time: f64,
    /// The run directory, which must not exist [default: wirecost-runs/diagnose-TIME]
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    agent: AgentBinaries,
    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn diagnose(arguments: &Diagnose, verbosity: Verbosity) -> CommandResult {
    let started = interrupt::with_hosts(verbosity.verbose, &arguments.agent);
    let (flag, context) = started.map_err(|error| Failure::of(Cause::Machine, &error))?;
    let pair = HostPair {
        a: arguments.a.clone(),
        b: arguments.b.clone(),
    };
    let unreached = |error| checks::unreached(&error);
    let bare = plan::experiment("<diagnose>", &plan_text(arguments, arguments.time, &[]))?;
    let print = |words: &str| {
        if !verbosity.quiet {
            screen::print_stderr(words);
        }
    };
    let began = Instant::now();
    let agents = |role| HostsContext {
        role,
        ..context.clone()
    };
    // What will be changed is listed by who will change it.
    let inspecting = if arguments.allow_host_changes {
        AgentRole::Change
    } else {
        AgentRole::Check
    };
    let inspected = experiment::inspect(&agents(inspecting), &pair, &bare, &flag);
    let inspected = inspected.map_err(unreached)?;
    print("checking the path");
    let checked = check(&asked(&pair), &agents(AgentRole::Check), &flag, &mut |_| {});
    let checked = checked.map_err(unreached)?;
    let check_s = began.elapsed().as_secs_f64();
    let findings = findings(&checked);

    let all = switch::all(&inspected, arguments.allow_host_changes);
    let SelectedChanges {
        switches,
        not_tried,
        budget_s,
    } = budget::select_changes(all, arguments.time - check_s);
    let text = plan_text(arguments, budget_s, &switches);
    let mut experiment = plan::experiment("<diagnose>", &text)?;
    with_other_loads(&mut experiment, &switches);
    existing::confirm(&experiment, arguments.yes, "`--yes` goes on without asking")?;

    let number = switches.len();
    print(&format!(
        "measuring the unchanged path and {number} variants, one at a time"
    ));
    let options = Options {
        agents: context.clone(),
        out: arguments.out.clone(),
        plan_text: text,
        seed: None,
        needs_all_settings: false,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut display = Display::new(&experiment, verbosity);
    let finished = experiment::run(&experiment, &options, &flag, &mut |step| display.show(step));
    display.end();
    let finished = finished.map_err(|error| run::refused(&error))?;
    let machine = |error: &dyn std::error::Error| Failure::new(Cause::Machine, error.to_string());
    let samples = samples(&finished.directory).map_err(|error| machine(&error))?;
    let now = now(&samples, &inspected);
    let now = now.map(|(diagnosis, rate)| (diagnosis, Some(rate)));
    let mtu = || Some((of_mtu(&findings)?, None));
    let now = now.or_else(mtu).ok_or_else(|| {
        let why = samples.iter().find_map(|sample| sample.invalid.as_ref());
        let why = why.map_or("it was interrupted", |invalid| invalid.reason());
        Failure::new(
            Cause::Machine,
            format!("the unchanged path could not be measured: {why}"),
        )
    })?;
    let result = RunResult::read(&finished.directory).map_err(|error| machine(&error))?;
    let (changes, comparisons): (Vec<Switch>, Vec<Switch>) =
        switches.into_iter().partition(Switch::is_change);
    let measured = Measured {
        result: &result,
        experiment: &experiment,
        samples: &samples,
    };
    let found = DiagnosisResult {
        hosts: [pair.a.to_string(), pair.b.to_string()],
        gbit_per_s: now.1,
        now: now.0,
        findings,
        tried: measured.tried(&changes, &inspected),
        compared: measured.compared(&comparisons),
        not_tried: not_tried.iter().map(Switch::label).collect(),
        check_s,
        time_s: arguments.time,
        changed: arguments.allow_host_changes,
        complete: finished.end.outcome == Outcome::Complete,
        record: finished.directory,
    };
    let printed = if arguments.json {
        screen::print_json(&found)?
    } else {
        screen::print(&print::text(&found, screen::terminal().width))?
    };
    Ok(code(&found, printed))
}

fn code(found: &DiagnosisResult, printed: ExitCode) -> ExitCode {
    if !found.complete {
        exit::incomplete()
    } else if found.findings.is_empty() && found.judged(ChangeVerdict::Helps).next().is_none() {
        printed
    } else {
        exit::finding()
    }
}

/// Ids and evidence of what the check found on the path.
fn findings(checked: &Document) -> Vec<(String, String)> {
    let concerning = checked
        .findings
        .iter()
        .filter(|finding| !finding.elsewhere && finding.severity != Severity::Info);
    concerning
        .map(|finding| (finding.id.to_owned(), finding.evidence.clone()))
        .collect()
}

/// Where full-size packets do not pass, nothing can be measured: the check's finding is the diagnosis.
fn of_mtu(findings: &[(String, String)]) -> Option<Diagnosis> {
    let mut findings = findings.iter();
    let mtu = findings.find(|(id, _)| OF_MTU.contains(&id.as_str()))?;
    Some(Diagnosis::of_mtu(&mtu.1))
}

fn asked(pair: &HostPair) -> Check {
    Check {
        from: pair.a.clone(),
        to: CheckTarget::Host(pair.b.clone()),
        expect: None,
        flows: FLOWS,
        port: None,
        encapsulation: None,
        datagrams_per_s: 5_000.0,
        bytes_per_s: 4e7,
        tcp: None,
        trace: false,
        recommend: false,
        simulate: None,
    }
}

/// The text of the plan, which is kept with the record. Changes of the load itself are added later, by
/// [`with_other_loads`].
fn plan_text(arguments: &Diagnose, budget: f64, switches: &[Switch]) -> String {
    let quoted = |host: &HostAddress| serde_json::Value::from(host.to_string()).to_string();
    let mut text = format!(
        "name: diagnose\nhosts: {{ a: {}, b: {} }}\nnetwork: existing\nmax_rate: none\nload: tcp-stream\nrepeat: {{ precision: 3%, \
         budget: {budget}s, min_rounds: {LEAST_ROUNDS}, seconds: 0.5, warmup: 0.5, ask: throughput }}\nvary:\n  {FACTOR}:\n    \
         - label: {AS_IT_IS}\n",
        quoted(&arguments.a),
        quoted(&arguments.b)
    );
    let settings: Vec<String> = switches.iter().filter_map(Switch::level).collect();
    if !settings.is_empty() {
        text += "    - ";
        text += &settings.join("\n    - ");
        text += "\nallow_host_changes: on\n";
    }
    text
}

/// Has all loads use the hosts' default congestion control, and adds a cell for each change that is an option of the
/// load.
fn with_other_loads(experiment: &mut Experiment, switches: &[Switch]) {
    for cell in &mut experiment.cells {
        for named in &mut cell.loads {
            named.load.congestion = None;
        }
    }
    let Some(first) = experiment.cells.first().cloned() else {
        return;
    };
    for switch in switches {
        let mut cell = Cell {
            index: experiment.cells.len() as u32,
            ..first.clone()
        };
        if !switch.change(&mut cell.loads[0].load) {
            continue;
        }
        cell.levels.insert(FACTOR.to_owned(), switch.label());
        experiment.cells.push(cell);
        let factors = experiment.factors.iter_mut();
        for factor in factors.filter(|factor| factor.key == FACTOR) {
            factor.levels.push(switch.label());
        }
    }
}

/// The samples of a record that was just written.
fn samples(directory: &Path) -> io::Result<Vec<Sample>> {
    let text = fs::read_to_string(directory.join(file::SAMPLES))?;
    let samples = text.lines().map(serde_json::from_str);
    Ok(samples.collect::<Result<_, _>>()?)
}

/// What limits the path as it is, and its throughput in Gbit/s; `None` without evidence in the samples of cell 0.
fn now(samples: &[Sample], inspected: &InspectedHosts) -> Option<(Diagnosis, f64)> {
    let as_it_is = samples.iter().filter(|sample| sample.cell == 0);
    let mut evidence = Evidence {
        one_machine: inspected.is_one_machine(),
        ..Evidence::of(as_it_is, inspected.speed())?
    };
    // Other devices of a host drop packets of other networks.
    let is_on_path = |host: usize, device: &str| {
        let mut devices = inspected.path(host).devices.iter();
        device == inspected.measured(host) || devices.any(|other| other.name == device)
    };
    evidence.drops.retain(|drops| {
        let host = usize::from(drops.host == 'b');
        let device = drops.device.as_deref();
        device.is_none_or(|device| is_on_path(host, device))
    });
    Some((evidence.diagnose(), evidence.rate / 1e9))
}
