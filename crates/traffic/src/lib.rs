//! The traffic engine: loads between two endpoints, with blocking threads and without an allocation or a lock on
//! the data path.
//!
//! The TCP stream runs from a [`StreamSource`] to a [`StreamSink`], which live in different namespaces and
//! usually in different processes. This room knows no namespaces: a socket stays in the one that its creating
//! thread was in, so every socket here is made on the thread that calls [`StreamSink::listen`] or
//! [`StreamSource::connect`], and the threads started there only accept, read and write (an accepted socket
//! belongs to its listener's namespace). They inherit the caller's processors; nothing is pinned here.
//!
//! Not here: when a window begins and ends, what else the host did meanwhile (room `meter`), what it means.

mod error;
mod flow;
mod handshake;
mod options;
mod sink;
mod snapshot;
mod source;

pub use error::{Refusal, TrafficError};
pub use flow::{Finished, FlowEnd};
pub use options::StreamOptions;
pub use sink::StreamSink;
pub use snapshot::{FlowSnapshot, StreamSnapshot, flow_deltas};
pub use source::StreamSource;

#[cfg(test)]
mod tests;
