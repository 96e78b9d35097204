//! TCP_CRR server: one thread's share of the connections.

mod connection;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use socket2::Socket;
use wirecost_sys::epoll::{Epoll, Events, Interest};
use wirecost_sys::socket::accept_nonblocking;

use self::connection::{Connection, Disposition};
use super::{Context, Progress, Task};
use crate::dispatch::Dispatcher;
use crate::flow::Outcome;
use crate::handshake::Answer;
use crate::ops::Listener;
use crate::options::WaitMode;
use crate::shared::Shared;
use crate::socket::OptionFixup;
use crate::timeouts::POLL_INTERVAL;

/// epoll token of the listener; others are indices of slots.
const LISTENER: u64 = u64::MAX;
/// epoll token of the dispatcher's wake.
const HANDOFF: u64 = u64::MAX - 1;
/// Connections that may be open beyond the load's flows.
const SPARE_SLOTS: usize = 64;
/// Interval between searches for connections that are late.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct CrrServer {
    listener: Arc<Socket>,
    dispatcher: Option<(Arc<Dispatcher>, usize)>,
    fixup: Option<OptionFixup>,
    epoll: Epoll,
    /// `None` while the events are processed.
    events: Option<Events>,
    slots: Box<[Option<Connection>]>,
    free: Vec<usize>,
    /// When expired connections were last searched for, nanoseconds by [`Shared::now`].
    expired_at: u64,
}

impl CrrServer {
    pub(crate) fn new(shared: &Shared, listener: Listener) -> io::Result<Self> {
        let Listener {
            socket: listener,
            dispatcher,
            fixup,
        } = listener;
        let room = shared.options.load.streams as usize + SPARE_SLOTS;
        let epoll = Epoll::new()?;
        epoll.add_exclusive(&*listener, LISTENER)?;
        if let Some((dispatcher, slot)) = &dispatcher {
            epoll.add(dispatcher.wake(*slot), Interest::READ, HANDOFF)?;
        }
        Ok(Self {
            listener,
            dispatcher,
            fixup,
            epoll,
            events: Some(Events::with_capacity(room + 2)),
            slots: (0..room).map(|_| None).collect(),
            free: (0..room).rev().collect(),
            expired_at: 0,
        })
    }

    fn accept(&mut self, context: &mut Context<'_>) {
        while self.free_slot(context) {
            match accept_nonblocking(&*self.listener) {
                Ok(socket) => {
                    let connection = Connection::new(socket.into(), context.shared.now());
                    self.admit(connection, context);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // No connection is waiting, or no descriptor is free: the listener becomes readable again.
                Err(_) => return,
            }
        }
    }

    /// Whether there is a free slot. Where all are taken, the oldest connection without a complete header is dropped:
    /// otherwise a few hundred silent peers would keep the load's own out. Only as many as there are slots, all between
    /// the connection and the header of one transaction, can end that transaction.
    fn free_slot(&mut self, context: &mut Context<'_>) -> bool {
        while self.free.is_empty() {
            let silent = self.slots.iter().enumerate().filter_map(|(slot, held)| {
                let held = held.as_ref().filter(|held| held.flow.is_none())?;
                Some((held.since, slot))
            });
            let Some((_, oldest)) = silent.min() else {
                return false;
            };
            // The header of that connection may have arrived meanwhile.
            self.serve_slot(oldest, context, false);
            let held = self.slots[oldest].as_ref();
            if held.is_some_and(|held| held.flow.is_none()) {
                self.drop_stray(oldest, context);
            }
        }
        true
    }

    /// Takes connections that threads of another load accepted.
    fn take_handoffs(&mut self, context: &mut Context<'_>) {
        let Some((dispatcher, own)) = self.dispatcher.clone() else {
            return;
        };
        dispatcher.wake(own).lower();
        for handoff in dispatcher.take(own) {
            let connection = Connection::resumed(handoff, context.shared.now());
            self.admit(connection, context);
        }
    }

    fn admit(&mut self, connection: Connection, context: &mut Context<'_>) {
        self.free_slot(context);
        let Some(slot) = self.free.pop() else {
            return context.shared.flows.count_stray();
        };
        let fixed = self
            .fixup
            .as_ref()
            .map(|fixup| fixup.apply(&connection.socket, &context.shared.options));
        self.slots[slot] = Some(connection);
        if let Some(Err(_)) = fixed {
            return self.drop_stray(slot, context);
        }
        // The request has often arrived already.
        self.serve_slot(slot, context, true);
    }

    /// Hands a connection over to the load that its header names; `false` where there is none.
    fn hand_over(&mut self, slot: usize, new: bool) -> bool {
        let Some((dispatcher, own)) = &self.dispatcher else {
            return false;
        };
        let Some(connection) = self.slots[slot].as_ref() else {
            return false;
        };
        let Some(target) = dispatcher
            .target(&connection.header)
            .filter(|target| target != own)
        else {
            return false;
        };
        if !new {
            let _ = self.epoll.remove(&connection.socket);
        }
        if let Some(connection) = self.slots[slot].take() {
            dispatcher.hand_over(target, connection.handoff());
        }
        self.free.push(slot);
        true
    }

    fn serve_slot(&mut self, slot: usize, context: &mut Context<'_>, new: bool) {
        let Some(connection) = self.slots.get_mut(slot).and_then(Option::as_mut) else {
            return;
        };
        let disposition = connection.advance(context).unwrap_or(Disposition::Stray);
        if connection.flow.is_some() && matches!(disposition, Disposition::Wait(_)) {
            connection.since = context.shared.now();
        }
        let waits = match disposition {
            Disposition::Wait(interest) if new => {
                connection.writes = interest.write;
                self.epoll.add(&connection.socket, interest, slot as u64)
            }
            Disposition::Wait(interest) if interest.write == connection.writes => Ok(()),
            Disposition::Wait(interest) => {
                connection.writes = interest.write;
                self.epoll.modify(&connection.socket, interest, slot as u64)
            }
            Disposition::Done => return self.release(slot),
            Disposition::OtherLoad if self.hand_over(slot, new) => return,
            Disposition::OtherLoad => {
                self.refuse(slot, Answer::OtherSecret);
                Err(io::ErrorKind::InvalidData.into())
            }
            Disposition::Stray => Err(io::ErrorKind::InvalidData.into()),
        };
        if waits.is_err() {
            self.drop_stray(slot, context);
        }
    }

    fn refuse(&self, slot: usize, answer: Answer) {
        if let Some(connection) = &self.slots[slot] {
            connection.answer(answer);
        }
    }

    /// Drops a connection as a stray: not this load's, broken, or too slow.
    fn drop_stray(&mut self, slot: usize, context: &Context<'_>) {
        context.shared.flows.count_stray();
        self.release(slot);
    }

    fn release(&mut self, slot: usize) {
        self.slots[slot] = None;
        self.free.push(slot);
    }

    /// Drops connections that are late.
    fn expire_old(&mut self, context: &Context<'_>) {
        let now = context.shared.now();
        if now.saturating_sub(self.expired_at) < EXPIRY_INTERVAL.as_nanos() as u64 {
            return;
        }
        self.expired_at = now;
        for slot in 0..self.slots.len() {
            let late = self.slots[slot].as_ref();
            if late.is_some_and(|connection| connection.is_late(now)) {
                self.drop_stray(slot, context);
            }
        }
    }
}

impl Task for CrrServer {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        let shared = context.shared;
        if shared.flows.is_aborted() || (shared.flows.stopping() && shared.flows.all_ended()) {
            return Progress::Over(Outcome::Orderly);
        }
        let patience = match shared.options.load.waiting {
            WaitMode::Sleep => POLL_INTERVAL,
            WaitMode::Spin => Duration::ZERO,
        };
        let Some(mut events) = self.events.take() else {
            return Progress::Again;
        };
        if let Err(error) = self.epoll.wait(&mut events, Some(patience)) {
            return Progress::failed(error);
        }
        let mut any = false;
        for token in events.tokens() {
            any = true;
            if token == LISTENER {
                self.accept(context);
            } else if token == HANDOFF {
                self.take_handoffs(context);
            } else {
                self.serve_slot(token as usize, context, false);
            }
        }
        self.events = Some(events);
        self.expire_old(context);
        if any { Progress::Again } else { Progress::READ }
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.listener.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        None
    }
}

impl Drop for CrrServer {
    /// Connections without a complete header may be another load's: they are handed over.
    fn drop(&mut self) {
        let Some((dispatcher, own)) = self.dispatcher.take() else {
            return;
        };
        let connections = self.slots.iter_mut().filter_map(Option::take);
        let unknown = connections.filter(|connection| connection.flow.is_none());
        dispatcher.close(own, unknown.map(Connection::handoff));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{Ipv4Addr, TcpListener};

    use socket2::{Domain, Type};
    use wirecost_model::end_window::End;

    use super::*;
    use crate::buffers::{BufferSizes, Buffers};
    use crate::handshake::{Header, Phase};
    use crate::options::{Options, Workload};

    #[test]
    fn a_transaction_that_moves_is_waited_for_anew() {
        let options = Options::new(Workload::TcpCrr, [7; 16]).with(|load| load.request = 1 << 20);
        let sizes = BufferSizes::tcp(&options);
        let shared = Shared::new(&options, End::Server, 1, 1, sizes).unwrap();
        shared.flows.set_connected(&shared.flows.all()[0]);
        let mut buffers = Buffers::new(&sizes, false);
        let mut context = Context {
            shared: &shared,
            thread: &shared.threads[0],
            buffers: &mut buffers,
            blocking: false,
        };
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let listener = Listener {
            socket: Arc::new(Socket::from(socket)),
            dispatcher: None,
            fixup: None,
        };
        let mut server = CrrServer::new(&shared, listener).unwrap();
        let (accepted, client) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        accepted.set_nonblocking(true).unwrap();
        let header = Header::new(&options, 0, Phase::Transaction).encode();
        (&client).write_all(&header).unwrap();
        server.admit(Connection::new(accepted, 0), &mut context);
        let since = server.slots.iter().flatten().map(|held| held.since).max();
        assert!(since > Some(0), "{since:?}");
    }
}
