//! A migration's destination: one connection of a machine.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use socket2::Socket;

use wirecost_sys::epoll::Interest;

use super::{Context, Progress, Task};
use crate::flow::Outcome;
use crate::migration::destination_machine::DestinationMachine;
use crate::migration::receiver::MigrationReceiver;
use crate::shared::Shared;
use crate::storage::session::Step;
use crate::timeouts::PEER_TIMEOUT;

pub(crate) struct MigrationTarget {
    socket: Arc<Socket>,
    flow: u32,
    machine: usize,
    receiver: MigrationReceiver,
}

impl MigrationTarget {
    pub(crate) fn new(shared: &Shared, socket: Arc<Socket>, flow: u32) -> Self {
        let channels = shared.options.load.connections() / shared.options.load.streams;
        Self {
            socket,
            flow,
            machine: (flow / channels) as usize,
            receiver: MigrationReceiver::new(flow % channels),
        }
    }

    /// What the connection waits for now. `TimedOut` where the machine may wait for missing pages, and nothing has
    /// arrived for [`PEER_TIMEOUT`].
    fn waits(&self, shared: &Shared, machine: &DestinationMachine) -> io::Result<Progress> {
        let Some(since) = self.receiver.awaits() else {
            return Ok(Progress::READ);
        };
        let until = since + PEER_TIMEOUT;
        if Instant::now() < until {
            let until = shared.ns(until) + 1;
            return Ok(Progress::Wait(Interest::READ, Some(until)));
        }
        let missing = machine
            .post_copy
            .as_ref()
            .map_or(0, |one| one.left(self.receiver.channel));
        let words = format!(
            "nothing came from the source for {} s, and {missing} pages are missing of the machine that runs here",
            PEER_TIMEOUT.as_secs()
        );
        Err(io::Error::new(io::ErrorKind::TimedOut, words))
    }

    /// Shuts the connection down in order, after the source has.
    fn end(&self) -> io::Result<Outcome> {
        self.socket.set_linger(None)?;
        self.socket.shutdown(Shutdown::Write)?;
        Ok(Outcome::Orderly)
    }
}

impl Task for MigrationTarget {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        let Some(machine) = context.shared.destination_machines.get(self.machine) else {
            return Progress::failed(io::ErrorKind::NotFound.into());
        };
        let step = self.receiver.poll(&self.socket, machine);
        let rx = &context.flow(self.flow).rx;
        rx.bytes.publish(self.receiver.bytes);
        rx.messages.publish(self.receiver.pages);
        let next = match step {
            Ok(Step::Again) => Ok(Progress::Again),
            Ok(Step::Read) => self.waits(context.shared, machine),
            Ok(Step::Write) => Ok(Progress::WRITE),
            Ok(Step::Over) => self.end().map(Progress::Over),
            Err(error) => Err(error),
        };
        next.unwrap_or_else(|error| {
            if let Some(post_copy) = &machine.post_copy {
                // The machine's thread may wait for a page that never comes.
                post_copy.abandon();
            }
            Progress::failed(error)
        })
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.socket.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
}
