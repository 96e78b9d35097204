//! The options of loads: which ones each workload has, with its own ranges and defaults. The files
//! below hold options shared by several workloads, by topic.

/// Declares a workload: an example, its meaning, and its options.
macro_rules! table {
    ($visible:vis $name:ident $workload:literal $example:literal $doc:literal: $($option:literal => $make:expr),* $(,)?) => {
        $visible static $name: Table = Table {
            key: Key {
                path: concat!("load.", $workload),
                kind: Kind::Map,
                example: $example,
                doc: $doc,
                ..BASE
            },
            options: &[
                $(Key {
                    path: concat!("load.", $workload, ".", $option),
                    factor: true,
                    ..$make
                }),*
            ],
        };
    };
}

mod connection;
mod message;
mod migration;
mod pace;
mod storage;

use wirecost_model::load::Workload;

use self::connection::{
    CONGESTION, DIRECTION, DSCP, SOCKET_BUFFER, SPIN, STREAMS, STREAMS_PER_GUEST, THREADS,
};
use self::message::{
    DISCARD, REQUEST_NODELAY, SEGMENTATION, STREAM_NODELAY, TCP_MESSAGE, TCP_REQUEST, TCP_RESPONSE,
    UDP_MESSAGE, UDP_REQUEST, UDP_RESPONSE, ZERO_COPY,
};
use self::migration::MIGRATION;
use self::pace::{
    BIT_RATE, DEPTH, LIMIT_BYTES, LIMIT_BYTES_ONE_WAY, LIMIT_DATAGRAMS, LIMIT_TRANSACTIONS,
    REPLY_TIMEOUT, REQUEST_RATE, THINK_TIME, TOTAL_BIT_RATE, TOTAL_REQUEST_RATE,
};
use self::storage::STORAGE;
use super::{BASE, Key, Kind};

/// The key of a workload and the keys of its options.
struct Table {
    /// The key `load.WORKLOAD`.
    key: Key,
    /// The options, the ones that characterise the workload first.
    options: &'static [Key],
}

fn table(workload: Workload) -> &'static Table {
    match workload {
        Workload::TcpStream => &TCP_STREAM,
        Workload::TcpBidirectional => &TCP_BIDIRECTIONAL,
        Workload::TcpRr => &TCP_RR,
        Workload::TcpCrr => &TCP_CRR,
        Workload::UdpStream => &UDP_STREAM,
        Workload::UdpRr => &UDP_RR,
        Workload::Storage => &STORAGE,
        Workload::Migration => &MIGRATION,
    }
}

/// The key of a workload, below which its options are.
pub(crate) fn workload_key(workload: Workload) -> &'static Key {
    &table(workload).key
}

/// The options of a workload, the ones that characterise it first.
pub(crate) fn options(workload: Workload) -> &'static [Key] {
    table(workload).options
}

/// Options that are factors of a run whether or not the plan writes them: they characterise a load.
pub(crate) const ALWAYS_FACTORS: [&str; 15] = [
    "streams",
    "streams_per_guest",
    "connections",
    "connections_per_guest",
    "machines",
    "machines_per_guest",
    "memory",
    "dirty_rate",
    "io_size",
    "pattern",
    "message",
    "request",
    "response",
    "congestion",
    "socket_buffer",
];

table! { TCP_STREAM "tcp-stream" "{ streams: 4 }"
    "Bulk TCP from host a's guest to host b's.":
    "streams" => STREAMS,
    "streams_per_guest" => STREAMS_PER_GUEST,
    "message" => TCP_MESSAGE,
    "congestion" => CONGESTION,
    "socket_buffer" => SOCKET_BUFFER,
    "rate" => BIT_RATE,
    "total_rate" => TOTAL_BIT_RATE,
    "nodelay" => STREAM_NODELAY,
    "zero_copy" => ZERO_COPY,
    "discard_on_receive" => DISCARD,
    "threads" => THREADS,
    "spin" => SPIN,
    "dscp" => DSCP,
    "limit" => LIMIT_BYTES,
    "direction" => DIRECTION,
}

table! { TCP_BIDIRECTIONAL "tcp-bidirectional" "{ streams: 4 }"
    "Bulk TCP both ways at once on each connection.":
    "streams" => STREAMS,
    "streams_per_guest" => STREAMS_PER_GUEST,
    "message" => TCP_MESSAGE,
    "congestion" => CONGESTION,
    "socket_buffer" => SOCKET_BUFFER,
    "rate" => BIT_RATE,
    "total_rate" => TOTAL_BIT_RATE,
    "nodelay" => STREAM_NODELAY,
    "zero_copy" => ZERO_COPY,
    "discard_on_receive" => DISCARD,
    "threads" => THREADS,
    "spin" => SPIN,
    "dscp" => DSCP,
    "limit" => LIMIT_BYTES_ONE_WAY,
    "direction" => DIRECTION,
}

table! { TCP_RR "tcp-rr" "{ streams: [1, 64], request: 128 }"
    "Requests and responses over persistent TCP connections.":
    "streams" => STREAMS,
    "streams_per_guest" => STREAMS_PER_GUEST,
    "request" => TCP_REQUEST,
    "response" => TCP_RESPONSE,
    "congestion" => CONGESTION,
    "socket_buffer" => SOCKET_BUFFER,
    "depth" => DEPTH,
    "rate" => REQUEST_RATE,
    "total_rate" => TOTAL_REQUEST_RATE,
    "think_time" => THINK_TIME,
    "nodelay" => REQUEST_NODELAY,
    "threads" => THREADS,
    "spin" => SPIN,
    "dscp" => DSCP,
    "limit" => LIMIT_TRANSACTIONS,
    "direction" => DIRECTION,
}

table! { TCP_CRR "tcp-crr" "{ streams: 16 }"
    "A TCP connection for each request and response.":
    "streams" => STREAMS,
    "streams_per_guest" => STREAMS_PER_GUEST,
    "request" => TCP_REQUEST,
    "response" => TCP_RESPONSE,
    "congestion" => CONGESTION,
    "socket_buffer" => SOCKET_BUFFER,
    "rate" => REQUEST_RATE,
    "total_rate" => TOTAL_REQUEST_RATE,
    "think_time" => THINK_TIME,
    "nodelay" => REQUEST_NODELAY,
    "threads" => THREADS,
    "spin" => SPIN,
    "dscp" => DSCP,
    "limit" => LIMIT_TRANSACTIONS,
    "direction" => DIRECTION,
}

table! { UDP_STREAM "udp-stream" "{ rate: 100mbit }"
    "Datagrams from host a's guest to host b's; what arrived is what counts.":
    "streams" => STREAMS,
    "streams_per_guest" => STREAMS_PER_GUEST,
    "message" => UDP_MESSAGE,
    "socket_buffer" => SOCKET_BUFFER,
    "rate" => BIT_RATE,
    "total_rate" => TOTAL_BIT_RATE,
    "segmentation_offload" => SEGMENTATION,
    "discard_on_receive" => DISCARD,
    "threads" => THREADS,
    "spin" => SPIN,
    "dscp" => DSCP,
    "limit" => LIMIT_DATAGRAMS,
    "direction" => DIRECTION,
}

table! { UDP_RR "udp-rr" "{ streams: 16 }"
    "Requests and responses in datagrams, either of which may be lost.":
    "streams" => STREAMS,
    "streams_per_guest" => STREAMS_PER_GUEST,
    "request" => UDP_REQUEST,
    "response" => UDP_RESPONSE,
    "socket_buffer" => SOCKET_BUFFER,
    "depth" => DEPTH,
    "rate" => REQUEST_RATE,
    "total_rate" => TOTAL_REQUEST_RATE,
    "think_time" => THINK_TIME,
    "reply_timeout" => REPLY_TIMEOUT,
    "threads" => THREADS,
    "spin" => SPIN,
    "dscp" => DSCP,
    "limit" => LIMIT_TRANSACTIONS,
    "direction" => DIRECTION,
}
