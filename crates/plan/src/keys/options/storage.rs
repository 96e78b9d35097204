//! Options of storage loads.

use wirecost_model::load::{Backing, MAX_EXPORT, MAX_FLUSH_EVERY, MAX_IO, Pattern, SECTOR};

use super::super::Presence::Default;
use super::super::{BASE, Key, Kind, ON_OFF, from_to};
use super::Table;
use super::connection::{CONGESTION, DIRECTION, DSCP, SOCKET_BUFFER, SPIN, STREAMS, THREADS};
use super::pace::{DEPTH, LIMIT_TRANSACTIONS, REQUEST_RATE, TOTAL_REQUEST_RATE};

table! { pub(super) STORAGE "storage" "{ io_size: [4KiB, 64KiB], connections: 8 }"
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
    doc: "Connections between each pair of guests: instead of `connections`. This key is the default where there are \
          several guests and neither is given.",
    ..STREAMS
};

const TARGET: Key = Key {
    kind: Kind::Target,
    words: &Backing::NAMES,
    presence: Default("memory"),
    example: "discard",
    doc: "What our target keeps the export in: memory, or nothing (what is written is lost and cannot be verified). \
          Or an existing NBD server: `nbd://HOST[:PORT]/[EXPORT]`, or `nbd+unix:///[EXPORT]?socket=PATH` on the \
          initiator's host. Or a path on the initiator's host: a file, a block device, or a directory, in which the \
          load makes a file of `size` and removes it afterwards. Servers and paths are for existing hosts.",
    ..BASE
};

const DESTRUCTIVE: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether the load may write to an NBD server or a path: its content is lost.",
    ..BASE
};

const OVERWRITE: Key = Key {
    kind: Kind::Path,
    words: &["none"],
    presence: Default("none"),
    example: "/dev/sdz",
    doc: "The path of `target` once more: needed to write to a file or device that is not empty (a byte of its first \
          or last MiB is not zero). What is mounted, used for swap or part of another device is never written to.",
    ..BASE
};

const EXPORT_SIZE: Key = Key {
    kind: Kind::Size,
    range: from_to(SECTOR as f64, MAX_EXPORT as f64),
    presence: Default("64MiB"),
    example: "1GiB",
    doc: "Bytes of the export, a multiple of 512; at least one I/O. Of a file or device, how many bytes are used, \
          from its beginning; without this key all of them. A directory needs this key.",
    ..BASE
};

const FLUSH_EVERY: Key = Key {
    kind: Kind::Whole,
    words: &["none"],
    range: from_to(1.0, MAX_FLUSH_EVERY as f64),
    presence: Default("none"),
    example: "8",
    doc: "Writes of a connection after which it asks for a flush, as fdatasync(2) does. Flushes are no I/O: their latency \
          is reported separately.",
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
    doc: "I/O per second of each connection, at random (Poisson) and without waiting for replies: lateness is the \
          time from due to sent, latency from sent to answered. `none` sends a request when the one before was \
          answered.",
    ..REQUEST_RATE
};

const TOTAL_IO_RATE: Key = Key {
    doc: "The same for all connections together, shared equally; not with `rate`.",
    ..TOTAL_REQUEST_RATE
};

const LIMIT_IOS: Key = Key {
    doc: "I/O, of all connections together, after which the load is over: the sample takes from the start to the \
          last reply, and `repeat.seconds` and `repeat.warmup` do not apply to it. `none`: until the window is over.",
    ..LIMIT_TRANSACTIONS
};
