//! The options of loads: which each workload has, with its own ranges and defaults.

use wirecost_model::load::{
    Backing, DATAGRAM_HEADER, DirtyOrder, Fallback, MAX_CHANNELS, MAX_DATAGRAM, MAX_DEPTH,
    MAX_DOWNTIME, MAX_EXPORT, MAX_FLUSH_EVERY, MAX_IO, MAX_MEMORY, MAX_MESSAGE, MAX_PAUSE,
    MAX_REPLY_TIMEOUT, MAX_ROUNDS, MAX_SOCKET_BUFFER, MAX_STREAMS, MAX_THINK_TIME, MIN_MEMORY,
    MIN_SOCKET_BUFFER, MoveEngine, Pattern, SECTOR, Workload,
};

use super::Presence::Default;
use super::{BASE, Key, Kind, ON_OFF, from_to};

/// The keys of a workload.
struct Table {
    /// `load.WORKLOAD`.
    key: Key,
    /// Those that stand for it first.
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

/// The key under which a workload's options are.
pub(crate) fn workload_key(workload: Workload) -> &'static Key {
    &table(workload).key
}

/// The options of one workload, those that stand for it first.
pub(crate) fn options(workload: Workload) -> &'static [Key] {
    table(workload).options
}

/// Options that are factors of a run whether or not the plan says them: what a load is known by.
pub(crate) const TELLING: [&str; 15] = [
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

/// A workload with an example and what it is, and its options.
macro_rules! table {
    ($name:ident $workload:literal $example:literal $doc:literal: $($option:literal => $make:expr),* $(,)?) => {
        static $name: Table = Table {
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
    "Requests and responses over TCP connections that stay.":
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

table! { STORAGE "storage" "{ io_size: [4KiB, 64KiB], connections: 8 }"
    "Reads and writes of blocks, over NBD or of a path: host a is the initiator, host b has the target.":
    "io_size" => IO_SIZE,
    "pattern" => PATTERN,
    "reads" => READS,
    "depth" => IO_DEPTH,
    "connections" => CONNECTIONS,
    "connections_per_guest" => CONNECTIONS_PER_GUEST,
    "target" => TARGET,
    "destructive" => DESTRUCTIVE,
    "overwrite" => OVERWRITE,
    "size" => EXPORT_SIZE,
    "flush_every" => FLUSH_EVERY,
    "network_share" => NETWORK_SHARE,
    "congestion" => CONGESTION,
    "socket_buffer" => SOCKET_BUFFER,
    "rate" => IO_RATE,
    "total_rate" => TOTAL_IO_RATE,
    "threads" => THREADS,
    "spin" => SPIN,
    "dscp" => DSCP,
    "limit" => LIMIT_IOS,
    "direction" => DIRECTION,
}

table! { MIGRATION "migration" "{ machines: 4, memory: 256MiB, dirty_rate: 400mbit }"
    "Memory of machines that go on writing to it, moved from host a to host b by pre-copy; a sample is one move of all.":
    "machines" => MACHINES,
    "machines_per_guest" => MACHINES_PER_GUEST,
    "engine" => ENGINE,
    "memory" => MEMORY,
    "dirty_rate" => DIRTY_RATE,
    "channels" => CHANNELS,
    "at_once" => AT_ONCE,
    "working_set" => WORKING_SET,
    "dirty_order" => DIRTY_ORDER,
    "zero_pages" => ZERO_PAGES,
    "max_downtime" => MAX_DOWNTIME_KEY,
    "max_rounds" => MAX_ROUNDS_KEY,
    "fallback" => FALLBACK,
    "find_limit" => FIND_LIMIT,
    "watch" => WATCH,
    "pause" => PAUSE,
    "back_and_forth" => BACK_AND_FORTH,
    "switchover_bandwidth" => SWITCHOVER_BANDWIDTH,
    "post_copy" => POST_COPY,
    "rate" => MOVE_RATE,
    "congestion" => CONGESTION,
    "socket_buffer" => SOCKET_BUFFER,
    "threads" => THREADS,
    "spin" => SPIN,
    "dscp" => DSCP,
    "direction" => DIRECTION,
}

const MACHINES: Key = Key {
    range: from_to(1.0, MAX_STREAMS as f64),
    example: "4",
    doc: "Machines that move, divided evenly among the guests.",
    ..STREAMS
};

const MACHINES_PER_GUEST: Key = Key {
    example: "2",
    doc: "Machines that move between each pair of guests: instead of `machines`. It is what holds where there are several \
          guests and neither key is written.",
    ..STREAMS
};

const ENGINE: Key = Key {
    words: &MoveEngine::NAMES,
    presence: Default("memory"),
    example: "qemu",
    doc: "What moves them: memory and threads of the agent's own (`memory`, nothing to install), or virtual machines in QEMU \
          with a guest that is built in (`qemu`, by KVM where it runs one, else emulated; memory of 8MiB at least and 32 machines at most, not \
          with `watch`, `find_limit`, `threads`, `spin`, `socket_buffer`, `dscp`).",
    ..BASE
};

const SWITCHOVER_BANDWIDTH: Key = Key {
    kind: Kind::Rate,
    words: &["none"],
    range: from_to(1e3, 1e13),
    presence: Default("none"),
    example: "10gbit",
    doc: "With `engine: qemu`, what QEMU takes for the bandwidth once a machine is stopped instead of its own estimate \
          (`avail-switchover-bandwidth`, QEMU 8.2).",
    ..BASE
};

const POST_COPY: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "With `engine: qemu`, whether a machine goes on at its destination after one round, and pages that are not there are \
          fetched when it needs them, the rest sent meanwhile; one channel.",
    ..BASE
};

const MEMORY: Key = Key {
    kind: Kind::Size,
    range: from_to(MIN_MEMORY as f64, MAX_MEMORY as f64),
    presence: Default("64MiB"),
    example: "256MiB",
    doc: "Memory of each machine, a multiple of 4KiB. Each host needs it for all machines.",
    ..BASE
};

const DIRTY_RATE: Key = Key {
    kind: Kind::Rate,
    words: &["none"],
    range: from_to(1e3, 1e12),
    presence: Default("100mbit"),
    example: "1gbit",
    doc: "How fast each machine writes: bits per second of pages of 4KiB, each write a page. `none` writes nothing.",
    ..BASE
};

const CHANNELS: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, MAX_CHANNELS as f64),
    presence: Default("1"),
    example: "4",
    doc: "Connections of each machine. A page always goes over the same one.",
    ..BASE
};

const AT_ONCE: Key = Key {
    kind: Kind::Whole,
    words: &["all"],
    range: from_to(1.0, MAX_STREAMS as f64),
    presence: Default("all"),
    example: "1",
    doc: "Machines of each pair of guests that move at the same time; the next begins when one has moved.",
    ..BASE
};

const WORKING_SET: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, 100.0),
    presence: Default("25"),
    example: "100",
    doc: "Percent of a machine's memory that it writes to, zero pages not counted.",
    ..BASE
};

const DIRTY_ORDER: Key = Key {
    words: &DirtyOrder::NAMES,
    presence: Default("random"),
    example: "sequential",
    doc: "Order of a machine's writes within its working set.",
    ..BASE
};

const ZERO_PAGES: Key = Key {
    kind: Kind::Whole,
    range: from_to(0.0, 99.0),
    presence: Default("0"),
    example: "50",
    doc: "Percent of a machine's memory that is zero and stays so: only its place is sent.",
    ..BASE
};

const MAX_DOWNTIME_KEY: Key = Key {
    kind: Kind::Seconds,
    range: from_to(1e-6, MAX_DOWNTIME.as_secs_f64()),
    presence: Default("300ms"),
    example: "50ms",
    doc: "A machine is stopped once what is left to send takes no longer at the bandwidth measured so far.",
    ..BASE
};

const MAX_ROUNDS_KEY: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, MAX_ROUNDS as f64),
    presence: Default("30"),
    example: "10",
    doc: "Rounds after which pre-copy counts as not converging; as well when three times the memory was sent.",
    ..BASE
};

const FALLBACK: Key = Key {
    words: &Fallback::NAMES,
    presence: Default("give-up"),
    example: "stop",
    doc: "What is done with a machine whose pre-copy does not converge: it stays (`give-up`, an outcome and no error), is \
          stopped whatever the downtime (`stop`), or is slowed down step by step (`throttle`, as QEMU's auto-converge).",
    ..BASE
};

const MOVE_RATE: Key = Key {
    example: "1gbit",
    doc: "How fast each machine is sent at most, all of its connections together, paced by the kernel; `none` is as fast as \
          it goes.",
    ..BIT_RATE
};

const FIND_LIMIT: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether the machine is moved again at other dirty rates until the highest that converges is known to 10 %; one \
          machine, `fallback: give-up`. Time and downtime are of the first move.",
    ..BASE
};

const WATCH: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether an observer asks each machine each millisecond, where it was and where it goes, and tells for how long nobody \
          answered; 16 machines at most, not with `find_limit`. It asks from the next guest of the source's host.",
    ..BASE
};

const PAUSE: Key = Key {
    kind: Kind::Seconds,
    range: from_to(0.0, MAX_PAUSE.as_secs_f64()),
    presence: Default("0"),
    example: "2s",
    doc: "How long nothing is done before each move.",
    ..BASE
};

const BACK_AND_FORTH: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether every second round moves the machines the other way, in all of its cells.",
    ..BASE
};

const IO_SIZE: Key = Key {
    kind: Kind::Size,
    range: from_to(SECTOR as f64, MAX_IO as f64),
    presence: Default("4KiB"),
    example: "64KiB",
    doc: "Bytes of each read or write, a multiple of 512.",
    ..BASE
};

const PATTERN: Key = Key {
    words: &Pattern::NAMES,
    presence: Default("random-read"),
    example: "sequential-write",
    doc: "Order and kind of I/O. In order each connection starts at its own part of the export.",
    ..BASE
};

const READS: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, 99.0),
    presence: Default("70"),
    example: "50",
    doc: "Percent of a mix that are reads.",
    ..BASE
};

const IO_DEPTH: Key = Key {
    presence: Default("32"),
    example: "16",
    doc: "I/O outstanding on each connection.",
    ..DEPTH
};

const CONNECTIONS: Key = Key {
    example: "8",
    doc: "Connections to the one export, divided evenly among the guests.",
    ..STREAMS
};

const CONNECTIONS_PER_GUEST: Key = Key {
    example: "4",
    doc: "Connections between each pair of guests: instead of `connections`. It is what holds where there are several \
          guests and neither key is written.",
    ..STREAMS
};

const TARGET: Key = Key {
    kind: Kind::Target,
    words: &Backing::NAMES,
    presence: Default("memory"),
    example: "discard",
    doc: "What our target keeps the export in: memory, or nothing (what is written is lost and cannot be verified). Or an NBD \
          server that is there: `nbd://HOST[:PORT]/[EXPORT]`, or `nbd+unix:///[EXPORT]?socket=PATH` on the initiator's host. \
          Or a path on the initiator's host: a file, a block device, or a directory in which the load makes a file of \
          `size` that is gone afterwards. Servers and paths are for existing hosts.",
    ..BASE
};

const DESTRUCTIVE: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether the load may write to a server or path that is there: what it has is lost.",
    ..BASE
};

const OVERWRITE: Key = Key {
    kind: Kind::Path,
    words: &["none"],
    presence: Default("none"),
    example: "/dev/sdz",
    doc: "The path of `target` once more, where the load writes and it is not empty: a byte of its first or last MiB is \
          not zero. Without it such a file or device is not written to. What is mounted, used for swap or part of \
          another device never is.",
    ..BASE
};

const EXPORT_SIZE: Key = Key {
    kind: Kind::Size,
    range: from_to(SECTOR as f64, MAX_EXPORT as f64),
    presence: Default("64MiB"),
    example: "1GiB",
    doc: "Bytes of the export, a multiple of 512; at least one I/O. Of a path the bytes from its beginning that are used: \
          all of it where nothing is written here, but in a directory.",
    ..BASE
};

const FLUSH_EVERY: Key = Key {
    kind: Kind::Whole,
    words: &["none"],
    range: from_to(1.0, MAX_FLUSH_EVERY as f64),
    presence: Default("none"),
    example: "8",
    doc: "Writes of a connection after which it asks for a flush, as fdatasync(2) does. Flushes are no I/O: their latency \
          is told by itself.",
    ..BASE
};

const NETWORK_SHARE: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether each sample has a second window with the same I/O over a Unix socket on the target's host: the difference \
          is the network's share of the latency. Both windows share `repeat.seconds`.",
    ..BASE
};

const IO_RATE: Key = Key {
    doc: "I/O per second of each connection, at random (Poisson) and without waiting for replies: from due to sent is \
          lateness, from sent to answered latency. `none` asks again when it was answered.",
    ..REQUEST_RATE
};

const TOTAL_IO_RATE: Key = Key {
    doc: "The same for all connections together, each of which has its share; not beside `rate`.",
    ..TOTAL_REQUEST_RATE
};

const LIMIT_IOS: Key = Key {
    doc: "I/O, of all connections together, after which the load is over: the sample takes from the start to the last \
          reply, and `repeat.seconds` and `repeat.warmup` mean nothing to it. `none`: until the window is over.",
    ..LIMIT_TRANSACTIONS
};

const STREAMS: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, MAX_STREAMS as f64),
    presence: Default("1"),
    example: "4",
    doc: "Connections or flows at once, divided evenly among the guests.",
    ..BASE
};

const STREAMS_PER_GUEST: Key = Key {
    example: "5",
    doc: "Connections or flows at once between each pair of guests: instead of `streams`, which are divided among the \
          guests. It is what holds where there are several guests and neither key is written.",
    ..STREAMS
};

const TCP_MESSAGE: Key = Key {
    kind: Kind::Size,
    range: from_to(1.0, MAX_MESSAGE as f64),
    presence: Default("128KiB"),
    example: "128KiB",
    doc: "Bytes handed over per write; without `nodelay`, where it holds eight segments or more, as many whole ones as it holds.",
    ..BASE
};

const UDP_MESSAGE: Key = Key {
    range: from_to(DATAGRAM_HEADER as f64, MAX_DATAGRAM as f64),
    presence: Default("1400"),
    example: "1400",
    doc: "Bytes of each datagram's payload, of which 16 tell its run, flow, number and time.",
    ..TCP_MESSAGE
};

const TCP_REQUEST: Key = Key {
    presence: Default("1"),
    example: "128",
    doc: "Bytes of a request.",
    ..TCP_MESSAGE
};

const TCP_RESPONSE: Key = Key {
    doc: "Bytes of a response.",
    ..TCP_REQUEST
};

const UDP_REQUEST: Key = Key {
    presence: Default("16"),
    example: "128",
    doc: "Bytes of a request, of which 16 tell its run, flow and number.",
    ..UDP_MESSAGE
};

const UDP_RESPONSE: Key = Key {
    doc: "Bytes of a response, of which 16 tell its run, flow and number.",
    ..UDP_REQUEST
};

const CONGESTION: Key = Key {
    kind: Kind::Congestion,
    presence: Default("cubic"),
    example: "cubic",
    doc: "Congestion control, set on each socket.",
    ..BASE
};

const SOCKET_BUFFER: Key = Key {
    kind: Kind::Size,
    words: &["auto"],
    range: from_to(MIN_SOCKET_BUFFER as f64, MAX_SOCKET_BUFFER as f64),
    presence: Default("auto"),
    example: "4MiB",
    doc: "`SO_SNDBUF` and `SO_RCVBUF` on both ends; `auto` leaves the kernel's autotuning.",
    ..BASE
};

const BIT_RATE: Key = Key {
    kind: Kind::Rate,
    words: &["none"],
    range: from_to(1e3, 1e13),
    presence: Default("none"),
    example: "100mbit",
    doc: "How fast each flow goes: TCP is paced by the kernel, datagrams and, with `nodelay`, messages below 16KiB by \
          their sending thread; `none` is as fast as it goes.",
    ..BASE
};

const TOTAL_BIT_RATE: Key = Key {
    example: "1gbit",
    doc: "The same for all flows together, each of which has its share; not beside `rate`.",
    ..BIT_RATE
};

const REQUEST_RATE: Key = Key {
    kind: Kind::PerSecond,
    words: &["none"],
    range: from_to(1e-3, 1e8),
    presence: Default("none"),
    example: "1000",
    doc: "Requests per second of each flow, at random (Poisson) and without waiting for answers: from due to sent is \
          lateness, from sent to answered latency. `none` asks again when it was answered.",
    ..BASE
};

const TOTAL_REQUEST_RATE: Key = Key {
    example: "10000",
    doc: "The same for all flows together, each of which has its share; not beside `rate`.",
    ..REQUEST_RATE
};

const DEPTH: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, MAX_DEPTH as f64),
    presence: Default("1"),
    example: "16",
    doc: "Requests outstanding on each flow.",
    ..BASE
};

const THINK_TIME: Key = Key {
    kind: Kind::Seconds,
    range: from_to(0.0, MAX_THINK_TIME.as_secs_f64()),
    presence: Default("0"),
    example: "1ms",
    doc: "Time between a response and the request that follows it; not beside a rate.",
    ..BASE
};

const REPLY_TIMEOUT: Key = Key {
    kind: Kind::Seconds,
    range: from_to(1e-3, MAX_REPLY_TIMEOUT.as_secs_f64()),
    presence: Default("200ms"),
    example: "500ms",
    doc: "How long a response may take: then the request is given up and counted, and is no latency.",
    ..BASE
};

const STREAM_NODELAY: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether each write leaves at once (`TCP_NODELAY`), as a segment of its own where it is small; `off` sends full \
          segments only (`TCP_CORK`), but with a `socket_buffer` below 128KiB as the kernel does by itself.",
    ..BASE
};

const REQUEST_NODELAY: Key = Key {
    presence: Default("on"),
    example: "off",
    doc: "Whether each message leaves at once (`TCP_NODELAY`).",
    ..STREAM_NODELAY
};

const ZERO_COPY: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether the kernel sends from the load's own pages (`MSG_ZEROCOPY`); what it copied after all is counted.",
    ..BASE
};

const DISCARD: Key = Key {
    doc: "Whether what arrives is thrown away by the kernel, uncopied (`MSG_TRUNC`); of datagrams the first bytes are \
          looked at.",
    ..ZERO_COPY
};

const SEGMENTATION: Key = Key {
    words: &["none", "send", "receive", "both"],
    presence: Default("none"),
    example: "both",
    doc: "Whether the sender hands over many datagrams as one (`UDP_SEGMENT`) and the receiver takes many as one \
          (`UDP_GRO`).",
    ..BASE
};

const THREADS: Key = Key {
    kind: Kind::Whole,
    words: &["auto"],
    range: from_to(1.0, MAX_STREAMS as f64),
    presence: Default("auto"),
    example: "1",
    doc: "Threads at each end, no more than flows; `auto` is what measured best (wirecost-load(1)).",
    ..BASE
};

const SPIN: Key = Key {
    doc: "Whether threads ask again and again instead of sleeping, and have the device polled (`SO_BUSY_POLL`): a core \
          for each thread.",
    ..ZERO_COPY
};

const DSCP: Key = Key {
    kind: Kind::Whole,
    words: &["none"],
    range: from_to(0.0, 63.0),
    presence: Default("none"),
    example: "46",
    doc: "DSCP of every packet; `none` leaves the field alone.",
    ..BASE
};

const DIRECTION: Key = Key {
    words: &["a-to-b", "b-to-a"],
    presence: Default("a-to-b"),
    example: "b-to-a",
    doc: "Which host asks or sends: `a-to-b` is host a.",
    ..BASE
};

const LIMIT_BYTES: Key = Key {
    kind: Kind::Size,
    words: &["none"],
    range: from_to(1.0, 1e15),
    presence: Default("none"),
    example: "1GB",
    doc: "Bytes that the sending host sends, all flows together, after which the load is over: the sample takes from the \
          start until the last has arrived, and `repeat.seconds` and `repeat.warmup` mean nothing to it. `none`: until \
          the window is over.",
    ..BASE
};

const LIMIT_BYTES_ONE_WAY: Key = Key {
    doc: "Bytes that the asking host sends, all flows together, after which the load is over: the other direction ends \
          with this one. The sample takes from the start until the last has arrived, and `repeat.seconds` and \
          `repeat.warmup` mean nothing to it. `none`: until the window is over.",
    ..LIMIT_BYTES
};

const LIMIT_TRANSACTIONS: Key = Key {
    kind: Kind::Whole,
    words: &["none"],
    range: from_to(1.0, 1e15),
    presence: Default("none"),
    example: "10000",
    doc: "Transactions, of all flows together, after which the load is over: the sample takes from the start to the last \
          response, and `repeat.seconds` and `repeat.warmup` mean nothing to it. `none`: until the window is over.",
    ..BASE
};

const LIMIT_DATAGRAMS: Key = Key {
    doc: "Datagrams, of all flows together, after which the load is over: the sample takes from the first to the last, \
          and `repeat.seconds` and `repeat.warmup` mean nothing to it. `none`: until the window is over.",
    ..LIMIT_TRANSACTIONS
};
