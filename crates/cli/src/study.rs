//! `wirecost study`: a published measurement, run here.

use std::path::PathBuf;

use clap::Args;
use wirecost_plan::STUDIES;

use crate::binaries::AgentBinaries;
use crate::existing::HostsArgument;
use crate::failure::{Cause, CommandResult, Failure};
use crate::plan::{self, Loaded};
use crate::plans;
use crate::report::DetailOption;
use crate::run::{self, Run};
use crate::verbosity::Verbosity;

#[derive(Debug, Args)]
#[command(
    after_help = "A comparison agrees if its whole interval is on the published side of the margin, in the published \
    direction. `wirecost plans NAME` prints a study's plan, to change it and give it to `wirecost run`.\n\n\
    Exit codes: 0 measured, whether or not it agrees, 2 the command line is wrong, \
    3 the run could not be completed (what was measured is in the run directory)."
)]
pub(crate) struct Study {
    /// The study; without it they are listed
    #[arg(value_name = "STUDY")]
    name: Option<String>,
    /// Measure fewer rounds and shorter windows: wider intervals, in about three minutes; longer with --hosts, as
    /// --dry-run says
    #[arg(long, requires = "name")]
    quick: bool,
    #[command(flatten)]
    on: OnHosts,
    /// The run directory, which must not exist [default: wirecost-runs/NAME-TIME]
    #[arg(long, short, value_name = "DIR", requires = "name")]
    out: Option<PathBuf>,
    /// Seed of the random order of cells [default: a random one; recorded]
    #[arg(long, value_name = "NUMBER", requires = "name")]
    seed: Option<u32>,
    /// Print cells, order and expected time; build and measure nothing
    #[arg(long = "dry-run", requires = "name")]
    preview: bool,
    #[command(flatten)]
    detail: DetailOption,
    /// Print the list, or the result, as one JSON document
    #[arg(long)]
    json: bool,
}

// Real hosts in place of a lab; a doc comment would become the help of the command.
#[derive(Debug, Args)]
struct OnHosts {
    /// Measure between these existing hosts, unscaled, instead of in a lab [forms: local, netns:NAME, ssh:HOST,
    /// exec:COMMAND, each optionally with =ADDRESS]
    #[arg(long, value_name = "A,B", requires = "name")]
    hosts: Option<HostsArgument>,
    /// Load and change existing hosts without asking
    #[arg(long, short, requires = "hosts")]
    yes: bool,
    #[command(flatten)]
    agent: AgentBinaries,
}

pub(crate) fn study(arguments: &Study, verbosity: Verbosity) -> CommandResult {
    let Some(wanted) = arguments.name.as_deref() else {
        return plans::list(STUDIES, arguments.json);
    };
    let Some((name, text)) = STUDIES.iter().find(|(name, _)| *name == wanted) else {
        let known: Vec<&str> = STUDIES.iter().map(|(name, _)| *name).collect();
        let message = format!("no study {wanted}; name one of {}", known.join(", "));
        return Err(Failure::new(Cause::Usage, message));
    };
    let mut text = (*text).to_owned();
    if arguments.on.hosts.is_some() {
        let on_hosts = wirecost_plan::on_hosts(name).transpose();
        let on_hosts = on_hosts.map_err(|message| Failure::new(Cause::Usage, message))?;
        text = on_hosts.unwrap_or(text);
    }
    if arguments.quick {
        text = wirecost_plan::quick(name, &text).unwrap_or(text);
    }
    let loaded = Loaded {
        experiment: plan::experiment(name, &text)?,
        text,
        source: (*name).to_owned(),
    };
    let as_run = Run {
        plan: PathBuf::from(name),
        out: arguments.out.clone(),
        seed: arguments.seed,
        preview: arguments.preview,
        hosts: arguments.on.hosts.clone(),
        yes: arguments.on.yes,
        agent: arguments.on.agent.clone(),
        detail: arguments.detail,
        json: arguments.json,
        ..Run::default()
    };
    run::loaded(loaded, &as_run, verbosity)
}
