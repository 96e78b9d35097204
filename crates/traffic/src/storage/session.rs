//! A target's connection: requests in, replies out. Memory is bounded whatever a client sends: nothing more is read
//! while replies wait to be sent.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use socket2::Socket;
use wirecost_nbd::NbdError;
use wirecost_nbd::export::Operation;
use wirecost_nbd::protocol::command;
use wirecost_nbd::reply::{data_chunk, error_chunk, simple};
use wirecost_nbd::request::{REQUEST_BYTES, Request};
use wirecost_nbd::server::{Next, ServerHandshake};
use wirecost_sys::shared_memory::{MAX_PARTS, Part};
use wirecost_sys::socket::receive;

use super::protocol;
use super::target::{NAME, Target};
use crate::buffers::STORAGE_INPUT;
use crate::task::IoFailure;

/// From this number of missing bytes on, data of a write are received straight into the target's memory.
const DIRECT_RECEIVE_BYTES: usize = 32 << 10;
/// Bytes of replies that are gathered for one system call.
const GATHERED_REPLY_BYTES: usize = 256 << 10;
/// Steps before other connections of the thread are served.
const BUDGET: u32 = 8;

/// Counters of a connection: data only, no headers.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct SessionCounters {
    /// Bytes of writes that arrived.
    pub(crate) written_bytes: u64,
    /// Bytes of reads that were sent.
    pub(crate) read_bytes: u64,
    /// Reads and writes that arrived.
    pub(crate) requests: u64,
    /// Reads and writes that were answered.
    pub(crate) replies: u64,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing: there is more to do.
    Again,
    /// Bytes of the client.
    Read,
    /// Room in the socket's send buffer.
    Write,
    /// The client has ended the session.
    Over,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Session {
    handshake: Option<ServerHandshake>,
    structured: bool,
    input: Box<[u8]>,
    /// Range of `input` that was not used yet.
    unused: Range<usize>,
    /// Whether the last read emptied the socket.
    emptied: bool,
    /// A write whose data is not complete.
    write: Option<Write>,
    out: ReplyQueue,
    ending: bool,
    pub(crate) counters: SessionCounters,
}

#[derive(Debug)]
struct Write {
    request: Request,
    /// Index in the target's memory of the next byte; `None`: the write is refused, and its data are discarded.
    at: Option<usize>,
    left: usize,
    error: u32,
}

impl Session {
    pub(crate) fn new(target: &Target) -> Self {
        let mut greeting = Vec::new();
        let handshake = ServerHandshake::new(target.export, NAME, &mut greeting);
        let mut out = ReplyQueue::default();
        out.bytes(&greeting);
        Self {
            handshake: Some(handshake),
            structured: false,
            input: vec![0; STORAGE_INPUT].into(),
            unused: 0..0,
            emptied: false,
            write: None,
            out,
            ending: false,
            counters: SessionCounters::default(),
        }
    }

    /// Does what can be done now.
    ///
    /// # Errors
    /// Errors of the socket; `InvalidData` with an [`NbdError`]; `UnexpectedEof`: the client closed the connection
    /// without ending the session.
    pub(crate) fn poll(&mut self, socket: &Socket, target: &Target) -> io::Result<Step> {
        for _ in 0..BUDGET {
            if !self.out.flush(socket, target, &mut self.counters)? {
                return Ok(Step::Write);
            }
            if self.ending {
                return Ok(Step::Over);
            }
            self.serve(target).map_err(protocol)?;
            if self.ending || !self.out.is_empty() {
                continue;
            }
            if std::mem::take(&mut self.emptied) {
                return Ok(Step::Read);
            }
            match self.fill(socket, target) {
                Ok(0) => return Err(self.gone()),
                Ok(_) => {}
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(Step::Read),
                    IoFailure::Broken(error) => return Err(error),
                },
            }
        }
        Ok(Step::Again)
    }

    /// The error of a client that closes the connection without ending the session (`DISC`, or `ABORT` within the
    /// handshake).
    fn gone(&self) -> io::Error {
        let words = if self.unused.is_empty() && self.write.is_none() {
            "it closed the connection without ending the session"
        } else {
            "it ended within a request"
        };
        io::Error::new(io::ErrorKind::UnexpectedEof, words)
    }

    fn fill(&mut self, socket: &Socket, target: &Target) -> io::Result<usize> {
        if let Some(write) = &mut self.write
            && let Some(at) = &mut write.at
            && write.left >= DIRECT_RECEIVE_BYTES
            && self.unused.is_empty()
        {
            let range = *at..*at + write.left;
            let read = target.memory.receive(socket, &range)?;
            self.emptied = read < range.len();
            *at += read;
            write.left -= read;
            self.counters.written_bytes += read as u64;
            return Ok(read);
        }
        self.input.copy_within(self.unused.clone(), 0);
        self.unused = 0..self.unused.len();
        let room = &mut self.input[self.unused.end..];
        let wanted = room.len();
        let read = receive(socket, room)?;
        self.emptied = read < wanted;
        self.unused.end += read;
        Ok(read)
    }

    /// Serves what has arrived, until replies fill a system call ([`GATHERED_REPLY_BYTES`]).
    fn serve(&mut self, target: &Target) -> Result<(), NbdError> {
        while !self.ending && !self.out.is_full() {
            let going_on = if self.handshake.is_some() {
                self.shake()?
            } else if self.write.is_some() {
                self.store(target)
            } else {
                self.request(target)?
            };
            if !going_on {
                break;
            }
        }
        Ok(())
    }

    /// Continues the handshake. Returns whether there may be more to serve.
    fn shake(&mut self) -> Result<bool, NbdError> {
        let Some(handshake) = &mut self.handshake else {
            return Ok(true);
        };
        let mut input = &self.input[self.unused.clone()];
        let mut out = Vec::new();
        let next = handshake.receive(&mut input, &mut out)?;
        self.unused.start = self.unused.end - input.len();
        self.out.bytes(&out);
        match next {
            Next::More => return Ok(false),
            Next::Aborted => self.ending = true,
            Next::Requests { structured } => {
                self.structured = structured;
                self.handshake = None;
            }
        }
        Ok(true)
    }

    /// Stores data of a write that have arrived, and answers a complete write. Returns whether there may be more to
    /// serve.
    fn store(&mut self, target: &Target) -> bool {
        let Some(write) = &mut self.write else {
            return true;
        };
        let taken = write.left.min(self.unused.len());
        if let Some(at) = &mut write.at {
            let data = &self.input[self.unused.start..self.unused.start + taken];
            target.memory.store(*at, data);
            *at += taken;
        }
        self.unused.start += taken;
        self.counters.written_bytes += taken as u64;
        write.left -= taken;
        if write.left > 0 {
            return false;
        }
        let (cookie, error) = (write.request.cookie, write.error);
        self.write = None;
        self.counters.requests += 1;
        self.out.bytes(&simple(cookie, error));
        self.counters.replies += 1;
        true
    }

    fn request(&mut self, target: &Target) -> Result<bool, NbdError> {
        let unused = &self.input[self.unused.clone()];
        let Some(bytes) = unused.first_chunk::<REQUEST_BYTES>() else {
            return Ok(false);
        };
        let request = Request::decode(bytes)?;
        let operation = target.export.operation(&request)?;
        self.unused.start += REQUEST_BYTES;
        let cookie = request.cookie;
        match operation {
            Operation::Read => {
                if self.structured {
                    let head = data_chunk(cookie, request.offset, request.length);
                    self.out.bytes(&head);
                } else {
                    self.out.bytes(&simple(cookie, 0));
                }
                let at = target.place(request.offset);
                self.out.memory(at..at + request.length as usize);
                self.counters.requests += 1;
                self.counters.replies += 1;
            }
            Operation::Write => {
                let at = Some(target.place(request.offset));
                self.write = Some(Write {
                    request,
                    at,
                    left: request.length as usize,
                    error: 0,
                });
            }
            Operation::RefuseWrite(error) => {
                self.write = Some(Write {
                    request,
                    at: None,
                    left: request.length as usize,
                    error,
                });
            }
            Operation::Refuse(error) if self.structured && request.command == command::READ => {
                self.out.bytes(&error_chunk(cookie, error));
            }
            Operation::Refuse(error) => self.out.bytes(&simple(cookie, error)),
            // Nothing to do: memory does not become more durable.
            Operation::Flush => self.out.bytes(&simple(cookie, 0)),
            Operation::Disconnect => self.ending = true,
        }
        Ok(true)
    }
}

/// Replies that wait to be sent.
#[derive(Debug, Default)]
struct ReplyQueue {
    /// Headers of all replies.
    heads: Vec<u8>,
    pieces: VecDeque<ReplyPart>,
    bytes: usize,
}

#[derive(Debug, Clone)]
enum ReplyPart {
    /// Range of `heads`.
    Head(Range<usize>),
    /// Range of the target's memory.
    Memory(Range<usize>),
}

impl ReplyQueue {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn is_full(&self) -> bool {
        self.bytes >= GATHERED_REPLY_BYTES || self.pieces.len() + 2 > MAX_PARTS
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let from = self.heads.len();
        self.heads.extend_from_slice(bytes);
        self.bytes += bytes.len();
        match self.pieces.back_mut() {
            Some(ReplyPart::Head(range)) if range.end == from => range.end = self.heads.len(),
            _ => self
                .pieces
                .push_back(ReplyPart::Head(from..self.heads.len())),
        }
    }

    fn memory(&mut self, range: Range<usize>) {
        self.bytes += range.len();
        self.pieces.push_back(ReplyPart::Memory(range));
    }

    /// Sends the replies; `false` where the socket takes no more.
    fn flush(
        &mut self,
        socket: &Socket,
        target: &Target,
        counters: &mut SessionCounters,
    ) -> io::Result<bool> {
        while !self.pieces.is_empty() {
            let heads = &self.heads;
            let parts = self.pieces.iter().map(|piece| match piece {
                ReplyPart::Head(range) => Part::Bytes(&heads[range.clone()]),
                ReplyPart::Memory(range) => Part::Memory(range.clone()),
            });
            match target.memory.send(socket, parts) {
                Ok(sent) => self.sent(sent, counters),
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Ok(false),
                    IoFailure::Broken(error) => return Err(error),
                },
            }
        }
        self.heads.clear();
        Ok(true)
    }

    fn sent(&mut self, mut sent: usize, counters: &mut SessionCounters) {
        self.bytes -= sent;
        while sent > 0
            && let Some(piece) = self.pieces.front_mut()
        {
            let (ReplyPart::Head(range) | ReplyPart::Memory(range)) = &mut *piece;
            let taken = range.len().min(sent);
            range.start += taken;
            sent -= taken;
            let over = range.start == range.end;
            if let ReplyPart::Memory(_) = piece {
                counters.read_bytes += taken as u64;
            }
            if over {
                self.pieces.pop_front();
            }
        }
    }
}
