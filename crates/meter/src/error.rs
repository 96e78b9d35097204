//! What can go wrong: each error names the file, the line and what should have been there.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why counters could not be read.
#[derive(Debug, Error)]
pub enum MeterError {
    /// A file could not be opened or read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        cause: io::Error,
    },
    /// A file is not in the format that kernels write.
    #[error("{}, {cause}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Line and expectation.
        cause: ParseError,
    },
    /// A core that is to be measured has no counters.
    #[error(
        "cpu{cpu} has no line in /proc/stat: it is offline or does not exist; online are {online:?}"
    )]
    Offline {
        /// The core asked for.
        cpu: u32,
        /// Those there are.
        online: Vec<u32>,
    },
    /// The kernel keeps no run time per task.
    #[error(
        "foreign load cannot be seen: this kernel keeps no run time in /proc/PID/schedstat \
         (CONFIG_SCHED_INFO)"
    )]
    NoRunTime,
    /// Not the dotted name of a kernel setting.
    #[error(
        "`{0}` is no sysctl: write its dotted name, such as net.ipv4.tcp_rmem (a dot within a \
         device's name as /)"
    )]
    SysctlName(String),
}

/// Text that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: expected {expected}, found {}", quoted(found))]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What should have been there.
    pub expected: &'static str,
    /// What was there, shortened to 60 characters; empty where the text ended.
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

/// The decimal counter in `field`, of which an error says what it was `expected` to be.
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
