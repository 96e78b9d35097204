//! How much is printed on standard error.

use clap::{ArgAction, Args};

/// How much is printed on standard error.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Verbosity {
    /// Print no progress, and of a run's result only the answer; errors go to standard error
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log each step on standard error, the agents' too; twice for everything
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}
