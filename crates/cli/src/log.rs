//! The log of `--verbose`: steps on standard error, never on standard output.

use std::io::{IsTerminal, stderr};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::time::uptime;

use crate::screen;

/// Starts to log: nothing at 0, each step at 1, everything from 2 on. Starts no thread, since an agent must be
/// single-threaded until it is in its namespaces.
pub(crate) fn start(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_timer(uptime())
        .with_ansi(screen::wants_colour(stderr().is_terminal()))
        .with_writer(stderr)
        .init();
}
