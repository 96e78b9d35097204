//! A flow's half as a machine: it does what can be done now and says what it waits for.
//!
//! The same machine runs on a blocking socket with a thread of its own, on a non-blocking one beside others, or is
//! asked again and again: which of these is its thread's affair.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::socket::{ReceiveBatch, SendBatch, send};

use crate::flow::{End, Flow};
use crate::load::{Load, Seat};

/// How long data or a response may be missing before the peer counts as vanished.
pub(crate) const PEER_SILENCE: Duration = Duration::from_secs(10);
/// Longest wait of a blocking call before the thread looks at what it was told.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// One half of a flow, or one thread's share of all flows.
pub(crate) trait Machine: Send {
    /// Does what can be done, but not for ever.
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next;

    /// What to wait for, and a number that changes when it is another descriptor.
    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)>;

    /// The flow whose end this one's is; `None` where it has many.
    fn flow(&self) -> Option<u32>;

    /// The same machine without its system calls, where it has such a side.
    fn exchange(&mut self) -> Option<&mut dyn Exchange> {
        None
    }
}

/// One half of a connection that carries messages, for whoever makes the system calls of many such halves at once.
pub(crate) trait Exchange {
    /// What it wants of its socket at `now`, or how it ended.
    fn wants(&mut self, desk: &Desk<'_>, now: u64) -> Result<Wants, End>;

    /// So many bytes of what it wanted to send are the kernel's.
    fn sent(&mut self, desk: &Desk<'_>, bytes: usize);

    /// So many bytes were read by `now`; none at the end of the stream.
    fn received(&mut self, desk: &Desk<'_>, bytes: usize, now: u64) -> Result<(), End>;
}

/// What one half of a connection wants of its socket.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    /// Bytes still to be sent.
    pub(crate) send: usize,
    /// Bytes to be read at most; 0: nothing is waited for.
    pub(crate) receive: usize,
    /// When it wants to be asked again at the latest.
    pub(crate) until: Option<u64>,
}

/// What a machine waits for.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nothing: there is more to do.
    Again,
    /// The socket, at most until this time where it is one ([`Load::now`]).
    Wait(Interest, Option<u64>),
    /// It is over.
    Over(End),
}

impl Next {
    pub(crate) const READ: Self = Self::Wait(Interest::READ, None);
    pub(crate) const WRITE: Self = Self::Wait(Interest::WRITE, None);
    /// Only for being told something.
    pub(crate) const PARK: Self = Self::Wait(Interest::NONE, None);

    /// It broke.
    pub(crate) fn failed(error: io::Error) -> Self {
        Self::Over(End::Failed(error))
    }
}

/// What a thread lends to the machine whose turn it is.
pub(crate) struct Desk<'a> {
    pub(crate) load: &'a Load,
    pub(crate) seat: &'a Seat,
    pub(crate) room: &'a mut Room,
    /// Whether the socket blocks.
    pub(crate) blocking: bool,
}

impl Desk<'_> {
    pub(crate) fn flow(&self, index: u32) -> &Flow {
        &self.load.flows.all()[index as usize]
    }

    /// Counts the latency of a transaction whose request was sent at `sent`.
    pub(crate) fn record(&self, sent: u64, ended: u64) {
        if let Some(latency) = &self.seat.latency {
            latency.record(ended.saturating_sub(sent));
        }
    }

    /// Counts how late a request was sent, where a rate says when it was due.
    pub(crate) fn record_lateness(&self, due: u64, sent: u64) {
        if let Some(lateness) = &self.seat.lateness {
            lateness.record(sent.saturating_sub(due));
        }
    }
}

/// A thread's buffers, made and touched before the start.
#[derive(Debug)]
pub(crate) struct Room {
    /// What is read over TCP.
    pub(crate) bytes: Box<[u8]>,
    pub(crate) out: SendBatch,
    pub(crate) incoming: ReceiveBatch,
}

/// What a failed call means to a machine.
pub(crate) enum Trouble {
    /// Nothing: ask again.
    Interrupted,
    /// It would have to wait.
    Blocked,
    /// The flow is broken.
    Broken(io::Error),
}

/// Writes what is `unsent` of a flow's messages of `size` bytes each, and counts those that are
/// wholly on their way; `false` where the socket takes no more.
pub(crate) fn write_messages(
    socket: &Socket,
    desk: &Desk<'_>,
    flow: u32,
    unsent: &mut usize,
    size: u32,
) -> io::Result<bool> {
    while *unsent > 0 {
        if !write_message(socket, desk, flow, unsent, size)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The same in one system call, which may leave some of it.
pub(crate) fn write_message(
    socket: &Socket,
    desk: &Desk<'_>,
    flow: u32,
    unsent: &mut usize,
    size: u32,
) -> io::Result<bool> {
    let length = (*unsent).min(desk.load.message.len());
    match send(socket, &desk.load.message[..length]) {
        Ok(sent) => count_sent(desk, flow, unsent, size, sent),
        Err(error) => match Trouble::from(error) {
            Trouble::Interrupted => {}
            Trouble::Blocked => return Ok(false),
            Trouble::Broken(error) => return Err(error),
        },
    }
    Ok(true)
}

/// Counts what was written of a flow's messages of `size` bytes each.
pub(crate) fn count_sent(desk: &Desk<'_>, flow: u32, unsent: &mut usize, size: u32, sent: usize) {
    let out = &desk.flow(flow).out;
    *unsent -= sent;
    out.bytes.add(sent as u64);
    out.messages.publish(out.bytes.get() / u64::from(size));
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::Interrupted => Self::Interrupted,
            io::ErrorKind::WouldBlock => Self::Blocked,
            _ => Self::Broken(error),
        }
    }
}

pub(crate) mod accept;
pub(crate) mod connect;
pub(crate) mod datagrams;
pub(crate) mod gate;
pub(crate) mod landing;
pub(crate) mod pace;
pub(crate) mod request;
pub(crate) mod respond;
pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod udp_request;
pub(crate) mod udp_source;
pub(crate) mod write_size;
