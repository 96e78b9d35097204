//! Addresses of hosts: where an agent is started, as in `netns:a`, `ssh:root@b=10.0.0.2`, `exec:docker exec -i c1`.
//!
//! `=ADDRESS` at the end is the data-plane address, which measured packets go to and come from; without it, the address
//! is found out.

mod error;
mod parse;
mod words;

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use error::{HostAddressError, Problem};
pub use words::{UnclosedQuote, split_words};

/// The forms of a host's address, for help texts and errors.
pub const FORMS: &str = "local, netns:NAME, ssh:[USER@]HOST[:PORT] or exec:COMMAND, each optionally followed by \
     =ADDRESS, the address that measured packets use";

/// A host: where its agent is started, and its data-plane address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HostAddress {
    /// Where the agent is started.
    pub place: Location,
    /// The data-plane address, which measured packets go to and come from; `None` where it is to be found out.
    pub data: Option<IpAddr>,
    /// The device of a link-local address; only [`with_device`](Self::with_device) accepts one.
    pub device: Option<String>,
}

/// Where an agent is started.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Location {
    /// This machine, in the caller's own network namespace.
    Local,
    /// A named network namespace of this machine, as `ip netns` keeps them.
    Netns(String),
    /// Another machine, reached with the user's own ssh client.
    Ssh(SshHost),
    /// The host that a command's standard input and output lead to.
    Exec(CommandLine),
}

impl Location {
    /// Whether the agent certainly runs on this machine: a command may lead anywhere.
    pub const fn is_here(&self) -> bool {
        matches!(self, Self::Local | Self::Netns(_))
    }
}

/// The destination given to an ssh client. The host may be an alias of the user's own configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SshHost {
    /// The user to log in as, if given.
    pub user: Option<String>,
    /// Name, alias or address of the host; an IPv6 address without brackets.
    pub host: String,
    /// The TCP port, if given.
    pub port: Option<u16>,
}

/// A command and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommandLine {
    /// The command line as the user wrote it.
    pub text: String,
    /// The program and its arguments: at least one, the first not empty.
    pub words: Vec<String>,
}

/// The form that [`HostAddress`] reads, without the data-plane address.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Netns(name) => write!(f, "netns:{name}"),
            Self::Ssh(ssh) => write!(f, "ssh:{ssh}"),
            Self::Exec(command) => write!(f, "exec:{}", command.text),
        }
    }
}

/// The form of ssh's URIs, without the scheme: `root@[fd00::1]:22`.
impl fmt::Display for SshHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The form that reads back as the same host.
impl fmt::Display for HostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)?;
        self.data.map_or(Ok(()), |data| write!(f, "={data}"))?;
        let device = self.device.as_ref();
        device.map_or(Ok(()), |device| write!(f, "%{device}"))
    }
}

impl From<HostAddress> for String {
    fn from(host: HostAddress) -> Self {
        host.to_string()
    }
}

impl TryFrom<String> for HostAddress {
    type Error = HostAddressError;

    fn try_from(text: String) -> Result<Self, HostAddressError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests;
