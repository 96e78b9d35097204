//! Addresses of a load's servers.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// An address that a server listens on and a client connects to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Address {
    /// An IP address and port.
    Ip(SocketAddr),
    /// The path of a Unix socket in the file system.
    Path(String),
    /// The name of a Unix socket in the abstract namespace (unix(7)) of a network namespace: no file has to be removed.
    Abstract(String),
}

impl Address {
    /// The IP address and port; `None` for a Unix socket.
    pub const fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Ip(address) => Some(*address),
            Self::Path(_) | Self::Abstract(_) => None,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Path(path) => write!(f, "Unix socket {path}"),
            Self::Abstract(name) => write!(f, "Unix socket @{name}"),
        }
    }
}
