//! Our target without a load: for tests with other programs' initiators.

use std::io;
use std::net::Shutdown;

use socket2::Socket;
use wirecost_model::load::Storage;

use super::session::{Session, Step};
use super::target::Target;

/// An export of zeroes that any NBD client may use.
#[derive(Debug)]
pub struct PlainTarget {
    target: Target,
}

impl PlainTarget {
    /// An export with the backing and size that `storage` has.
    ///
    /// # Errors
    /// No memory.
    pub fn new(storage: &Storage) -> io::Result<Self> {
        Ok(Self {
            target: Target::new(storage)?,
        })
    }

    /// Serves a blocking connection until the client ends it.
    ///
    /// # Errors
    /// Errors of the socket; `InvalidData`: the client violates the protocol.
    pub fn serve(&self, socket: &Socket) -> io::Result<()> {
        let mut session = Session::new(&self.target);
        loop {
            match session.poll(socket, &self.target)? {
                Step::Over => return socket.shutdown(Shutdown::Both),
                Step::Again | Step::Read | Step::Write => {}
            }
        }
    }
}
