//! Storage over NBD, and at a path: what ends keep besides their connections. The protocol is crate `nbd`'s.

pub(crate) mod access;
pub(crate) mod content;
pub(crate) mod handshake;
pub(crate) mod path;
pub(crate) mod plain;
pub(crate) mod sample;
pub(crate) mod session;
pub(crate) mod target;
pub(crate) mod verify;

use std::io;

use wirecost_nbd::NbdError;

/// A broken protocol as the error of a flow.
pub(crate) fn protocol(error: NbdError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
