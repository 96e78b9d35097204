//! The NBD protocol (Network Block Device) without I/O: what both ends of a connection send, and what they make of
//! what they receive.
//!
//! Fixed newstyle handshake, options `GO`, `INFO`, `LIST`, `EXPORT_NAME`, `ABORT` and `STRUCTURED_REPLY`; requests
//! `READ`, `WRITE`, `FLUSH` and `DISC`; simple and structured replies. Source: doc/proto.md of
//! github.com/NetworkBlockDevice/nbd, whose names are used without their prefixes. Not here: TLS, metadata contexts,
//! extended headers, sockets, and the storage itself.
//!
//! Whatever a peer sends, memory is bounded ([`protocol::MAX_OPTION_BYTES`]) and an [`NbdError`] says what is wrong.

pub mod arrived;
pub mod client;
mod cursor;
mod error;
pub mod export;
pub mod protocol;
pub mod reply;
pub mod request;
pub mod server;

pub use error::NbdError;
