//! Options of a load's pace: rates, waits, and limits that end it.

use wirecost_model::load::{MAX_DEPTH, MAX_REPLY_TIMEOUT, MAX_THINK_TIME};

use super::super::Presence::Default;
use super::super::{BASE, Key, Kind, from_to};

pub(super) const BIT_RATE: Key = Key {
    kind: Kind::Rate,
    words: &["none"],
    range: from_to(1e3, 1e13),
    presence: Default("none"),
    example: "100mbit",
    doc: "How fast each flow goes: TCP is paced by the kernel, datagrams and, with `nodelay`, messages below 16KiB \
          by their sending thread; `none` is as fast as possible.",
    ..BASE
};

pub(super) const TOTAL_BIT_RATE: Key = Key {
    example: "1gbit",
    doc: "The same for all flows together, shared equally; not with `rate`.",
    ..BIT_RATE
};

pub(super) const REQUEST_RATE: Key = Key {
    kind: Kind::PerSecond,
    words: &["none"],
    range: from_to(1e-3, 1e8),
    presence: Default("none"),
    example: "1000",
    doc: "Requests per second of each flow, at random (Poisson) and without waiting for answers: lateness is the \
          time from due to sent, latency from sent to answered. `none` sends a request when the one before was \
          answered.",
    ..BASE
};

pub(super) const TOTAL_REQUEST_RATE: Key = Key {
    example: "10000",
    doc: "The same for all flows together, shared equally; not with `rate`.",
    ..REQUEST_RATE
};

pub(super) const DEPTH: Key = Key {
    kind: Kind::Whole,
    range: from_to(1.0, MAX_DEPTH as f64),
    presence: Default("1"),
    example: "16",
    doc: "Requests outstanding on each flow.",
    ..BASE
};

pub(super) const THINK_TIME: Key = Key {
    kind: Kind::Seconds,
    range: from_to(0.0, MAX_THINK_TIME.as_secs_f64()),
    presence: Default("0"),
    example: "1ms",
    doc: "Time between a response and the next request; not with a rate.",
    ..BASE
};

pub(super) const REPLY_TIMEOUT: Key = Key {
    kind: Kind::Seconds,
    range: from_to(1e-3, MAX_REPLY_TIMEOUT.as_secs_f64()),
    presence: Default("200ms"),
    example: "500ms",
    doc: "How long to wait for a response. Then the request counts as timed out, and is part of no latency.",
    ..BASE
};

pub(super) const LIMIT_BYTES: Key = Key {
    kind: Kind::Size,
    words: &["none"],
    range: from_to(1.0, 1e15),
    presence: Default("none"),
    example: "1GB",
    doc: "Bytes that the sending host sends, all flows together, after which the load is over: the sample takes from \
          the start until the last has arrived, and `repeat.seconds` and `repeat.warmup` do not apply to it. `none`: \
          until the window is over.",
    ..BASE
};

pub(super) const LIMIT_BYTES_ONE_WAY: Key = Key {
    doc: "Bytes that the asking host sends, all flows together, after which the load is over: the other direction \
          ends with this one. The sample takes from the start until the last has arrived, and `repeat.seconds` and \
          `repeat.warmup` do not apply to it. `none`: until the window is over.",
    ..LIMIT_BYTES
};

pub(super) const LIMIT_TRANSACTIONS: Key = Key {
    kind: Kind::Whole,
    words: &["none"],
    range: from_to(1.0, 1e15),
    presence: Default("none"),
    example: "10000",
    doc: "Transactions, of all flows together, after which the load is over: the sample takes from the start to the \
          last response, and `repeat.seconds` and `repeat.warmup` do not apply to it. `none`: until the window is \
          over.",
    ..BASE
};

pub(super) const LIMIT_DATAGRAMS: Key = Key {
    doc: "Datagrams, of all flows together, after which the load is over: the sample takes from the first to the \
          last, and `repeat.seconds` and `repeat.warmup` do not apply to it. `none`: until the window is over.",
    ..LIMIT_TRANSACTIONS
};
