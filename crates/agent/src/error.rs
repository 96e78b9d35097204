//! Errors of an agent's requests.

use std::error::Error;
use std::fmt::Display;
use std::io;

use thiserror::Error as ThisError;
use wirecost_meter::MeterError;
use wirecost_netbuild::BuildError;
use wirecost_probe::ProbeError;

use crate::validate::RequestError;

/// A failed operation. Its message is for the user; the request that it was part of gives the stage of its
/// [`Refusal`](crate::protocol::Refusal).
#[derive(Debug, ThisError)]
pub enum AgentError {
    /// Building or changing the host's network failed.
    #[error(transparent)]
    Network(#[from] BuildError),
    /// Open vSwitch on the host failed.
    #[error(transparent)]
    OpenVswitch(#[from] wirecost_ovs::Error),
    /// The eBPF datapath failed.
    #[error(transparent)]
    Ebpf(#[from] wirecost_vtep::Error),
    /// Reading counters failed.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// Probing a path failed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The request is one that no controller of this version sends.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A system call failed.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A named step failed.
    #[error("{step}: {source}")]
    Step {
        /// The step, such as "entering the guest's namespace".
        step: String,
        /// The error of the step.
        source: Box<dyn Error + Send + Sync>,
    },
    /// One or several loads failed.
    #[error("load {name}: {problem}")]
    Load {
        /// Name of the load, or names of several.
        name: String,
        /// What went wrong.
        problem: String,
    },
    /// The request came before another one that it needs.
    #[error("{0}")]
    NotReady(&'static str),
    /// What is wrong and what to do about it, as a message.
    #[error("{0}")]
    Refused(String),
    /// A worker thread panicked.
    #[error("a thread of the agent panicked")]
    Thread,
    /// Several operations failed.
    #[error("{}", joined(.0))]
    Several(Vec<AgentError>),
}

/// A result with [`AgentError`] unless another error type is named.
pub(crate) type Result<T, E = AgentError> = std::result::Result<T, E>;

impl AgentError {
    /// `Ok` where nothing failed, else an error with everything that failed.
    ///
    /// # Errors
    /// `failed` is not empty.
    pub(crate) fn all(mut failed: Vec<Self>) -> Result<()> {
        match failed.len() {
            0 => Ok(()),
            1 => Err(failed.remove(0)),
            _ => Err(Self::Several(failed)),
        }
    }

    /// This error together with one that followed from it.
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

/// Adds the step that failed to an error.
pub(crate) trait Context<T> {
    /// `step` names the step, such as "entering the guest's namespace".
    fn context(self, step: impl Display) -> Result<T>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> Context<T> for std::result::Result<T, E> {
    fn context(self, step: impl Display) -> Result<T> {
        self.map_err(|source| AgentError::Step {
            step: step.to_string(),
            source: source.into(),
        })
    }
}

/// The messages of several errors as one.
pub(crate) fn joined(errors: &[impl Display]) -> String {
    let words: Vec<String> = errors.iter().map(ToString::to_string).collect();
    words.join("; ")
}
