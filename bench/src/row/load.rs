//! What is sent in a row, and what its figure counts.

/// Bytes of a request and of a response: sockperf's smallest is 14, a datagram of ours 16.
const EXCHANGE: u32 = 16;
/// Bytes of a read of storage: what most file systems ask for at least.
const BLOCK: u32 = 4096;
/// Memory of the target, MiB.
pub(crate) const EXPORT_MIB: u64 = 64;

/// What runs between the guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// TCP from guest a to guest b.
    Stream {
        /// Connections.
        streams: u32,
        /// Bytes per write.
        message: u32,
        /// `TCP_NODELAY`.
        nodelay: bool,
    },
    /// Requests and responses of [`Load::message`] bytes each, one outstanding on each connection.
    TcpRr {
        /// Connections.
        connections: u32,
    },
    /// Likewise in datagrams.
    UdpRr {
        /// Pairs of ports.
        connections: u32,
    },
    /// Datagrams from guest a to guest b, as fast as they go.
    UdpStream {
        /// Bytes of payload.
        message: u32,
        /// Whether those who can segment and aggregate datagrams (`UDP_SEGMENT`, `UDP_GRO`).
        segmentation: bool,
    },
    /// Random reads over NBD of a target that keeps [`EXPORT_MIB`] in its memory.
    Storage {
        /// Connections.
        connections: u32,
        /// Reads outstanding on each.
        depth: u32,
    },
}

impl Load {
    /// Bytes of a write, a request, a response or a datagram.
    pub(crate) fn message(self) -> u32 {
        match self {
            Self::Stream { message, .. } | Self::UdpStream { message, .. } => message,
            Self::TcpRr { .. } | Self::UdpRr { .. } => EXCHANGE,
            Self::Storage { .. } => BLOCK,
        }
    }

    /// Connections or pairs of ports.
    pub(crate) fn flows(self) -> u32 {
        match self {
            Self::Stream { streams, .. } => streams,
            Self::TcpRr { connections }
            | Self::UdpRr { connections }
            | Self::Storage { connections, .. } => connections,
            Self::UdpStream { .. } => 1,
        }
    }

    /// Whether it goes over UDP.
    pub(crate) fn is_udp(self) -> bool {
        matches!(self, Self::UdpRr { .. } | Self::UdpStream { .. })
    }

    /// Whether it is made of requests and responses.
    pub(crate) fn is_exchange(self) -> bool {
        matches!(
            self,
            Self::TcpRr { .. } | Self::UdpRr { .. } | Self::Storage { .. }
        )
    }

    /// What its figure counts.
    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::Stream { .. } => Unit::Gbps,
            Self::TcpRr { .. } | Self::UdpRr { .. } => Unit::Transactions,
            Self::UdpStream { .. } => Unit::Datagrams,
            Self::Storage { .. } => Unit::Reads,
        }
    }
}

/// What a row's figure counts, with what its CPU is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Gbit/s of payload.
    Gbps,
    /// Thousand transactions per second.
    Transactions,
    /// Thousand datagrams per second.
    Datagrams,
    /// Thousand reads of storage per second.
    Reads,
}

impl Unit {
    /// As it stands behind a figure.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gbps => "Gbit/s",
            Self::Transactions => "k transactions/s",
            Self::Datagrams => "k datagrams/s",
            Self::Reads => "k I/O per s",
        }
    }
}
