//! Why it could not run.

use std::io;

use wirecost_agent::link::LinkError;
use wirecost_bench::program::ProgramError;
use wirecost_stats::RatioError;

/// Every one ends its comparison at least: a pair with one half tells nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("{program} is not installed: apt-get install {package}")]
    Missing {
        program: &'static str,
        package: &'static str,
    },
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("no row has `{0}` in its name: --list shows them")]
    NoRow(String),
    #[error("there is no peer `{name}`: {known}")]
    NoPeer { name: String, known: String },
    #[error("the lab ({during}): {source}")]
    Lab {
        during: &'static str,
        source: LinkError,
    },
    #[error("the path does not carry datagrams of {size} bytes: {reason}")]
    Path { size: u32, reason: String },
    #[error("{name}: {message}")]
    Tool { name: String, message: String },
    #[error("the receiving guest counted nothing while {0} ran")]
    NothingArrived(&'static str),
    #[error(
        "{count} connections of {peer} ended within the window: it ran shorter than it was told to"
    )]
    EndedEarly { peer: &'static str, count: u32 },
    #[error(transparent)]
    Ratio(#[from] RatioError),
    #[error("{what}: {source}")]
    Machine {
        what: &'static str,
        source: io::Error,
    },
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    pub(crate) fn machine(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Machine { what, source }
    }

    /// Whether the other comparisons cannot go on either.
    pub(crate) fn is_fatal(&self) -> bool {
        matches!(self, Self::Lab { .. } | Self::Interrupted)
    }

    pub(crate) fn lab(during: &'static str) -> impl Fn(LinkError) -> Self {
        move |source| match source {
            LinkError::Interrupted => Self::Interrupted,
            source => Self::Lab { during, source },
        }
    }
}
