//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};

use crate::plans::Plans;

use crate::doctor::Doctor;

/// Should we run jumbo frames, which overlay encapsulation, which offloads? Measures it.
#[derive(Debug, Parser)]
#[command(name = "wirecost", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) talk: Talk,
}

/// How much is told on standard error.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Talk {
    /// No progress: only the result, and errors on standard error
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Tell each step on standard error, the agents' too; twice for everything
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build the networks of a plan, measure them, and say what pays
    Run(Run),
    /// Load the path between any two hosts by hand, and tell what it carries
    Load(Box<crate::load::Load>),
    /// Find out what the path between two hosts carries, and what to type where it is too little
    Check(crate::check::Check),
    /// Print the result of a run again, from its record alone; also as HTML, Markdown or CSV
    Report(Report),
    /// Compare a run with an earlier one, from their records alone
    Compare(crate::compare::Compare),
    /// List the built-in plans, or print one
    Plans(Plans),
    /// Print the JSON Schema of plans, for editors, or of what a check prints
    Schema(crate::plans::Schema),
    /// Compute what encapsulations cost: guest MTU, headers, goodput
    Overhead(crate::overhead::Overhead),
    /// Make, show and remove tunnels by hand, to try applications over
    Tunnel(crate::tunnel::Tunnel),
    /// End agents whose run is gone, remove what is left of tunnels, and say which
    Clean(Clean),
    /// Find out what this machine can do, and what to do about what it cannot
    Doctor(Doctor),
    /// Print a script that lets a shell complete `wirecost`
    Completions(crate::completions::Completions),
    /// Write the manual pages
    #[command(hide = true)]
    Man(crate::man::Man),
    /// Be the agent of a host, spoken to over standard input and output
    #[command(hide = true)]
    Agent(Agent),
    /// Put settings of a plan in force and undo them, spoken to over standard input and output
    #[command(hide = true)]
    Keeper(crate::keeper::Keeper),
}

#[derive(Debug, Args)]
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
    /// Print cells, order and expected time, and change nothing
    #[arg(long = "dry-run")]
    pub(crate) preview: bool,
    #[command(flatten)]
    pub(crate) against: crate::compare::Earlier,
    /// Print the result as one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of one form, and clap lets one through"
)]
pub(crate) struct Report {
    /// The run directory
    #[arg(value_name = "RUN_DIR")]
    pub(crate) directory: PathBuf,
    /// One HTML file with charts, which needs no network
    #[arg(long, group = "form")]
    pub(crate) html: bool,
    /// Markdown for a pull request or a wiki
    #[arg(long, group = "form")]
    pub(crate) markdown: bool,
    /// Every sample as a row of CSV
    #[arg(long, group = "form")]
    pub(crate) csv: bool,
    /// The result as one JSON document
    #[arg(long, group = "form")]
    pub(crate) json: bool,
    /// What other people's rules make of the same samples (pbench, trimmed, worst-of, netperf)
    #[arg(long, group = "form")]
    pub(crate) rules: bool,
    /// Write it to this file, over what is there, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
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
    /// Process id and start time of the controller on this machine, for `wirecost clean`; the agent ends with it
    #[arg(long, required_unless_present = "in_place")]
    pub(crate) owner: Option<String>,
    /// Use the host as it is: make no namespaces, pin nothing
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Enter this named network namespace
    #[arg(long, requires = "in_place")]
    pub(crate) netns: Option<String>,
    /// The directory that holds nothing but the copy of the program that this is; it is removed
    #[arg(long, requires = "in_place", value_name = "DIR")]
    pub(crate) temporary: Option<PathBuf>,
    /// End when nothing was asked for so many seconds
    #[arg(long)]
    pub(crate) idle_limit: Option<u64>,
    /// Cores to run on
    #[arg(
        long,
        value_delimiter = ',',
        required_unless_present = "in_place",
        conflicts_with = "in_place"
    )]
    pub(crate) cpus: Vec<u32>,
    /// Join the user namespace of this process
    #[arg(long, conflicts_with = "in_place")]
    pub(crate) user_namespace_of: Option<u32>,
}
