//! The workloads, and the properties of each.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::DATAGRAM_HEADER;

/// The traffic between a load's client and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Workload {
    /// The client writes and the server reads, as fast as the path allows.
    TcpStream = 1,
    /// Client and server both write and read at the same time, on each connection.
    TcpBidirectional = 2,
    /// Requests and responses on long-lived connections.
    TcpRr = 3,
    /// A new connection for each request and response.
    TcpCrr = 4,
    /// Datagrams from client to server, as fast as the path allows or at a rate.
    UdpStream = 5,
    /// Requests and responses in datagrams, which may be lost.
    UdpRr = 6,
    /// Block reads and writes over the NBD protocol.
    Storage = 7,
    /// The memory of machines that go on writing to it (live migration).
    Migration = 8,
}

impl Workload {
    /// All workloads.
    pub const ALL: [Self; 8] = [
        Self::TcpStream,
        Self::TcpBidirectional,
        Self::TcpRr,
        Self::TcpCrr,
        Self::UdpStream,
        Self::UdpRr,
        Self::Storage,
        Self::Migration,
    ];

    /// The names of [`Self::ALL`], in the same order.
    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = Self::ALL[index].name();
            index += 1;
        }
        names
    };

    /// What the workload does, in one line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::TcpStream => "One end sends, the other receives, at full speed",
            Self::TcpBidirectional => "Both write and read at once on each connection",
            Self::TcpRr => "Requests and responses on persistent connections",
            Self::TcpCrr => "A connection for each request and response",
            Self::UdpStream => "Datagrams, at full speed or at a rate",
            Self::UdpRr => "Requests and responses in datagrams",
            Self::Storage => "Reads and writes of blocks (NBD)",
            Self::Migration => "Memory of running machines, by pre-copy (live migration)",
        }
    }

    /// The name in plans, commands and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TcpStream => "tcp-stream",
            Self::TcpBidirectional => "tcp-bidirectional",
            Self::TcpRr => "tcp-rr",
            Self::TcpCrr => "tcp-crr",
            Self::UdpStream => "udp-stream",
            Self::UdpRr => "udp-rr",
            Self::Storage => "storage",
            Self::Migration => "migration",
        }
    }

    /// The workload of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
    }

    /// Whether the workload runs over UDP.
    pub const fn is_udp(self) -> bool {
        matches!(self, Self::UdpStream | Self::UdpRr)
    }

    /// Whether the workload consists of requests and responses, and so has latencies.
    pub const fn is_request_response(self) -> bool {
        matches!(
            self,
            Self::TcpRr | Self::TcpCrr | Self::UdpRr | Self::Storage
        )
    }

    /// Whether a connection may have several requests outstanding.
    pub const fn has_depth(self) -> bool {
        matches!(self, Self::TcpRr | Self::UdpRr | Self::Storage)
    }

    /// Whether a response that does not come in time is given up: a request in a datagram may be lost.
    pub const fn has_reply_timeout(self) -> bool {
        matches!(self, Self::UdpRr)
    }

    /// Bytes of a message or request, and of a response, where none are given.
    pub(super) const fn default_sizes(self) -> (u32, u32) {
        match self {
            Self::TcpStream | Self::TcpBidirectional => (128 << 10, 0),
            Self::UdpStream => (1_400, 0),
            Self::TcpRr | Self::TcpCrr => (1, 1),
            Self::UdpRr => (DATAGRAM_HEADER, DATAGRAM_HEADER),
            Self::Storage => (4 << 10, 0),
            Self::Migration => (256 << 10, 0),
        }
    }

    /// Requests that a connection has outstanding, where no number is given.
    pub(super) const fn default_depth(self) -> u32 {
        if self.is_storage() { 32 } else { 1 }
    }

    /// Whether requests are block reads and writes.
    pub const fn is_storage(self) -> bool {
        matches!(self, Self::Storage)
    }

    /// Whether the workload moves the memory of machines. Such a load ends when the machines have moved.
    pub const fn is_migration(self) -> bool {
        matches!(self, Self::Migration)
    }

    /// Whether a client that has finished knows from the server's answers that all its data arrived.
    pub const fn is_confirmed(self) -> bool {
        self.is_request_response() || self.is_migration()
    }

    /// Whether the workload is a TCP stream, in one direction or both.
    pub const fn is_tcp_stream(self) -> bool {
        matches!(self, Self::TcpStream | Self::TcpBidirectional)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
