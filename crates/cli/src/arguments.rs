//! The command line: the list of commands. Each command's arguments are in its own file.

use clap::{Parser, Subcommand};

use crate::agent::Agent;
use crate::check::Check;
use crate::clean::Clean;
use crate::compare::Compare;
use crate::completions::Completions;
use crate::diagnose::Diagnose;
use crate::doctor::Doctor;
use crate::load::Load;
use crate::man::Man;
use crate::overhead::Overhead;
use crate::plans::{Plans, Schema};
use crate::report::Report;
use crate::run::Run;
use crate::settings_guard::SettingsGuard;
use crate::study::Study;
use crate::tunnel::Tunnel;
use crate::verbosity::Verbosity;

/// Measure which frame size, which overlay encapsulation and which offloads a network should run.
#[derive(Debug, Parser)]
#[command(name = "wirecost", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build the networks of a plan, measure them, and say what pays
    Run(Run),
    /// Load the path between two hosts by hand, and print what it carries
    Load(Box<Load>),
    /// Find the path MTU between two hosts, and the commands that fix it
    Check(Check),
    /// Find what limits the path between two hosts, and which of their settings matter
    Diagnose(Diagnose),
    /// Print the result of a run again, from its record; also as HTML, Markdown or CSV
    Report(Report),
    /// Compare a run with an earlier one, or two loads by hand, from their records
    Compare(Compare),
    /// Run a published measurement here, and say which of its comparisons agree
    Study(Study),
    /// List the built-in plans, or print one
    Plans(Plans),
    /// Print the JSON Schema of plans, for editors, or of what a check or a load prints
    Schema(Schema),
    /// Compute what encapsulations cost: guest MTU, headers, goodput
    Overhead(Overhead),
    /// Make, show and remove tunnels by hand, to test applications over them
    Tunnel(Tunnel),
    /// End agents whose run is gone and remove leftovers of tunnels
    Clean(Clean),
    /// Check what this machine can do, and say how to fix what it cannot
    Doctor(Doctor),
    /// Print a script that lets a shell complete `wirecost`
    Completions(Completions),
    /// Write the manual pages
    #[command(hide = true)]
    Man(Man),
    /// Run as the agent of a host, controlled over standard input and output
    #[command(hide = true)]
    Agent(Agent),
    /// Apply settings of a plan and undo them, controlled over standard input and output
    #[command(hide = true)]
    SettingsGuard(SettingsGuard),
}
