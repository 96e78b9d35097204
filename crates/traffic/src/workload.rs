//! The workloads, a table each.

pub(crate) mod tcp_bidirectional;
pub(crate) mod tcp_crr;
pub(crate) mod tcp_rr;
pub(crate) mod tcp_stream;
pub(crate) mod udp_rr;
pub(crate) mod udp_stream;
