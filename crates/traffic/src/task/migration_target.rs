//! A migration's destination: one connection of a machine.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;

use super::{Context, Progress, Task};
use crate::flow::Outcome;
use crate::migration::arrival::Arrival;
use crate::shared::Shared;
use crate::storage::session::Step;

pub(crate) struct MigrationTarget {
    socket: Arc<Socket>,
    flow: u32,
    machine: usize,
    arrival: Arrival,
}

impl MigrationTarget {
    pub(crate) fn new(shared: &Shared, socket: Arc<Socket>, flow: u32) -> Self {
        let channels = shared.options.load.connections() / shared.options.load.streams;
        Self {
            socket,
            flow,
            machine: (flow / channels) as usize,
            arrival: Arrival::new(flow % channels),
        }
    }

    /// Ends the connection after the source has.
    fn end(&self) -> io::Result<Outcome> {
        self.socket.set_linger(None)?;
        self.socket.shutdown(Shutdown::Write)?;
        Ok(Outcome::Orderly)
    }
}

impl Task for MigrationTarget {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        let Some(machine) = context.shared.landings.get(self.machine) else {
            return Progress::failed(io::ErrorKind::NotFound.into());
        };
        let step = self.arrival.poll(&self.socket, machine);
        let rx = &context.flow(self.flow).rx;
        rx.bytes.publish(self.arrival.bytes);
        rx.messages.publish(self.arrival.pages);
        match step {
            Ok(Step::Again) => Progress::Again,
            Ok(Step::Read) => Progress::READ,
            Ok(Step::Write) => Progress::WRITE,
            Ok(Step::Over) => self.end().map_or_else(Progress::failed, Progress::Over),
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
