//! Options of connections and flows: number, sockets, and the threads that serve them.

use wirecost_model::load::{MAX_SOCKET_BUFFER, MAX_STREAMS, MIN_SOCKET_BUFFER};

use super::super::Presence::Default;
use super::super::{BASE, Key, Kind, from_to};
use super::message::ZERO_COPY;

pub(super) const STREAMS: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, MAX_STREAMS as f64),
    presence: Default("1"),
    example: "4",
    doc: "Connections or flows at once, divided evenly among the guests.",
    ..BASE
};

pub(super) const STREAMS_PER_GUEST: Key = Key {
    example: "5",
    doc: "Connections or flows at once between each pair of guests: instead of `streams`, which are divided among \
          the guests. This key is the default where there are several guests and neither is given.",
    ..STREAMS
};

pub(super) const CONGESTION: Key = Key {
    kind: Kind::Congestion,
    presence: Default("cubic"),
    example: "cubic",
    doc: "Congestion control, set on each socket.",
    ..BASE
};

pub(super) const SOCKET_BUFFER: Key = Key {
    kind: Kind::Size,
    words: &["auto"],
    range: from_to(MIN_SOCKET_BUFFER as f64, MAX_SOCKET_BUFFER as f64),
    presence: Default("auto"),
    example: "4MiB",
    doc: "`SO_SNDBUF` and `SO_RCVBUF` on both ends; `auto` leaves the kernel's autotuning.",
    ..BASE
};

pub(super) const THREADS: Key = Key {
    kind: Kind::Whole,
    words: &["auto"],
    range: from_to(1.0, MAX_STREAMS as f64),
    presence: Default("auto"),
    example: "1",
    doc: "Threads at each end, no more than flows; `auto` is what measured best (wirecost-load(1)).",
    ..BASE
};

pub(super) const SPIN: Key = Key {
    doc: "Whether threads poll their sockets instead of sleeping, and busy-poll the device (`SO_BUSY_POLL`): this \
          takes a core for each thread.",
    ..ZERO_COPY
};

pub(super) const DSCP: Key = Key {
    kind: Kind::Whole,
    words: &["none"],
    range: from_to(0.0, 63.0),
    presence: Default("none"),
    example: "46",
    doc: "DSCP of every packet; `none` leaves the field alone.",
    ..BASE
};

pub(super) const DIRECTION: Key = Key {
    words: &["a-to-b", "b-to-a"],
    presence: Default("a-to-b"),
    example: "b-to-a",
    doc: "Which host sends the data or the requests: with `a-to-b` host a.",
    ..BASE
};
