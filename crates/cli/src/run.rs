//! `wirecost run`: plan -> run -> result, printed from the record that was just written.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use wirecost_agent::link::LinkError;
use wirecost_control::experiment::{DirectoryError, Options, RunError};
use wirecost_model::cell::Experiment;
use wirecost_model::record::Outcome;
use wirecost_report::{Detail, RunResult};

use crate::binaries::AgentBinaries;
use crate::compare::{AgainstOptions, Baseline};
use crate::existing::{self, HostsArgument};
use crate::failure::{Cause, CommandResult, Failure};
use crate::plan::{self, Loaded};
use crate::progress::Display;
use crate::report::DetailOption;
use crate::verbosity::Verbosity;
use crate::{doctor, dry_run, exit, interrupt, report, screen};

#[derive(Debug, Default, Args)]
#[command(
    after_help = "Exit codes: 0 measured, 1 a regression (with --against), 2 the plan or the command line is wrong, \
    3 the run could not be completed (what was measured is in the run directory)."
)]
pub(crate) struct Run {
    /// A plan file, the name of a built-in plan, or `-` for standard input
    #[arg(default_value = "jumbo-or-not")]
    pub(crate) plan: PathBuf,
    /// The run directory, which must not exist [default: wirecost-runs/NAME-TIME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of the random order of cells [default: the plan's, or a random one; recorded]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u32>,
    /// Print cells, order and expected time; build and measure nothing
    #[arg(long = "dry-run")]
    pub(crate) preview: bool,
    /// Measure between these existing hosts, for a plan with `network: existing` or `tunnel` [forms: local, netns:NAME,
    /// ssh:HOST, exec:COMMAND, each optionally with =ADDRESS; more than two for a plan with `pairs`]
    #[arg(long, value_name = "A,B")]
    pub(crate) hosts: Option<HostsArgument>,
    /// Load and change existing hosts without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) agent: AgentBinaries,
    #[command(flatten)]
    pub(crate) against: AgainstOptions,
    #[command(flatten)]
    pub(crate) detail: DetailOption,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(arguments: &Run, verbosity: Verbosity) -> CommandResult {
    loaded(plan::load(&arguments.plan)?, arguments, verbosity)
}

/// [`run`] with a plan that was read already.
pub(crate) fn loaded(mut loaded: Loaded, arguments: &Run, verbosity: Verbosity) -> CommandResult {
    existing::name_hosts(&mut loaded.experiment, arguments.hosts.as_ref())?;
    let baseline = arguments.against.read(&loaded.experiment)?;
    let baseline = baseline.as_ref();
    let detail = arguments.detail.detail(verbosity);
    let seed = arguments.seed.map(u64::from);
    if arguments.preview {
        let out = arguments.out.as_deref();
        let preview = wirecost_control::experiment::preview(&loaded.experiment, out, seed);
        let preview = preview.map_err(|error| refused(&error))?;
        return dry_run::print(&loaded, &preview, out, arguments.json);
    }
    let Loaded {
        experiment, text, ..
    } = loaded;
    let machine = |error| Failure::of(Cause::Machine, &error);
    let (interrupt, agents) =
        interrupt::with_hosts(verbosity.verbose, &arguments.agent).map_err(machine)?;
    let options = Options {
        agents,
        out: arguments.out.clone(),
        plan_text: text,
        seed,
        needs_all_settings: true,
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let fix = "`--yes` goes on without asking; `--dry-run` shows what would be done";
    existing::confirm(&experiment, arguments.yes, fix)?;
    if let Some(notice) = dry_run::settings::notice(&experiment).filter(|_| !verbosity.quiet) {
        screen::print_stderr(&format!("wirecost: {notice}"));
    }
    let mut display = Display::new(&experiment, verbosity);
    let finished =
        wirecost_control::experiment::run(&experiment, &options, &interrupt, &mut |step| {
            display.show(step);
        });
    display.end();
    let finished = match finished {
        Ok(finished) => finished,
        Err(error) => {
            // The samples that could be written are a result too.
            if let RunError::Record {
                directory,
                samples: 1..,
                ..
            } = &error
            {
                screen::print_stderr(&format!("wirecost: {error}"));
                result(directory, &experiment, baseline, arguments.json, detail)?;
                return Ok(exit::incomplete());
            }
            return Err(refused(&error));
        }
    };
    let (measured, printed) = result(
        &finished.directory,
        &experiment,
        baseline,
        arguments.json,
        detail,
    )?;
    if finished.end.outcome != Outcome::Complete {
        if finished.end.outcome == Outcome::Failed {
            let why = finished.end.reason.as_deref().unwrap_or("failed");
            screen::print_stderr(&format!("wirecost: the run stopped early: {why}"));
        }
        return Ok(exit::incomplete());
    }
    if !measured {
        let hint = doctor::HINT;
        screen::print_stderr(&format!(
            "wirecost: some cells could not be measured, for the reasons above; where they are this machine's, {hint}"
        ));
        return Ok(exit::incomplete());
    }
    Ok(printed)
}

/// The failure of a run that left no record.
pub(crate) fn refused(error: &RunError) -> Failure {
    match error {
        RunError::Directory(DirectoryError::Exists(_)) | RunError::NoHosts => {
            Failure::of(Cause::Usage, error)
        }
        RunError::NoHost(_) | RunError::NoTunnel(_) | RunError::OnHost(_) => {
            Failure::of(Cause::Host, error)
        }
        RunError::Directory(DirectoryError::Write { .. }) | RunError::Record { .. } => {
            Failure::of(Cause::Output, error)
        }
        RunError::NoLab(why) if !matches!(why, LinkError::Interrupted) => {
            Failure::of(Cause::Machine, error).fix(doctor::HINT)
        }
        _ => Failure::of(Cause::Machine, error),
    }
}

/// Prints the result of a run from its record and writes its HTML page into the run directory. Returns whether every
/// cell that can be built has a valid sample, and the exit code of printing or comparing.
fn result(
    directory: &Path,
    experiment: &Experiment,
    baseline: Option<&Baseline>,
    json: bool,
    detail: Detail,
) -> Result<(bool, ExitCode), Failure> {
    // The record was just written from a valid plan: if it cannot be read, the machine is at fault.
    let result = RunResult::read(directory).map_err(|error| Failure::of(Cause::Machine, &error))?;
    let page = report::write_page(&result, directory);
    let document = &result.document;
    // Cells that the plan's datapath cannot build on any machine do not count as unmeasured.
    let mut cells = document.cells.iter().zip(&experiment.cells);
    let measured = cells.all(|(told, cell)| told.valid > 0 || experiment.skips(cell).is_some());
    let page = page.as_deref();
    let printed = match baseline {
        Some(baseline) => baseline.print(&result, page, json, detail),
        None => report::print(&result, page, json, detail),
    };
    let again = format!("`wirecost report {}` prints it again", directory.display());
    Ok((measured, printed.map_err(|failure| failure.fix(again))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_cannot_be_written_is_told_as_output() {
        let full = DirectoryError::Write {
            path: "out/run.json".into(),
            source: std::io::ErrorKind::StorageFull.into(),
        };
        let document = serde_json::to_value(refused(&RunError::Directory(full)).document());
        assert_eq!(document.expect("JSON")["error"]["kind"], "output");
    }

    #[test]
    fn a_host_that_is_not_reached_is_told_as_a_host() {
        let gone = || LinkError::NoAgent {
            host: "netns:gone".into(),
            message: "it is not there".into(),
        };
        let kind = |error: &RunError| {
            let document = serde_json::to_value(refused(error).document());
            document.expect("JSON")["error"]["kind"].clone()
        };
        assert_eq!(kind(&RunError::NoHost(gone().into())), "host");
        assert_eq!(kind(&RunError::NoTunnel("no driver".into())), "host");
        assert_eq!(kind(&RunError::OnHost("no sysctl x".into())), "host");
        assert_eq!(kind(&RunError::NoLab(gone())), "machine");
    }
}
