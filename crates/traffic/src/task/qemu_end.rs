//! What both ends of a virtual machine's move have in common as tasks: a thread that waits for QEMU and for the other
//! end.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};

use socket2::Socket;

use super::{Context, Progress, Task};

/// One end of a virtual machine's move.
pub(super) trait QemuEnd: Send {
    /// Takes the next step. `None`: there is more to do.
    fn step(&mut self, context: &Context<'_>) -> io::Result<Option<Progress>>;

    /// The connection on which both ends exchange messages about the move.
    fn socket(&self) -> &Socket;

    /// The machine's number, which is the index of its flow.
    fn machine(&self) -> u32;
}

impl<T: QemuEnd> Task for T {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        match self.step(context) {
            Ok(None) => Progress::Again,
            Ok(Some(progress)) => progress,
            Err(error) => {
                // The thread that reads the peer's messages ends with the connection.
                let _ = self.socket().shutdown(Shutdown::Both);
                Progress::failed(error)
            }
        }
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.socket().as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.machine())
    }
}
