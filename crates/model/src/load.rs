//! What a load is: one workload with every option resolved. Both of its ends are given the same.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod address;
mod direction;
mod handling;
mod level;
mod migration;
mod nbd_uri;
pub(crate) mod older;
mod rate;
mod rules;
mod storage;
mod workload;

pub use address::Address;
pub use direction::Direction;
pub use handling::{Receiving, Segmentation, Sending, Waiting};
pub(crate) use level::of_any_version as levels_of_any_version;
pub use level::{LoadLevel, LoadPart};
pub use migration::{
    DirtyOrder, Fallback, MAX_CHANNELS, MAX_DOWNTIME, MAX_MEMORY, MAX_PAUSE, MAX_ROUNDS,
    MAX_SENT_FACTOR, MAX_VIRTUAL, MAX_WATCHED, MIN_MEMORY, MIN_VIRTUAL_MEMORY, Migration,
    MoveEngine, PAGE,
};
pub use nbd_uri::NbdUri;
pub use rate::{Limit, Rate};
pub use rules::{Fault, MAX_REPLY_TIMEOUT, MAX_THINK_TIME};
pub use storage::{
    Backing, MAX_EXPORT, MAX_FLUSH_EVERY, MAX_IO, PATH_PATIENCE, Pattern, SECTOR, Storage,
};
pub use workload::Workload;

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
