//! What a load is: one workload with every option resolved. Both of its ends are given the same.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::end_window::End;

mod address;
mod level;
mod migration;
mod nbd_uri;
pub(crate) mod older;
mod rules;
mod storage;

pub use address::Address;
pub(crate) use level::of_any_version as levels_of_any_version;
pub use level::{LoadLevel, LoadPart};
pub use migration::{
    DirtyOrder, Fallback, MAX_CHANNELS, MAX_DOWNTIME, MAX_MEMORY, MAX_PAUSE, MAX_ROUNDS,
    MAX_SENT_FACTOR, MAX_VIRTUAL, MAX_WATCHED, MIN_MEMORY, MIN_VIRTUAL_MEMORY, Migration,
    MoveEngine, PAGE,
};
pub use nbd_uri::NbdUri;
pub use rules::{Fault, MAX_REPLY_TIMEOUT, MAX_THINK_TIME};
pub use storage::{
    Backing, MAX_EXPORT, MAX_FLUSH_EVERY, MAX_IO, PATH_PATIENCE, Pattern, SECTOR, Storage,
};

/// Most connections or flows of one load.
pub const MAX_STREAMS: u32 = 1024;
/// Largest message, request or response in bytes.
pub const MAX_MESSAGE: u32 = 1 << 20;
/// Smallest socket buffer that may be asked for, bytes: about what the kernel gives whoever asks for none
/// (`SOCK_MIN_SNDBUF` of include/net/sock.h).
pub const MIN_SOCKET_BUFFER: u32 = 4096;
/// Largest socket buffer in bytes: the kernel doubles what it is asked for, and keeps it in an `int`
/// (`sock_setsockopt` of net/core/sock.c).
pub const MAX_SOCKET_BUFFER: u32 = 1 << 29;
/// Most requests outstanding on one connection.
pub const MAX_DEPTH: u32 = 1024;
/// Bytes at the head of every datagram that tell its run, flow, number and time: the smallest datagram.
pub const DATAGRAM_HEADER: u32 = 16;
/// The largest UDP payload over IPv4: 65535 less 20 of IP and 8 of UDP.
pub const MAX_DATAGRAM: u32 = 65_507;

/// What is run between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Workload {
    /// The client writes, the server reads, as fast as it goes.
    TcpStream = 1,
    /// Both write and read at once, on each connection.
    TcpBidirectional = 2,
    /// Requests and responses on connections that stay.
    TcpRr = 3,
    /// A connection for each request and response.
    TcpCrr = 4,
    /// Datagrams from client to server, as fast as it goes or at a rate.
    UdpStream = 5,
    /// Requests and responses in datagrams, either of which may be lost.
    UdpRr = 6,
    /// Reads and writes of blocks over the NBD protocol.
    Storage = 7,
    /// Memory of machines that go on writing to it (live migration).
    Migration = 8,
}

impl Workload {
    /// Every workload.
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

    /// Their names, in the same order.
    pub const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = Self::ALL[index].name();
            index += 1;
        }
        names
    };

    /// What it does, in a line.
    pub const fn about(self) -> &'static str {
        match self {
            Self::TcpStream => "One writes, the other reads, as fast as it goes",
            Self::TcpBidirectional => "Both write and read at once on each connection",
            Self::TcpRr => "Requests and responses on connections that stay",
            Self::TcpCrr => "A connection for each request and response",
            Self::UdpStream => "Datagrams, as fast as it goes or at a rate",
            Self::UdpRr => "Requests and responses in datagrams",
            Self::Storage => "Reads and writes of blocks (NBD)",
            Self::Migration => "Memory of running machines, by pre-copy (live migration)",
        }
    }

    /// As plans, commands and records write it.
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

    /// By its name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|workload| workload.name() == name)
    }

    /// Whether it goes over UDP.
    pub const fn is_udp(self) -> bool {
        matches!(self, Self::UdpStream | Self::UdpRr)
    }

    /// Whether it is made of requests and responses, and so has latencies.
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

    /// Whether its requests are reads and writes of blocks.
    pub const fn is_storage(self) -> bool {
        matches!(self, Self::Storage)
    }

    /// Whether it moves the memory of machines. Such a load is over when they have moved.
    pub const fn is_migration(self) -> bool {
        matches!(self, Self::Migration)
    }

    /// Whether a client that is done has heard from its server that it has everything.
    pub const fn is_confirmed(self) -> bool {
        self.is_request_response() || self.is_migration()
    }

    /// Whether it is a stream over TCP, one way or both.
    pub const fn is_tcp_stream(self) -> bool {
        matches!(self, Self::TcpStream | Self::TcpBidirectional)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which host has the load's client: who asks, or sends.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Host a asks or sends, host b answers or receives.
    #[default]
    AToB,
    /// The other way round.
    BToA,
}

impl Direction {
    /// The other one.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::AToB => Self::BToA,
            Self::BToA => Self::AToB,
        }
    }

    /// Both.
    pub const ALL: [Self; 2] = [Self::AToB, Self::BToA];

    /// As plans and records write it.
    pub const fn key(self) -> &'static str {
        match self {
            Self::AToB => "a-to-b",
            Self::BToA => "b-to-a",
        }
    }

    /// The host that has the end, `a` or `b`.
    pub const fn host_of(self, end: End) -> &'static str {
        match (self, end) {
            (Self::AToB, End::Client) | (Self::BToA, End::Server) => "a",
            (Self::AToB, End::Server) | (Self::BToA, End::Client) => "b",
        }
    }
}

/// How fast each flow of a load goes where it is not as fast as possible.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Streams: bits of messages per second and flow; of a migration of each machine, at most. TCP is paced by the kernel (`SO_MAX_PACING_RATE`), datagrams by
    /// their sending thread, in bursts of 0.2 to 1 ms; what a delay of more than 10 ms kept back is not made up for.
    BitsPerSecond(u64),
    /// Request/response: requests per second and flow, due at random (a Poisson process), whether answers came or not.
    /// From due to sent is lateness, from sent to answered latency.
    RequestsPerSecond(f64),
}

impl Rate {
    /// Each flow's part of what is meant for all of them.
    #[must_use]
    pub fn shared_by(self, flows: u32) -> Self {
        let flows = flows.max(1);
        match self {
            Self::BitsPerSecond(bits) => Self::BitsPerSecond(bits / u64::from(flows)),
            Self::RequestsPerSecond(requests) => {
                Self::RequestsPerSecond(requests / f64::from(flows))
            }
        }
    }
}

/// What ends a load by itself; without one it runs until it is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// So long after the start.
    Time(Duration),
    /// Streams: so many bytes, all flows together.
    Bytes(u64),
    /// So many transactions, or datagrams of a stream, all flows together.
    Transactions(u64),
}

/// How the sending side hands data to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    /// The kernel copies it.
    Copy,
    /// The kernel sends from our pages (`MSG_ZEROCOPY`) where it can.
    ZeroCopy,
}

/// What the receiving side does with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receiving {
    /// Has it copied, as an application would.
    Copy,
    /// Has the kernel throw it away uncopied (`MSG_TRUNC`); of datagrams the first bytes are looked at.
    Discard,
}

/// How threads wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// They sleep until the kernel wakes them.
    Sleep,
    /// They ask again and again, and the device is polled where it can be (`SO_BUSY_POLL`): a core for each thread.
    Spin,
}

/// UDP segmentation offload, each end apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Segmentation {
    /// The sender hands over many datagrams as one (`UDP_SEGMENT`).
    pub send: bool,
    /// The receiver takes many datagrams as one (`UDP_GRO`).
    pub receive: bool,
}

/// A load. [`Load::new`] gives each workload's defaults; [`Load::faults`] says what no load can have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// What is run.
    pub workload: Workload,
    /// Which host has the client.
    pub direction: Direction,
    /// Connections or flows at once, 1 to [`MAX_STREAMS`]. Of a migration its machines, each of which may have several
    /// connections ([`Self::connections`]).
    pub streams: u32,
    /// Bytes of a stream's message, or of a request, 1 to [`MAX_MESSAGE`]. Over UDP 16 to 65507. Of storage the bytes
    /// of each read or write, 512 to [`MAX_IO`].
    pub request: u32,
    /// Bytes of a response, in the same range; 0 for streams and storage, which have none.
    pub response: u32,
    /// Threads at each end; `None` is what measured best.
    pub threads: Option<u32>,
    /// `SO_SNDBUF` and `SO_RCVBUF` in bytes, on both ends; `None` is the kernel's autotuning.
    pub socket_buffer: Option<u32>,
    /// Whether a TCP write leaves at once (`TCP_NODELAY`). A stream without it sends full segments only
    /// (`TCP_CORK`), whatever the size of its messages. Of no meaning over UDP.
    pub nodelay: bool,
    /// TCP congestion control by the kernel's name, on both ends; `None` is the kernel's default.
    pub congestion: Option<String>,
    /// How fast each flow goes; `None` is as fast as possible.
    pub rate: Option<Rate>,
    /// Requests outstanding on each connection, 1 to [`MAX_DEPTH`].
    pub depth: u32,
    /// How the sending side of a TCP stream hands over data.
    pub sending: Sending,
    /// What the receiving side of a stream does with data.
    pub receiving: Receiving,
    /// UDP segmentation offload.
    pub segmentation: Segmentation,
    /// How threads wait.
    pub waiting: Waiting,
    /// DSCP of every packet, 0 to 63; `None` leaves it alone.
    pub dscp: Option<u8>,
    /// Request/response: time between a response and the request that follows it. Seconds in records.
    #[serde(with = "seconds")]
    pub think_time: Duration,
    /// UDP request/response: how long a response may take. What comes later is counted, and is no latency. Seconds
    /// in records.
    #[serde(with = "seconds")]
    pub reply_timeout: Duration,
    /// What ends the load by itself.
    pub limit: Option<Limit>,
    /// What a storage load reads and writes; `None` of every other one.
    #[serde(default)]
    pub storage: Option<Storage>,
    /// Of storage at an NBD server that is not ours: which. Nothing of ours listens then.
    #[serde(default)]
    pub server: Option<NbdUri>,
    /// Of storage at a file, a block device or a directory: its path on the client's host. Nothing of ours listens then
    /// either.
    #[serde(default)]
    pub path: Option<String>,
    /// Whether the load may write to what was there before it: of storage at such a server or path.
    #[serde(default)]
    pub destructive: bool,
    /// The same path once more: a load that writes may overwrite what is not empty there.
    #[serde(default)]
    pub overwrite: Option<String>,
    /// What a migration load moves; `None` of every other one.
    #[serde(default)]
    pub migration: Option<Migration>,
}

impl Load {
    /// A workload as it is usually run: one flow from a to b, as fast as possible.
    pub const fn new(workload: Workload) -> Self {
        let (request, response) = match workload {
            Workload::TcpStream | Workload::TcpBidirectional => (128 << 10, 0),
            Workload::UdpStream => (1_400, 0),
            Workload::TcpRr | Workload::TcpCrr => (1, 1),
            Workload::UdpRr => (DATAGRAM_HEADER, DATAGRAM_HEADER),
            Workload::Storage => (4 << 10, 0),
            Workload::Migration => (256 << 10, 0),
        };
        Self {
            workload,
            direction: Direction::AToB,
            streams: 1,
            request,
            response,
            threads: None,
            socket_buffer: None,
            nodelay: workload.is_confirmed(),
            congestion: None,
            rate: None,
            depth: if workload.is_storage() { 32 } else { 1 },
            sending: Sending::Copy,
            receiving: Receiving::Copy,
            segmentation: Segmentation {
                send: false,
                receive: false,
            },
            waiting: Waiting::Sleep,
            dscp: None,
            think_time: Duration::ZERO,
            reply_timeout: Duration::from_millis(200),
            limit: None,
            storage: if workload.is_storage() {
                Some(Storage::USUAL)
            } else {
                None
            },
            server: None,
            path: None,
            destructive: false,
            overwrite: None,
            migration: if workload.is_migration() {
                Some(Migration::USUAL)
            } else {
                None
            },
        }
    }

    /// TCP connections or UDP flows in all.
    pub fn connections(&self) -> u32 {
        let channels = self
            .migration
            .map_or(1, |migration| migration.connections());
        self.streams.saturating_mul(channels)
    }

    /// Whether its server is one of ours: not of storage at another's server or at a path.
    pub const fn has_server(&self) -> bool {
        self.server.is_none() && self.path.is_none()
    }

    /// Whether it is over by itself, and counted from its start to its end.
    pub const fn ends_by_itself(&self) -> bool {
        self.limit.is_some() || self.workload.is_migration()
    }
}

/// One of the loads that a cell runs at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedLoad {
    /// What effects and figures call it: the workload's name where it runs alone, in a mix the plan's name for it.
    pub name: String,
    /// What is run.
    pub load: Load,
}

impl NamedLoad {
    /// A load that runs alone: it is called what its workload is called.
    pub fn alone(load: Load) -> Self {
        Self {
            name: load.workload.name().to_owned(),
            load,
        }
    }
}

/// Durations as seconds.
mod seconds {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_workload_is_possible_as_it_is_usually_run_and_has_its_name() {
        for workload in Workload::ALL {
            assert_eq!(Load::new(workload).faults(), []);
            assert_eq!(Workload::by_name(workload.name()), Some(workload));
            let json = serde_json::to_value(workload).expect("JSON");
            assert_eq!(json, workload.name());
        }
        for direction in Direction::ALL {
            let json = serde_json::to_value(direction).expect("JSON");
            assert_eq!(json, direction.key());
        }
    }

    #[test]
    fn flows_share_the_rate_of_all() {
        let bits = Rate::BitsPerSecond(1000).shared_by(4);
        assert_eq!(bits, Rate::BitsPerSecond(250));
        let requests = Rate::RequestsPerSecond(10.0).shared_by(4);
        assert_eq!(requests, Rate::RequestsPerSecond(2.5));
    }

    proptest! {
        #[test]
        fn a_load_reads_back_as_it_was_written(
            think_ms in 0u64..100_000, rate in proptest::option::of(1u64..1 << 40), depth in 1u32..1024,
        ) {
            let load = Load {
                think_time: Duration::from_millis(think_ms),
                rate: rate.map(Rate::BitsPerSecond),
                depth,
                limit: Some(Limit::Bytes(7)),
                ..Load::new(Workload::UdpRr)
            };
            let text = serde_json::to_string(&load).expect("JSON");
            prop_assert_eq!(serde_json::from_str::<Load>(&text).expect("a load"), load);
        }
    }
}
