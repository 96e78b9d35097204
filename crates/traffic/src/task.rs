//! Tasks: one direction of a flow as a state machine that does what can be done now and returns what it waits for.
//!
//! The same task runs on a blocking socket with a thread of its own, on a non-blocking socket among others, or
//! spinning; the worker thread decides.

use std::io;
use std::os::fd::BorrowedFd;

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::socket::send;

use crate::buffers::Buffers;
use crate::flow::{Flow, Outcome};
use crate::shared::{Shared, ThreadState};

/// One direction of a flow, or one thread's share of all flows.
pub(crate) trait Task: Send {
    /// Does what can be done now, within a bounded time.
    fn poll(&mut self, context: &mut Context<'_>) -> Progress;

    /// The descriptor to wait for, and a number that changes with the descriptor.
    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)>;

    /// The flow that ends with this task; `None` where it serves many.
    fn flow(&self) -> Option<u32>;

    /// The same task without its system calls, where it supports rings; else `None`.
    fn ring_io(&mut self) -> Option<&mut dyn RingIo> {
        None
    }
}

/// A task whose system calls the worker makes, many at once.
pub(crate) trait RingIo {
    /// The I/O that the task wants at `now` ([`Shared::now`]), or how the task ended.
    fn next_io(&mut self, context: &Context<'_>, now: u64) -> Result<IoRequest, Outcome>;

    /// Notes that `bytes` bytes were sent.
    fn sent(&mut self, context: &Context<'_>, bytes: usize);

    /// Notes that `bytes` bytes were received by `now`; 0 at the end of the stream.
    fn received(&mut self, context: &Context<'_>, bytes: usize, now: u64) -> Result<(), Outcome>;
}

/// The I/O that a task wants of its socket.
#[derive(Debug, Default)]
pub(crate) struct IoRequest {
    /// Bytes to send.
    pub(crate) send: usize,
    /// Upper bound on the bytes to receive; 0: none.
    pub(crate) receive: usize,
    /// When to ask again at the latest, nanoseconds by [`Shared::now`].
    pub(crate) until: Option<u64>,
}

/// What a task waits for.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Nothing: the task has more to do.
    Again,
    /// The socket, at the latest until this time ([`Shared::now`]).
    Wait(Interest, Option<u64>),
    /// The task has ended.
    Over(Outcome),
}

impl Progress {
    pub(crate) const READ: Self = Self::Wait(Interest::READ, None);
    pub(crate) const WRITE: Self = Self::Wait(Interest::WRITE, None);
    /// Waits for the thread's wake only.
    pub(crate) const PARK: Self = Self::Wait(Interest::NONE, None);

    /// The task has failed.
    pub(crate) fn failed(error: io::Error) -> Self {
        Self::Over(Outcome::Failed(error))
    }
}

/// What a thread lends to the task that it polls.
pub(crate) struct Context<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) thread: &'a ThreadState,
    pub(crate) buffers: &'a mut Buffers,
    /// Whether the socket blocks.
    pub(crate) blocking: bool,
}

impl Context<'_> {
    pub(crate) fn flow(&self, index: u32) -> &Flow {
        &self.shared.flows.all()[index as usize]
    }

    /// Records the latency of a transaction whose request was sent at `sent`. Times are nanoseconds by
    /// [`Shared::now`].
    pub(crate) fn record(&self, sent: u64, ended: u64) {
        if let Some(latency) = &self.thread.latency {
            latency.record(ended.saturating_sub(sent));
        }
    }

    /// Records the latency of a flush.
    pub(crate) fn record_flush(&self, sent: u64, ended: u64) {
        if let Some(flushes) = &self.thread.flushes {
            flushes.record(ended.saturating_sub(sent));
        }
    }

    /// Records how late a request was sent, where a rate says when it was due.
    pub(crate) fn record_lateness(&self, due: u64, sent: u64) {
        if let Some(lateness) = &self.thread.lateness {
            lateness.record(sent.saturating_sub(due));
        }
    }
}

/// What the error of a system call means.
pub(crate) enum IoFailure {
    /// The call was interrupted: try again.
    Interrupted,
    /// The call would block.
    Blocked,
    /// The flow has failed.
    Broken(io::Error),
}

/// Writes the `unsent` bytes of messages of `size` bytes, and counts messages that were completely written; `false`
/// where the socket takes no more.
pub(crate) fn write_messages(
    socket: &Socket,
    context: &Context<'_>,
    flow: u32,
    unsent: &mut usize,
    size: u32,
) -> io::Result<bool> {
    while *unsent > 0 {
        if !write_message(socket, context, flow, unsent, size)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// As [`write_messages`], with one system call, which may write a part.
pub(crate) fn write_message(
    socket: &Socket,
    context: &Context<'_>,
    flow: u32,
    unsent: &mut usize,
    size: u32,
) -> io::Result<bool> {
    let length = (*unsent).min(context.shared.message.len());
    match send(socket, &context.shared.message[..length]) {
        Ok(sent) => count_sent(context, flow, unsent, size, sent),
        Err(error) => match IoFailure::from(error) {
            IoFailure::Interrupted => {}
            IoFailure::Blocked => return Ok(false),
            IoFailure::Broken(error) => return Err(error),
        },
    }
    Ok(true)
}

/// Counts `sent` bytes written of messages of `size` bytes.
pub(crate) fn count_sent(
    context: &Context<'_>,
    flow: u32,
    unsent: &mut usize,
    size: u32,
    sent: usize,
) {
    let tx = &context.flow(flow).tx;
    *unsent -= sent;
    tx.bytes.add(sent as u64);
    tx.messages.publish(tx.bytes.get() / u64::from(size));
}

impl From<io::Error> for IoFailure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::Interrupted => Self::Interrupted,
            io::ErrorKind::WouldBlock => Self::Blocked,
            _ => Self::Broken(error),
        }
    }
}

pub(crate) mod arrivals;
pub(crate) mod crr_client;
pub(crate) mod crr_server;
pub(crate) mod migration_source;
pub(crate) mod migration_target;
mod move_record;
pub(crate) mod nbd_client;
pub(crate) mod nbd_server;
pub(crate) mod pacer;
pub(crate) mod path_client;
mod qemu_end;
pub(crate) mod qemu_source;
pub(crate) mod qemu_target;
mod request_loop;
pub(crate) mod request_schedule;
pub(crate) mod rr_client;
pub(crate) mod rr_server;
pub(crate) mod stream_receiver;
pub(crate) mod stream_sender;
pub(crate) mod udp_rr_client;
pub(crate) mod udp_sender;
pub(crate) mod udp_server;
pub(crate) mod write_pacer;
