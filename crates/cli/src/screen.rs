//! What the terminal can show.

use std::io::{IsTerminal, stdout};

use wirecost_report::Terminal;

/// Width without a terminal: pipes and files have room.
const PIPE_WIDTH: usize = 120;

/// Standard output's width, and colour unless it is a pipe or `NO_COLOR` is set (no-color.org).
pub(crate) fn terminal() -> Terminal {
    let is_terminal = stdout().is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let width = terminal_size::terminal_size().map_or(PIPE_WIDTH, |(width, _)| width.0.into());
    Terminal {
        width: if is_terminal { width } else { PIPE_WIDTH },
        colour: is_terminal && !plain,
    }
}
