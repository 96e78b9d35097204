//! Where a load's server is.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// An address that a server listens on and a client connects to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Address {
    /// Over IP.
    Ip(SocketAddr),
    /// A Unix socket in the file system, by its path.
    Path(String),
    /// A Unix socket in the abstract namespace of a network namespace (unix(7)): no file, nothing to remove.
    Abstract(String),
}

impl Address {
    /// Of one over IP.
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
