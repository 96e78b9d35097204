//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Should we run jumbo frames, which overlay encapsulation, which offloads? Measures it.
#[derive(Debug, Parser)]
#[command(name = "wirecost", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build the networks of a plan, measure them, and say what pays
    Run(Run),
    /// Print the result of a run again, from its record alone
    Report(Report),
    /// End agents whose run is gone, and say which
    Clean(Clean),
    /// Print a script that lets a shell complete `wirecost`
    Completions(crate::completions::Completions),
    /// Write the manual pages
    #[command(hide = true)]
    Man(crate::man::Man),
    /// Be the agent of a host, spoken to over standard input and output
    #[command(hide = true)]
    Agent(Agent),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 measured, 2 the plan or the command line is wrong, \
    3 the run could not be completed (what was measured is in the run directory)."
)]
pub(crate) struct Run {
    /// A plan file, or the name of a built-in plan
    #[arg(default_value = "jumbo-or-not")]
    pub(crate) plan: PathBuf,
    /// The run directory, which must not exist [default: wirecost-runs/NAME-TIME]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Seed of the random order of cells [default: the plan's, or a random one; recorded]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u32>,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run directory
    #[arg(value_name = "RUN_DIR")]
    pub(crate) directory: PathBuf,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Print what was ended as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Agent {
    /// The host's name, for process lists
    #[arg(long)]
    pub(crate) host: String,
    /// Process id and start time of the controller, for `wirecost clean`
    #[arg(long)]
    pub(crate) owner: String,
    /// Cores to run on
    #[arg(long, value_delimiter = ',', required = true)]
    pub(crate) cpus: Vec<u32>,
    /// Join the user namespace of this process
    #[arg(long)]
    pub(crate) user_namespace_of: Option<u32>,
}
