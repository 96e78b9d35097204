//! What is wrong with an agent or its line.

use std::io;

use crate::protocol::Stage;

/// What is wrong with an agent or its line.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It could not be started.
    #[error("starting the agent of host {host}: {source}")]
    Start {
        /// Which host.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// The way to the host is there, and no agent can be started at its end.
    #[error("no agent could be started on host {host}: {message}")]
    NoAgent {
        /// Which host.
        host: String,
        /// Why, and what to do.
        message: String,
    },
    /// The two ends do not speak the same version of the protocol.
    #[error(
        "host {host}: its wirecost speaks version {theirs} of the protocol of agents, this one version {ours}: use \
         the same wirecost on both"
    )]
    Version {
        /// Which host.
        host: String,
        /// The controller's.
        ours: u32,
        /// The agent's.
        theirs: u32,
    },
    /// It ended, or its line closed.
    #[error("the agent of host {host} ended while {during}: {how}")]
    Ended {
        /// Which host.
        host: String,
        /// What it was doing.
        during: &'static str,
        /// Exit status or signal, and what it said last.
        how: String,
    },
    /// It did not answer in time.
    #[error(
        "the agent of host {host} did not answer within {seconds:.1} s while {during}: the machine is \
         overloaded, or the agent was stopped"
    )]
    Silent {
        /// Which host.
        host: String,
        /// What it was doing.
        during: &'static str,
        /// The limit.
        seconds: f64,
    },
    /// It answered that it could not do what was asked. The agent goes on.
    #[error("host {host}: {message}")]
    Refused {
        /// Which host.
        host: String,
        /// Where it stopped.
        stage: Stage,
        /// The agent's words.
        message: String,
    },
    /// It answered something else than this request has for an answer.
    #[error(
        "the agent of host {host} gave an answer that does not belong to the question ({during}): not \
         the same wirecost?"
    )]
    Confused {
        /// Which host.
        host: String,
        /// What it was asked.
        during: String,
    },
    /// A setting could not be undone: whatever is measured after it is measured with it.
    #[error("{message}: the run ends, for all that followed would be measured with it")]
    Unsettled {
        /// What, and why not.
        message: String,
    },
    /// The user interrupted the wait.
    #[error("interrupted")]
    Interrupted,
}
