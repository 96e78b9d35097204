//! Errors of an agent or of the connection to it.

use std::io;

use crate::protocol::Stage;

/// Errors of an agent or of the connection to it.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It could not be started.
    #[error("starting the agent of host {host}: {source}")]
    Start {
        /// The host's name.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// The way to the host is there, and no agent can be started at its end.
    #[error("no agent could be started on host {host}: {message}")]
    NoAgent {
        /// The host's name.
        host: String,
        /// The reason, and what to do.
        message: String,
    },
    /// The two ends do not speak the same version of the protocol.
    #[error(
        "host {host}: its wirecost speaks version {theirs} of the protocol of agents, this one version {ours}: use \
         the same wirecost on both"
    )]
    Version {
        /// The host's name.
        host: String,
        /// The controller's.
        ours: u32,
        /// The agent's.
        theirs: u32,
    },
    /// It ended, or its line closed.
    #[error("the agent of host {host} ended while {during}: {how}")]
    Ended {
        /// The host's name.
        host: String,
        /// The request it was executing.
        during: &'static str,
        /// Exit status or signal, and what it said last.
        how: String,
    },
    /// It did not answer within the time-out.
    #[error(
        "the agent of host {host} did not answer within {seconds:.1} s while {during}: the machine is \
         overloaded, or the agent was stopped"
    )]
    Timeout {
        /// The host's name.
        host: String,
        /// The request it was executing.
        during: &'static str,
        /// The limit.
        seconds: f64,
    },
    /// It answered that it could not do what was asked. The agent goes on.
    #[error("host {host}: {message}")]
    Refused {
        /// The host's name.
        host: String,
        /// Where it stopped.
        stage: Stage,
        /// The agent's words.
        message: String,
    },
    /// It answered something else than this request has for an answer.
    #[error(
        "the agent of host {host} sent an unexpected reply ({during}): use the same wirecost on both"
    )]
    UnexpectedReply {
        /// The host's name.
        host: String,
        /// What it was asked.
        during: String,
    },
    /// A setting could not be undone: whatever is measured after it is measured with it.
    #[error("{message}: the run ends, because every later sample would be measured with it")]
    NotUndone {
        /// What, and why not.
        message: String,
    },
    /// The user interrupted the wait.
    #[error("interrupted")]
    Interrupted,
}
