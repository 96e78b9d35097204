//! The built-in storage target's end of an NBD connection.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;

use super::{Context, Progress, Task};
use crate::flow::Outcome;
use crate::shared::Shared;
use crate::storage::session::{Session, Step};

pub(crate) struct NbdServer {
    socket: Arc<Socket>,
    flow: u32,
    session: Session,
}

impl NbdServer {
    /// # Errors
    /// `NotFound` where the load has no target.
    pub(crate) fn new(shared: &Shared, socket: Arc<Socket>, flow: u32) -> io::Result<Self> {
        let target = shared.target.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(Self {
            session: Session::new(target),
            socket,
            flow,
        })
    }

    /// Shuts the connection down in order, after the client has ended the session.
    fn end(&self) -> io::Result<Outcome> {
        self.socket.set_linger(None)?;
        self.socket.shutdown(Shutdown::Write)?;
        Ok(Outcome::Orderly)
    }
}

impl Task for NbdServer {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        let Some(target) = &context.shared.target else {
            return Progress::failed(io::ErrorKind::NotFound.into());
        };
        let step = self.session.poll(&self.socket, target);
        let (counters, flow) = (self.session.counters, context.flow(self.flow));
        flow.rx.bytes.publish(counters.written_bytes);
        flow.rx.messages.publish(counters.requests);
        flow.tx.bytes.publish(counters.read_bytes);
        flow.tx.messages.publish(counters.replies);
        match step {
            Ok(Step::Again) => Progress::Again,
            Ok(Step::Read) => Progress::READ,
            Ok(Step::Write) => Progress::WRITE,
            Ok(Step::Over) => match self.end() {
                Ok(outcome) => Progress::Over(outcome),
                Err(error) => Progress::failed(error),
            },
            Err(error) => Progress::failed(error),
        }
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.socket.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
}
