//! Loads: one workload with every option resolved. Both ends are given the same load.

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
pub use handling::{Receiving, Segmentation, Sending, WaitMode};
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

/// Most connections or flows of a load.
pub const MAX_STREAMS: u32 = 1024;
/// Largest message, request or response in bytes.
pub const MAX_MESSAGE: u32 = 1 << 20;
/// Smallest socket buffer that a load may ask for, bytes: about the least that the kernel gives (`SOCK_MIN_SNDBUF` of
/// include/net/sock.h).
pub const MIN_SOCKET_BUFFER: u32 = 4096;
/// Largest socket buffer that a load may ask for, bytes: the kernel doubles the number, and keeps it in an `int`
/// (`sock_setsockopt` of net/core/sock.c).
pub const MAX_SOCKET_BUFFER: u32 = 1 << 29;
/// Most requests outstanding on one connection.
pub const MAX_DEPTH: u32 = 1024;
/// Smallest datagram, bytes: every datagram begins with its run, flow, number and time.
pub const DATAGRAM_HEADER: u32 = 16;
/// The largest UDP payload over IPv4: 65535 less 20 of IP and 8 of UDP.
pub const MAX_DATAGRAM: u32 = 65_507;

/// Bytes of machines' memory that are filled or compared per second at least, also on a host that is busy or emulated.
const LEAST_MEMORY_RATE: u64 = 100_000_000;

/// A load. [`Load::new`] gives each workload's defaults; [`Load::faults`] finds combinations that cannot be run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// The kind of traffic.
    pub workload: Workload,
    /// Which host runs the client.
    pub direction: Direction,
    /// Connections or flows at once, 1 to [`MAX_STREAMS`]. For a migration the machines, each of which may have several
    /// connections ([`Self::connections`]).
    pub streams: u32,
    /// Bytes of a stream's message or of a request, 1 to [`MAX_MESSAGE`]; over UDP [`DATAGRAM_HEADER`] to
    /// [`MAX_DATAGRAM`]. For storage the bytes of each read or write, [`SECTOR`] to [`MAX_IO`].
    pub request: u32,
    /// Bytes of a response, in the range of `request`; 0 for streams and storage, which have none.
    pub response: u32,
    /// Threads at each end; `None` for the number that measured best.
    pub threads: Option<u32>,
    /// `SO_SNDBUF` and `SO_RCVBUF` in bytes, on both ends; `None` for the kernel's autotuning.
    pub socket_buffer: Option<u32>,
    /// Whether a TCP write is sent at once (`TCP_NODELAY`). A stream without it sends full segments only (`TCP_CORK`),
    /// whatever the size of its messages. No meaning over UDP.
    pub nodelay: bool,
    /// TCP congestion control by the kernel's name, on both ends; `None` for the kernel's default.
    pub congestion: Option<String>,
    /// The rate of each flow; `None` for as fast as possible.
    pub rate: Option<Rate>,
    /// Request/response: upper bound on the requests per second of each flow, which a run between existing hosts sets
    /// (`max_rate`). Requests that it delays are due when they are sent; `None` without a bound, and where there is a
    /// rate.
    #[serde(default)]
    pub most_per_second: Option<f64>,
    /// Requests outstanding on each connection, 1 to [`MAX_DEPTH`].
    pub depth: u32,
    /// How the sending side of a TCP stream hands over data.
    pub sending: Sending,
    /// What the receiving side of a stream does with data.
    pub receiving: Receiving,
    /// UDP segmentation offload (GSO) and receive offload (GRO).
    pub segmentation: Segmentation,
    /// How the load's threads wait for their sockets.
    pub waiting: WaitMode,
    /// DSCP of every packet, 0 to 63; `None` leaves it unset.
    pub dscp: Option<u8>,
    /// Request/response: time between a response and the next request. Seconds in records.
    #[serde(with = "seconds")]
    pub think_time: Duration,
    /// UDP request/response: time that a response may take. Later responses are counted, but enter no latency. Seconds
    /// in records.
    #[serde(with = "seconds")]
    pub reply_timeout: Duration,
    /// What ends the load by itself; `None` where it runs until it is stopped.
    pub limit: Option<Limit>,
    /// Options of a storage load; `None` for other workloads.
    #[serde(default)]
    pub storage: Option<Storage>,
    /// Storage at an NBD server that Wirecost does not run: its URI. The load then has no server of its own.
    #[serde(default)]
    pub server: Option<NbdUri>,
    /// Storage at a file, a block device or a directory: its path on the client's host. The load then has no server of
    /// its own.
    #[serde(default)]
    pub path: Option<String>,
    /// Whether a storage load may overwrite data that was at `server` or `path` before it.
    #[serde(default)]
    pub destructive: bool,
    /// `path` once more, which permits a load that writes to overwrite a target that is not empty.
    #[serde(default)]
    pub overwrite: Option<String>,
    /// Options of a migration load; `None` for other workloads.
    #[serde(default)]
    pub migration: Option<Migration>,
}

impl Load {
    /// A workload with its default options: one flow from host a to host b, as fast as possible.
    pub const fn new(workload: Workload) -> Self {
        let (request, response) = workload.default_sizes();
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
            most_per_second: None,
            depth: workload.default_depth(),
            sending: Sending::Copy,
            receiving: Receiving::Copy,
            segmentation: Segmentation {
                send: false,
                receive: false,
            },
            waiting: WaitMode::Sleep,
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

    /// TCP connections or UDP flows of the load, all streams together.
    pub fn connections(&self) -> u32 {
        let channels = self
            .migration
            .map_or(1, |migration| migration.connections());
        self.streams.saturating_mul(channels)
    }

    /// Upper bound of the time that a migration takes to fill the memory of its machines before they move, and to
    /// compare it with the memory at the destination once they have; zero for other workloads.
    pub fn memory_time(&self) -> Duration {
        Duration::from_millis(self.moved_memory() / (LEAST_MEMORY_RATE / 1000))
    }

    /// Memory of all machines of a migration, bytes; zero for other workloads.
    pub fn moved_memory(&self) -> u64 {
        let machine = self.migration.map_or(0, |migration| migration.memory);
        machine.saturating_mul(self.streams.into())
    }

    /// Whether the load has a server of its own: false for storage at `server` or `path`.
    pub const fn has_server(&self) -> bool {
        self.server.is_none() && self.path.is_none()
    }

    /// Whether messages or requests wait for a time at which they may be sent.
    pub const fn is_timed(&self) -> bool {
        self.rate.is_some() || self.most_per_second.is_some() || !self.think_time.is_zero()
    }

    /// Whether the load ends by itself, so that its window is the time from its start to its end.
    pub const fn ends_by_itself(&self) -> bool {
        self.limit.is_some() || self.workload.is_migration()
    }
}

/// One of the loads that a cell runs at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedLoad {
    /// The load's name in effects and figures: the workload's name where it runs alone, in a mix the plan's name for
    /// it.
    pub name: String,
    /// The load with its options.
    pub load: Load,
}

impl NamedLoad {
    /// A load that runs alone, named after its workload.
    pub fn alone(load: Load) -> Self {
        Self {
            name: load.workload.name().to_owned(),
            load,
        }
    }
}

/// Durations in records, as seconds.
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

    #[test]
    fn memory_of_all_machines_has_time_to_be_filled_and_compared() {
        let mut load = Load::new(Workload::Migration);
        load.streams = 8;
        load.migration = Some(Migration {
            memory: 2 << 30,
            ..Migration::USUAL
        });
        assert_eq!(load.memory_time().as_secs(), 171);
        assert_eq!(Load::new(Workload::TcpRr).memory_time(), Duration::ZERO);
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
