//! NBD handshake, server side.

use crate::NbdError;
use crate::cursor::{Cursor, Pending, check_length};
use crate::export::Export;
use crate::protocol::{
    MAX_OPTIONS, OPTION_MAGIC, OPTION_REPLY_MAGIC, SERVER_MAGIC, handshake, info, option,
    option_reply,
};

/// Bytes of an option before its data: magic 8, option 4, length 4.
const OPTION_HEADER: usize = 16;
/// Zero bytes after size and flags in the reply to `EXPORT_NAME`, unless [`handshake::NO_ZEROES`] is agreed on.
const ZEROES: usize = 124;

/// Handshake of one connection. The server has one export, selected by its name or by the empty name.
#[derive(Debug)]
pub struct ServerHandshake {
    export: Export,
    name: String,
    pending: Pending,
    /// The client's flags, once they have arrived.
    flags: Option<u32>,
    structured: bool,
    options: u32,
}

/// What is next on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// More of the client's bytes are needed.
    More,
    /// The handshake is over, and requests follow.
    Requests {
        /// Whether reads are answered by structured replies, as the client asked for.
        structured: bool,
    },
    /// The client ended the handshake (`ABORT`).
    Aborted,
}

impl ServerHandshake {
    /// Starts a handshake for the export `name`, and appends the greeting to `out`.
    pub fn new(export: Export, name: &str, out: &mut Vec<u8>) -> Self {
        out.extend(SERVER_MAGIC.to_be_bytes());
        out.extend(OPTION_MAGIC.to_be_bytes());
        out.extend((handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
        Self {
            export,
            name: name.to_owned(),
            pending: Pending::default(),
            flags: None,
            structured: false,
            options: 0,
        }
    }

    /// Consumes the client's bytes from the front of `input` and appends the bytes to send to `out`. After the
    /// handshake the rest of `input` belongs to requests.
    ///
    /// # Errors
    /// The client violates the protocol; the connection is to be closed.
    pub fn receive(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<Next, NbdError> {
        if self.flags.is_none() {
            let Some(bytes) = self.pending.fill(input, 4) else {
                return Ok(Next::More);
            };
            let flags = Cursor(bytes).u32().unwrap_or_default();
            if flags & !u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES) != 0 {
                return Err(NbdError::ClientFlags { flags });
            }
            self.pending.clear();
            self.flags = Some(flags);
        }
        loop {
            let Some((option, data)) = self.option(input)? else {
                return Ok(Next::More);
            };
            self.pending.clear();
            self.options += 1;
            if self.options > MAX_OPTIONS {
                return Err(NbdError::TooManyOptions);
            }
            let next = self.answer(option, &data, out)?;
            if next != Next::More {
                return Ok(next);
            }
        }
    }

    /// The next option and its data; `None` where it is not complete.
    fn option(&mut self, input: &mut &[u8]) -> Result<Option<(u32, Vec<u8>)>, NbdError> {
        let Some(bytes) = self.pending.fill(input, OPTION_HEADER) else {
            return Ok(None);
        };
        let mut header = Cursor(bytes);
        let (found, option, length) = (header.u64(), header.u32(), header.u32());
        let (found, option) = (found.unwrap_or_default(), option.unwrap_or_default());
        if found != OPTION_MAGIC {
            let what = "an option";
            return Err(NbdError::Magic { what, found });
        }
        let length = check_length(option, length.unwrap_or_default())?;
        let all = self.pending.fill(input, OPTION_HEADER + length);
        Ok(all.map(|all| (option, all[OPTION_HEADER..].to_vec())))
    }

    fn answer(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) -> Result<Next, NbdError> {
        match option {
            option::EXPORT_NAME => {
                if !self.is_named(data) {
                    let name: String = String::from_utf8_lossy(data).chars().take(64).collect();
                    return Err(NbdError::UnknownExport(name));
                }
                out.extend(self.export.size.to_be_bytes());
                out.extend(self.export.flags.to_be_bytes());
                if self.flags.unwrap_or_default() & u32::from(handshake::NO_ZEROES) == 0 {
                    out.extend([0; ZEROES]);
                }
                return Ok(self.requests());
            }
            option::ABORT => {
                reply(out, option, option_reply::ACK, &[]);
                return Ok(Next::Aborted);
            }
            option::LIST if data.is_empty() => {
                let mut entry = (self.name.len() as u32).to_be_bytes().to_vec();
                entry.extend(self.name.as_bytes());
                reply(out, option, option_reply::SERVER, &entry);
                reply(out, option, option_reply::ACK, &[]);
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                reply(out, option, option_reply::ACK, &[]);
            }
            option::GO | option::INFO => match asked_export(data) {
                None => reply(out, option, option_reply::INVALID, &[]),
                Some(name) if !self.is_named(name) => {
                    reply(out, option, option_reply::UNKNOWN, &[]);
                }
                Some(_) => {
                    self.describe(option, out);
                    reply(out, option, option_reply::ACK, &[]);
                    if option == option::GO {
                        return Ok(self.requests());
                    }
                }
            },
            option::LIST | option::STRUCTURED_REPLY => {
                reply(out, option, option_reply::INVALID, &[]);
            }
            _ => reply(out, option, option_reply::UNSUPPORTED, &[]),
        }
        Ok(Next::More)
    }

    fn is_named(&self, name: &[u8]) -> bool {
        name.is_empty() || name == self.name.as_bytes()
    }

    const fn requests(&self) -> Next {
        Next::Requests {
            structured: self.structured,
        }
    }

    /// Appends `INFO` replies with size, flags and block sizes; block sizes even where the client did not ask for them.
    fn describe(&self, option: u32, out: &mut Vec<u8>) {
        let Export {
            size,
            flags,
            min_block,
            max_block,
        } = self.export;
        let mut export = info::EXPORT.to_be_bytes().to_vec();
        export.extend(size.to_be_bytes());
        export.extend(flags.to_be_bytes());
        reply(out, option, option_reply::INFO, &export);
        let mut blocks = info::BLOCK_SIZE.to_be_bytes().to_vec();
        // The preferred size is 4096, moved into the range from the smallest to the largest.
        for bytes in [min_block, min_block.max(4096).min(max_block), max_block] {
            blocks.extend(bytes.to_be_bytes());
        }
        reply(out, option, option_reply::INFO, &blocks);
    }
}

/// The export that `GO` or `INFO` names; `None` where the data is malformed.
fn asked_export(data: &[u8]) -> Option<&[u8]> {
    let mut data = Cursor(data);
    let length = data.u32()?;
    let name = data.bytes(length as usize)?;
    let asked = data.u16()?;
    (data.0.len() == 2 * usize::from(asked)).then_some(name)
}

fn reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend((data.len() as u32).to_be_bytes());
    out.extend(data);
}
