//! Errors of this crate: each names the file, the line and what was expected there.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why counters could not be read.
#[derive(Debug, Error)]
pub enum MeterError {
    /// A file could not be opened or read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The kernel's error.
        cause: io::Error,
    },
    /// A file is not in the format that kernels write.
    #[error("{}, {cause}", path.display())]
    Format {
        /// Path of the file.
        path: PathBuf,
        /// The line, what was expected and what was found.
        cause: ParseError,
    },
    /// A core that is to be measured has no counters.
    #[error(
        "cpu{cpu} has no line in /proc/stat: it is offline or does not exist; online are {online:?}"
    )]
    Offline {
        /// Number of the requested core.
        cpu: u32,
        /// Numbers of the online cores.
        online: Vec<u32>,
    },
    /// The kernel keeps no run time per task.
    #[error(
        "foreign load cannot be seen: this kernel keeps no run time in /proc/PID/schedstat \
         (CONFIG_SCHED_INFO)"
    )]
    NoRunTime,
    /// The text is not the dotted name of a sysctl.
    #[error(
        "`{0}` is no sysctl: write its dotted name, such as net.ipv4.tcp_rmem (a dot within a \
         device's name as /)"
    )]
    SysctlName(String),
}

/// Text that is not in the expected format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: expected {expected}, found {}", quoted(found))]
pub struct ParseError {
    /// Line number, from 1.
    pub line: usize,
    /// What was expected in the line.
    pub expected: &'static str,
    /// What was found, shortened to 60 characters; empty where the text ended.
    pub found: String,
}

impl ParseError {
    pub(crate) fn new(line: usize, expected: &'static str, found: &str) -> Self {
        Self {
            line,
            expected,
            found: found.chars().take(60).collect(),
        }
    }
}

fn quoted(found: &str) -> String {
    if found.is_empty() {
        "nothing".to_owned()
    } else {
        format!("`{found}`")
    }
}

/// Parses `field` as a decimal counter; `expected` is what the error says was expected.
pub(crate) fn counter(
    line: usize,
    field: Option<&str>,
    expected: &'static str,
) -> Result<u64, ParseError> {
    let field = field.unwrap_or("");
    field
        .parse()
        .map_err(|_| ParseError::new(line, expected, field))
}
