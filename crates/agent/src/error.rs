//! Why an agent could not do what it was asked.

use std::error::Error;
use std::fmt::Display;
use std::io;

use thiserror::Error as ThisError;
use wirecost_meter::MeterError;
use wirecost_netbuild::BuildError;
use wirecost_probe::ProbeError;

/// An operation that failed, in words for the user. The request that it was part of gives the stage of its
/// [`Refusal`](crate::protocol::Refusal).
#[derive(Debug, ThisError)]
pub enum AgentError {
    /// A step of building or changing the host's network.
    #[error(transparent)]
    Network(#[from] BuildError),
    /// The host's Open vSwitch.
    #[error(transparent)]
    OpenVswitch(#[from] wirecost_ovs::Error),
    /// The eBPF datapath.
    #[error(transparent)]
    Ebpf(#[from] wirecost_vtep::Error),
    /// Reading counters.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// Probing a path.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A system call.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A step that failed.
    #[error("{step}: {source}")]
    Step {
        /// What was being done.
        step: String,
        /// Why it failed.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A load, by name.
    #[error("load {name}: {problem}")]
    Load {
        /// The load, or several of them.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A request that came before what it needs.
    #[error("{0}")]
    NotReady(&'static str),
    /// What is wrong and what to do, in words.
    #[error("{0}")]
    Refused(String),
    /// A worker thread panicked.
    #[error("a thread of the agent panicked")]
    Thread,
    /// Several things that failed.
    #[error("{}", joined(.0))]
    Several(Vec<AgentError>),
}

/// With [`AgentError`], unless another error is named.
pub(crate) type Result<T, E = AgentError> = std::result::Result<T, E>;

impl AgentError {
    /// Nothing, or everything that failed.
    ///
    /// # Errors
    /// Where `failed` is not empty.
    pub(crate) fn all(mut failed: Vec<Self>) -> Result<()> {
        match failed.len() {
            0 => Ok(()),
            1 => Err(failed.remove(0)),
            _ => Err(Self::Several(failed)),
        }
    }

    /// This error, and one that followed from it.
    pub(crate) fn and(self, also: Self) -> Self {
        Self::Several(vec![self, also])
    }
}

impl From<&'static str> for AgentError {
    fn from(words: &'static str) -> Self {
        Self::NotReady(words)
    }
}

impl From<String> for AgentError {
    fn from(words: String) -> Self {
        Self::Refused(words)
    }
}

/// Names the step that a failed call was part of.
pub(crate) trait Step<T> {
    /// `step` is what was being done, such as "entering the guest's namespace".
    fn step(self, step: impl Display) -> Result<T>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Step<T> for std::result::Result<T, E> {
    fn step(self, step: impl Display) -> Result<T> {
        self.map_err(|source| AgentError::Step {
            step: step.to_string(),
            source: source.into(),
        })
    }
}

fn joined(errors: &[AgentError]) -> String {
    let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
    words.join("; ")
}
