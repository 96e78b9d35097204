//! Errors of an agent or of the connection to it.

use std::io;

use crate::protocol::Stage;

/// Errors of an agent or of the connection to it.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The agent could not be started.
    #[error("starting the agent of host {host}: {source}")]
    Start {
        /// Name of the host.
        host: String,
        /// Error of starting the process.
        source: io::Error,
    },
    /// The host was reached, but no agent could be started there.
    #[error("no agent could be started on host {host}: {message}")]
    NoAgent {
        /// Name of the host.
        host: String,
        /// The reason, and what to do.
        message: String,
    },
    /// An existing host of a run that can be measured no longer, such as one that has lost its address.
    #[error("host {host} can no longer be measured: {message}")]
    Lost {
        /// Name of the host.
        host: String,
        /// The reason.
        message: String,
    },
    /// Agent and controller have different versions of the protocol.
    #[error(
        "host {host}: its wirecost speaks version {theirs} of the protocol of agents, this one version {ours}: use \
         the same wirecost on both"
    )]
    Version {
        /// Name of the host.
        host: String,
        /// The controller's version.
        ours: u32,
        /// The agent's version.
        theirs: u32,
    },
    /// The agent ended, or its stream closed.
    #[error("the agent of host {host} ended while {during}: {how}")]
    Ended {
        /// Name of the host.
        host: String,
        /// The request that it was executing, as [`crate::protocol::Request::doing`] words it.
        during: &'static str,
        /// Exit status or signal, and the last lines of standard error.
        how: String,
    },
    /// The agent did not answer in time.
    #[error(
        "the agent of host {host} did not answer within {seconds:.1} s while {during}: the machine is \
         overloaded, or the agent was stopped"
    )]
    Timeout {
        /// Name of the host.
        host: String,
        /// The request that it was executing, as [`crate::protocol::Request::doing`] words it.
        during: &'static str,
        /// How long the answer was waited for, seconds.
        seconds: f64,
    },
    /// The agent could not do what was asked, and goes on.
    #[error("host {host}: {message}")]
    Refused {
        /// Name of the host.
        host: String,
        /// The stage that failed.
        stage: Stage,
        /// The agent's message.
        message: String,
    },
    /// The agent's reply does not belong to the request.
    #[error(
        "the agent of host {host} sent an unexpected reply ({during}): use the same wirecost on both"
    )]
    UnexpectedReply {
        /// Name of the host.
        host: String,
        /// The request.
        during: String,
    },
    /// A setting could not be undone: every later sample would be measured with it.
    #[error("{message}: the run ends, because every later sample would be measured with it")]
    NotUndone {
        /// The setting, and why it could not be undone.
        message: String,
    },
    /// The user interrupted the wait.
    #[error("interrupted")]
    Interrupted,
}
