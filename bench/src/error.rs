//! Why it could not run.

use std::io;
use std::path::PathBuf;

use wirecost_agent::link::LinkError;
use wirecost_stats::RatioError;

/// Every one ends the comparison: a pair with one half tells nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("{program} is not installed: apt-get install {package}")]
    Missing {
        program: &'static str,
        package: &'static str,
    },
    #[error("no program {}: cargo build --release -p wirecost, or name one with --program", .0.display())]
    NoProgram(PathBuf),
    #[error("the lab ({during}): {source}")]
    Lab {
        during: &'static str,
        source: LinkError,
    },
    #[error("the path does not carry datagrams of {size} bytes: {reason}")]
    Path { size: u32, reason: String },
    #[error("iperf3 {side}: {said}")]
    Iperf3 { side: &'static str, said: String },
    #[error("the lab's receiving guest counted nothing while {0} ran")]
    NothingArrived(&'static str),
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

    pub(crate) fn lab(during: &'static str) -> impl Fn(LinkError) -> Self {
        move |source| match source {
            LinkError::Interrupted => Self::Interrupted,
            source => Self::Lab { during, source },
        }
    }
}
