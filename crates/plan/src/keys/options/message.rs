//! Options of messages: sizes, and how they are sent and received.

use wirecost_model::load::{DATAGRAM_HEADER, MAX_DATAGRAM, MAX_MESSAGE};

use super::super::Presence::Default;
use super::super::{BASE, Key, Kind, ON_OFF, from_to};

pub(super) const TCP_MESSAGE: Key = Key {
    kind: Kind::Size,
    range: from_to(1.0, MAX_MESSAGE as f64),
    presence: Default("128KiB"),
    example: "128KiB",
    doc: "Bytes of each write. Without `nodelay`, a message of 48KiB or more is written as full packets of \
          segmentation offload, one for each 64KiB.",
    ..BASE
};

pub(super) const UDP_MESSAGE: Key = Key {
    range: from_to(DATAGRAM_HEADER as f64, MAX_DATAGRAM as f64),
    presence: Default("1400"),
    example: "1400",
    doc: "Bytes of each datagram's payload, of which 16 tell its run, flow, number and time.",
    ..TCP_MESSAGE
};

pub(super) const TCP_REQUEST: Key = Key {
    presence: Default("1"),
    example: "128",
    doc: "Bytes of a request.",
    ..TCP_MESSAGE
};

pub(super) const TCP_RESPONSE: Key = Key {
    doc: "Bytes of a response.",
    ..TCP_REQUEST
};

pub(super) const UDP_REQUEST: Key = Key {
    presence: Default("16"),
    example: "128",
    doc: "Bytes of a request, of which 16 tell its run, flow and number.",
    ..UDP_MESSAGE
};

pub(super) const UDP_RESPONSE: Key = Key {
    doc: "Bytes of a response, of which 16 tell its run, flow and number.",
    ..UDP_REQUEST
};

pub(super) const STREAM_NODELAY: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether each write leaves at once (`TCP_NODELAY`), as a segment of its own where it is small; `off` sends full \
          segments only (`TCP_CORK`), but with a `socket_buffer` below 128KiB as the kernel does by itself.",
    ..BASE
};

pub(super) const REQUEST_NODELAY: Key = Key {
    presence: Default("on"),
    example: "off",
    doc: "Whether each message leaves at once (`TCP_NODELAY`).",
    ..STREAM_NODELAY
};

pub(super) const ZERO_COPY: Key = Key {
    words: ON_OFF,
    presence: Default("off"),
    example: "on",
    doc: "Whether the kernel sends from the load's own pages (`MSG_ZEROCOPY`); what it copied after all is counted.",
    ..BASE
};

pub(super) const DISCARD: Key = Key {
    doc: "Whether the kernel discards received data without copying it (`MSG_TRUNC`); of datagrams the first bytes \
          are read.",
    ..ZERO_COPY
};

pub(super) const SEGMENTATION: Key = Key {
    words: &["none", "send", "receive", "both"],
    presence: Default("none"),
    example: "both",
    doc: "Whether the sender hands over many datagrams as one (`UDP_SEGMENT`) and the receiver takes many as one \
          (`UDP_GRO`).",
    ..BASE
};
