//! The client's NBD handshake, on a blocking socket, by a deadline.

use std::io::{self, Read, Write};
use std::time::Instant;

use socket2::Socket;
use wirecost_nbd::client::{ClientHandshake, Negotiated};

use super::protocol;
use crate::opening::remaining;

/// Selects an export. Reads nothing beyond the handshake: a server sends nothing before the first request.
///
/// # Errors
/// `InvalidData` with an [`wirecost_nbd::NbdError`]; `TimedOut`; `UnexpectedEof`.
pub(crate) fn choose(
    mut socket: &Socket,
    export: &str,
    deadline: Instant,
) -> io::Result<Negotiated> {
    let mut handshake = ClientHandshake::new(export);
    let (mut buffer, mut out) = ([0; 1024], Vec::new());
    loop {
        socket.set_read_timeout(Some(remaining(deadline)))?;
        let read = match socket.read(&mut buffer) {
            Ok(0) => {
                let words = "it closed the connection during the NBD handshake";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, words));
            }
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let words = "it did not answer the NBD handshake in time";
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
            Err(error) => return Err(error),
        };
        let negotiated = handshake
            .receive(&mut &buffer[..read], &mut out)
            .map_err(protocol)?;
        if let Some(negotiated) = negotiated {
            socket.set_read_timeout(None)?;
            return Ok(negotiated);
        }
        socket.write_all(&out)?;
        out.clear();
    }
}
