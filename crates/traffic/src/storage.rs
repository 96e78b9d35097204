//! Storage over NBD and at a path: contents, access pattern, verification, and our NBD target. The protocol itself is
//! in crate `nbd`.

pub(crate) mod access;
pub(crate) mod content;
pub(crate) mod handshake;
pub(crate) mod path;
pub(crate) mod plain;
pub(crate) mod read_back;
pub(crate) mod session;
pub(crate) mod target;
pub(crate) mod verify;

use std::io;

use wirecost_nbd::NbdError;

/// A violation of the protocol as the error of a flow (`InvalidData`).
pub(crate) fn protocol(error: NbdError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
