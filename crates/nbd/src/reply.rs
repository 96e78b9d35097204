//! Replies to requests: encoded by a server, decoded by a client.

use crate::NbdError;
use crate::arrived::ArrivedData;
use crate::cursor::Cursor;
use crate::protocol::{SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk, command, errno};
use crate::request::Request;

/// Bytes of a simple reply, without data.
pub const SIMPLE_BYTES: usize = 16;
/// Bytes of a chunk of a structured reply, without its payload.
pub const CHUNK_BYTES: usize = 20;
/// Bytes before the data in a chunk of read data: the chunk's header and the offset.
pub const DATA_CHUNK_BYTES: usize = CHUNK_BYTES + 8;
/// Payload of a chunk of zeroes, bytes: offset 8, length 4.
const HOLE_PAYLOAD: u32 = 12;
/// Longest header that is collected, bytes: a complete chunk of zeroes.
const MAX_HEADER: usize = CHUNK_BYTES + HOLE_PAYLOAD as usize;
/// Longest payload of an error chunk, bytes: number 4, length of the message 2, message 4096, offset 8.
const MAX_ERROR_PAYLOAD: u32 = 4110;

/// Encodes a simple reply without data; `error` is 0 or one of [`errno`].
pub fn simple(cookie: u64, error: u32) -> [u8; SIMPLE_BYTES] {
    let mut bytes = [0; SIMPLE_BYTES];
    bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// Encodes what precedes the `length` bytes of a read in a structured reply of a single chunk. `length` is below 4 GiB
/// less 8 bytes.
pub fn data_chunk(cookie: u64, offset: u64, length: u32) -> [u8; DATA_CHUNK_BYTES] {
    let mut bytes = [0; DATA_CHUNK_BYTES];
    bytes[..CHUNK_BYTES].copy_from_slice(&chunk_header(chunk::OFFSET_DATA, cookie, length + 8));
    bytes[CHUNK_BYTES..].copy_from_slice(&offset.to_be_bytes());
    bytes
}

/// Encodes a structured reply of a single chunk to a failed request; `error` is one of [`errno`].
pub fn error_chunk(cookie: u64, error: u32) -> [u8; CHUNK_BYTES + 6] {
    let mut bytes = [0; CHUNK_BYTES + 6];
    bytes[..CHUNK_BYTES].copy_from_slice(&chunk_header(chunk::ERROR, cookie, 6));
    bytes[CHUNK_BYTES..CHUNK_BYTES + 4].copy_from_slice(&error.to_be_bytes());
    bytes
}

fn chunk_header(kind: u16, cookie: u64, length: u32) -> [u8; CHUNK_BYTES] {
    let mut bytes = [0; CHUNK_BYTES];
    bytes[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&chunk::FLAG_DONE.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Progress of a request, as a client learns it from replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Data were read: the last `length` bytes that [`ReplyReader::next`] took from its input.
    Data {
        /// Cookie of the request.
        cookie: u64,
        /// Offset of the first byte in the export.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// Zeroes were read, which the server does not send as data.
    Zeroes {
        /// Cookie of the request.
        cookie: u64,
        /// Offset of the first byte in the export.
        offset: u64,
        /// Number of bytes.
        length: u32,
    },
    /// The request is answered; all data of a read were reported before.
    Done {
        /// Cookie of the request.
        cookie: u64,
    },
}

/// A client's requests that wait for their replies.
pub trait Outstanding {
    /// The request with this cookie and what has arrived of its data so far; `None`: there is none.
    fn find(&mut self, cookie: u64) -> Option<(Request, &mut ArrivedData)>;
}

/// Decodes a server's replies, which arrive in pieces of any length.
#[derive(Debug, Default)]
pub struct ReplyReader {
    structured: bool,
    state: State,
    /// Header that has not arrived completely: its first `filled` bytes.
    header: [u8; MAX_HEADER],
    filled: usize,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Header,
    /// `left` bytes of read data follow.
    Data {
        cookie: u64,
        offset: u64,
        left: u32,
        /// Whether this is the last chunk of its reply.
        done: bool,
    },
    /// Zeroes were read.
    Zeroes {
        cookie: u64,
        offset: u64,
        length: u32,
        done: bool,
    },
    /// The reply is complete.
    Done { cookie: u64 },
    /// The request failed with `number`; `left` more bytes of the error chunk are skipped.
    Error { cookie: u64, left: u32, number: u32 },
}

impl ReplyReader {
    /// `structured`: whether the handshake agreed on structured replies.
    pub fn new(structured: bool) -> Self {
        Self {
            structured,
            ..Self::default()
        }
    }

    /// Takes bytes from the front of `input` and returns the next event; `None`: more bytes are needed. The data of an
    /// [`Event::Data`] are the last bytes that were taken.
    ///
    /// # Errors
    /// The server violates the protocol, or answers a request with an error ([`NbdError::Failed`]).
    pub fn next(
        &mut self,
        input: &mut &[u8],
        outstanding: &mut impl Outstanding,
    ) -> Result<Option<Event>, NbdError> {
        loop {
            match self.state {
                State::Done { cookie } => {
                    self.state = State::Header;
                    return Ok(Some(Event::Done { cookie }));
                }
                State::Data {
                    cookie,
                    offset,
                    left,
                    done,
                } => {
                    let length = left.min(u32::try_from(input.len()).unwrap_or(u32::MAX));
                    if length == 0 {
                        return Ok(None);
                    }
                    *input = &input[length as usize..];
                    self.state = match left - length {
                        0 => after(cookie, done),
                        left => State::Data {
                            cookie,
                            offset: offset + u64::from(length),
                            left,
                            done,
                        },
                    };
                    return Ok(Some(Event::Data {
                        cookie,
                        offset,
                        length,
                    }));
                }
                State::Error {
                    cookie,
                    left,
                    number,
                } => {
                    let taken = left.min(u32::try_from(input.len()).unwrap_or(u32::MAX));
                    if taken == 0 && left > 0 {
                        return Ok(None);
                    }
                    *input = &input[taken as usize..];
                    if left > taken {
                        self.state = State::Error {
                            cookie,
                            left: left - taken,
                            number,
                        };
                        return Ok(None);
                    }
                    return Err(failed(cookie, number, outstanding));
                }
                State::Zeroes {
                    cookie,
                    offset,
                    length,
                    done,
                } => {
                    self.state = after(cookie, done);
                    return Ok(Some(Event::Zeroes {
                        cookie,
                        offset,
                        length,
                    }));
                }
                State::Header => {
                    if !self.header(input, outstanding)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Collects the first `wanted` bytes of a header; `false` where some have not arrived.
    fn collect(&mut self, input: &mut &[u8], wanted: usize) -> bool {
        let missing = wanted.saturating_sub(self.filled).min(input.len());
        let (taken, rest) = input.split_at(missing);
        self.header[self.filled..self.filled + missing].copy_from_slice(taken);
        self.filled += missing;
        *input = rest;
        self.filled >= wanted
    }

    /// Decodes the header of a simple reply or of a chunk; `false` where it has not arrived completely.
    fn header(
        &mut self,
        input: &mut &[u8],
        outstanding: &mut impl Outstanding,
    ) -> Result<bool, NbdError> {
        if !self.collect(input, 4) {
            return Ok(false);
        }
        let magic = Cursor(&self.header).u32().unwrap_or_default();
        match magic {
            SIMPLE_REPLY_MAGIC => {
                if !self.collect(input, SIMPLE_BYTES) {
                    return Ok(false);
                }
                self.filled = 0;
                self.state = self.simple(outstanding)?;
                Ok(true)
            }
            STRUCTURED_REPLY_MAGIC if self.structured => {
                if !self.collect(input, CHUNK_BYTES) {
                    return Ok(false);
                }
                self.chunk(input, outstanding)
            }
            _ => Err(NbdError::Magic {
                what: "a reply",
                found: magic.into(),
            }),
        }
    }

    fn simple(&self, outstanding: &mut impl Outstanding) -> Result<State, NbdError> {
        let mut header = Cursor(&self.header[4..SIMPLE_BYTES]);
        let (error, cookie) = (header.u32(), header.u64());
        let (error, cookie) = (error.unwrap_or_default(), cookie.unwrap_or_default());
        let (request, arrived) = outstanding
            .find(cookie)
            .ok_or(NbdError::Cookie { cookie })?;
        if error != 0 {
            return Err(failed(cookie, error, outstanding));
        }
        if request.command != command::READ {
            return Ok(State::Done { cookie });
        }
        if self.structured {
            let what = "a simple reply to a read, where structured ones were agreed on";
            return Err(NbdError::Reply { what });
        }
        count(&request, arrived, request.offset, request.length, true)?;
        Ok(State::Data {
            cookie,
            offset: request.offset,
            left: request.length,
            done: true,
        })
    }

    /// Decodes a chunk whose header is complete; `false` where the fields before its data have not arrived completely.
    fn chunk(
        &mut self,
        input: &mut &[u8],
        outstanding: &mut impl Outstanding,
    ) -> Result<bool, NbdError> {
        let mut header = Cursor(&self.header[4..CHUNK_BYTES]);
        let (flags, kind) = (header.u16(), header.u16());
        let (cookie, length) = (header.u64().unwrap_or_default(), header.u32());
        let (flags, kind) = (flags.unwrap_or_default(), kind.unwrap_or_default());
        let length = length.unwrap_or_default();
        let done = flags & chunk::FLAG_DONE != 0;
        let wrong = |what| Err(NbdError::Reply { what });
        let Some((request, arrived)) = outstanding.find(cookie) else {
            return Err(NbdError::Cookie { cookie });
        };
        let is_read = request.command == command::READ;
        match kind {
            chunk::NONE if length != 0 => wrong("a chunk of nothing with a payload"),
            chunk::NONE if !done => wrong("a chunk of nothing that is not the last"),
            chunk::NONE => {
                if is_read && !arrived.is_all(request.length) {
                    return wrong("a read that ended without all of its data");
                }
                self.filled = 0;
                self.state = State::Done { cookie };
                Ok(true)
            }
            chunk::OFFSET_DATA if !is_read || length <= 8 => {
                wrong("a chunk of data that no read can have")
            }
            chunk::OFFSET_DATA => {
                if !self.collect(input, DATA_CHUNK_BYTES) {
                    return Ok(false);
                }
                self.filled = 0;
                let offset = Cursor(&self.header[CHUNK_BYTES..]).u64();
                let (offset, left) = (offset.unwrap_or_default(), length - 8);
                count(&request, arrived, offset, left, done)?;
                self.state = State::Data {
                    cookie,
                    offset,
                    left,
                    done,
                };
                Ok(true)
            }
            chunk::OFFSET_HOLE if !is_read || length != HOLE_PAYLOAD => {
                wrong("a chunk of zeroes that no read can have")
            }
            chunk::OFFSET_HOLE => {
                if !self.collect(input, MAX_HEADER) {
                    return Ok(false);
                }
                self.filled = 0;
                let mut hole = Cursor(&self.header[CHUNK_BYTES..]);
                let (offset, length) = (hole.u64(), hole.u32());
                let (offset, length) = (offset.unwrap_or_default(), length.unwrap_or_default());
                count(&request, arrived, offset, length, done)?;
                self.state = State::Zeroes {
                    cookie,
                    offset,
                    length,
                    done,
                };
                Ok(true)
            }
            chunk::ERROR | chunk::ERROR_OFFSET if !(6..=MAX_ERROR_PAYLOAD).contains(&length) => {
                wrong("an error of an impossible length")
            }
            chunk::ERROR | chunk::ERROR_OFFSET => {
                if !self.collect(input, CHUNK_BYTES + 4) {
                    return Ok(false);
                }
                self.filled = 0;
                let number = Cursor(&self.header[CHUNK_BYTES..]).u32();
                self.state = State::Error {
                    cookie,
                    left: length - 4,
                    number: number.unwrap_or(errno::EIO),
                };
                Ok(true)
            }
            _ => wrong("a chunk of an unknown type"),
        }
    }
}

const fn after(cookie: u64, done: bool) -> State {
    if done {
        State::Done { cookie }
    } else {
        State::Header
    }
}

/// Adds the bytes of a chunk to those of a read that have `arrived`: they must lie within the read, and be new.
fn count(
    request: &Request,
    arrived: &mut ArrivedData,
    offset: u64,
    length: u32,
    done: bool,
) -> Result<(), NbdError> {
    let wrong = |what| Err(NbdError::Reply { what });
    let end = request.offset + u64::from(request.length);
    let inside = offset >= request.offset
        && offset
            .checked_add(u64::from(length))
            .is_some_and(|last| last <= end);
    if length == 0 || !inside {
        return wrong("data that was not asked for");
    }
    let from = (offset - request.offset) as u32;
    if let Err(what) = arrived.add(from..from + length) {
        return wrong(what);
    }
    if done && !arrived.is_all(request.length) {
        return wrong("a read that ended without all of its data");
    }
    Ok(())
}

/// [`NbdError::Failed`] for an outstanding request.
fn failed(cookie: u64, error: u32, outstanding: &mut impl Outstanding) -> NbdError {
    match outstanding.find(cookie) {
        Some((request, _)) => NbdError::Failed {
            command: request.word(),
            offset: request.offset,
            length: request.length,
            error,
        },
        None => NbdError::Cookie { cookie },
    }
}
