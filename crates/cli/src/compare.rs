//! `wirecost compare`: two runs from their records alone; and the comparison at the end of a run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use wirecost_model::cell::Experiment;
use wirecost_report::compare::{
    Comparison, Conclusion, FailOn, LoadDocument, Strictness, compare_load_documents,
};
use wirecost_report::{Detail, Document, RunResult, Text};

use crate::failure::{Cause, CommandResult, Failure};
use crate::output::{self, Output};
use crate::{exit, report, screen};

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 no regression, or too many disturbed samples to tell (1 with --strict), 1 a \
                  regression (see --fail-on), 2 a run directory or the command line is not usable, 3 nothing is \
                  comparable (or --out could not be written)."
)]
pub(crate) struct Compare {
    /// The earlier run directory, or a file with what `wirecost load --json` printed
    before: PathBuf,
    /// The later run directory, or another such file
    after: PathBuf,
    #[command(flatten)]
    judging: Judging,
    #[command(flatten)]
    output: Output<Comparison>,
}

/// What of a comparison is a failure.
#[derive(Debug, Clone, Copy, Args)]
struct Judging {
    /// The mildest verdict that counts as a regression; worse ones count too
    #[arg(long, value_name = "VERDICT", default_value = "costs")]
    fail_on: Rule,
    /// Judge by the verdicts corrected for the number of figures compared
    #[arg(long)]
    corrected: bool,
    /// Fail (exit code 1) also if too many samples of a run were disturbed for a verdict
    #[arg(long)]
    strict: bool,
}

/// Comparison options of `wirecost run --against`.
#[derive(Debug, Default, Args)]
pub(crate) struct AgainstOptions {
    /// Compare with this run directory when measured; it is read before anything is built
    #[arg(long, value_name = "RUN_DIR")]
    against: Option<PathBuf>,
    /// With --against: the mildest verdict that counts as a regression; worse ones count too [default: costs]
    #[arg(long, value_name = "VERDICT", requires = "against")]
    fail_on: Option<Rule>,
    /// With --against: judge by the verdicts corrected for the number of figures compared
    #[arg(long, requires = "against")]
    corrected: bool,
    /// With --against: fail (exit code 1) also if too many samples were disturbed for a verdict
    #[arg(long, requires = "against")]
    strict: bool,
}

/// As [`FailOn`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rule {
    /// No verdict
    Never,
    /// Worse by more than the margin, or no longer measurable
    Costs,
    /// Certainly worse, perhaps within the margin
    Loses,
    /// Not shown to be no worse, or not compared
    CannotTell,
}

impl From<Rule> for FailOn {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::Never => Self::Never,
            Rule::Costs => Self::Costs,
            Rule::Loses => Self::Loses,
            Rule::CannotTell => Self::CannotTell,
        }
    }
}

pub(crate) fn compare(arguments: &Compare) -> CommandResult {
    let judging = arguments.judging;
    let strictness = Strictness {
        fail_on: judging.fail_on.into(),
        corrected: judging.corrected,
    };
    let paths = [&*arguments.before, &*arguments.after];
    let is_file = paths.map(|path| path.exists() && !path.is_dir());
    let comparison = match is_file {
        [false, false] => {
            let [before, after] = both(paths.map(report::read))?;
            wirecost_report::compare::compare((&before).into(), (&after).into(), strictness)
        }
        [true, true] => {
            let read = |path: &Path| {
                LoadDocument::read(path).map_err(|error| Failure::of(Cause::Record, &error))
            };
            let [before, after] = both(paths.map(read))?;
            compare_load_documents(&before, &after, strictness)
        }
        [first, _] => {
            let [file, other] = if first { paths } else { [paths[1], paths[0]] };
            let message = format!(
                "{} is a file and {} is not: give two run directories, or two documents of `wirecost load --json`",
                file.display(),
                other.display()
            );
            return Err(Failure::new(Cause::Usage, message));
        }
    };
    let directories = paths;
    arguments
        .output
        .print(&comparison, &directories, Detail::default())?;
    Ok(conclusion(&comparison, judging.strict))
}

/// Both results, or one failure with the messages of both.
fn both<T>(read: [Result<T, Failure>; 2]) -> Result<[T; 2], Failure> {
    match read {
        [Ok(before), Ok(after)] => Ok([before, after]),
        [Err(one), Err(other)] => Err(one.and(other)),
        [Err(one), _] | [_, Err(one)] => Err(one),
    }
}

fn conclusion(comparison: &Comparison, strict: bool) -> ExitCode {
    match comparison.conclusion {
        Conclusion::CannotTell if strict => exit::regression(),
        Conclusion::CannotTell | Conclusion::NoRegression => exit::FINE,
        Conclusion::Regression => exit::regression(),
        Conclusion::NothingComparable => exit::incomplete(),
    }
}

/// The run that a new one will be compared with.
pub(crate) struct Baseline {
    result: RunResult,
    strictness: Strictness,
    strict: bool,
}

impl AgainstOptions {
    /// Reads the run to compare with, and checks before anything is measured that the planned run is comparable with
    /// it.
    /// `None` where no comparison was asked for.
    pub(crate) fn read(&self, planned: &Experiment) -> Result<Option<Baseline>, Failure> {
        let Some(directory) = &self.against else {
            return Ok(None);
        };
        let result = report::read(directory)?;
        if let Err(why) = wirecost_report::compare::comparable((&result).into(), planned) {
            let message = format!("nothing to compare with in {}: {why}", directory.display());
            return Err(Failure::new(Cause::Record, message));
        }
        Ok(Some(Baseline {
            result,
            strictness: Strictness {
                fail_on: self.fail_on.unwrap_or(Rule::Costs).into(),
                corrected: self.corrected,
            },
            strict: self.strict,
        }))
    }
}

/// The JSON document of a result and its comparison.
#[derive(Serialize)]
struct WithComparison<'a> {
    #[serde(flatten)]
    document: &'a Document,
    comparison: &'a Comparison,
}

impl Baseline {
    /// Prints a result and its comparison with this run. The exit code says whether there is a regression.
    pub(crate) fn print(
        &self,
        result: &RunResult,
        page: Option<&Path>,
        json: bool,
        detail: Detail,
    ) -> CommandResult {
        let comparison = wirecost_report::compare::compare(
            (&self.result).into(),
            result.into(),
            self.strictness,
        );
        if json {
            screen::print_json(&WithComparison {
                document: &result.document,
                comparison: &comparison,
            })?;
        } else {
            report::print(result, page, false, detail)?;
            screen::print_as_is("\n")?;
            output::print(&Text, &comparison, detail)?;
        }
        Ok(conclusion(&comparison, self.strict))
    }
}
