//! NBD handshake, client side.

use crate::NbdError;
use crate::cursor::{Cursor, Pending, check_length};
use crate::export::Export;
use crate::protocol::{
    MAX_NAME_BYTES, MAX_OPTIONS, OLDSTYLE_MAGIC, OPTION_MAGIC, OPTION_REPLY_MAGIC, SERVER_MAGIC,
    handshake, info, option, option_reply, transmission,
};

/// Bytes of a server's greeting: two magic numbers and its flags.
const GREETING: usize = 18;
/// Bytes of a reply to an option before its data: magic 8, option 4, kind 4, length 4.
const REPLY_HEADER: usize = 20;
/// Largest block assumed where the server advertises no block sizes, bytes.
const USUAL_MAX_BLOCK: u32 = 32 << 20;

/// Handshake of one connection: negotiates structured replies, then selects the export with `GO`.
#[derive(Debug)]
pub struct ClientHandshake {
    name: String,
    pending: Pending,
    step: Step,
    structured: bool,
    /// Size in bytes and transmission flags of the export, once a reply to `GO` has carried them.
    size_and_flags: Option<(u64, u16)>,
    blocks: (u32, u32),
    replies: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Greeting,
    /// Waits for replies to the option with this number.
    Option(u32),
    Over,
}

/// Result of a successful handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// The selected export.
    pub export: Export,
    /// Whether reads are answered by structured replies.
    pub structured: bool,
}

impl ClientHandshake {
    /// Starts a handshake for the export `name`; the empty name selects the server's default export. A name longer
    /// than [`MAX_NAME_BYTES`] is truncated: no server has such a name.
    pub fn new(name: &str) -> Self {
        let mut end = name.len().min(MAX_NAME_BYTES);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        Self {
            name: name[..end].to_owned(),
            pending: Pending::default(),
            step: Step::Greeting,
            structured: false,
            size_and_flags: None,
            blocks: (1, USUAL_MAX_BLOCK),
            replies: 0,
        }
    }

    /// Consumes the server's bytes from the front of `input` and appends the bytes to send to `out`. Returns `None`
    /// while more bytes are needed. After the handshake the rest of `input` belongs to replies.
    ///
    /// # Errors
    /// The server violates the protocol, or refuses an option.
    pub fn receive(
        &mut self,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Negotiated>, NbdError> {
        loop {
            match self.step {
                Step::Greeting => {
                    let Some(bytes) = self.pending.fill(input, GREETING) else {
                        return self.early(input);
                    };
                    let flags = greeting(bytes)?;
                    self.pending.clear();
                    out.extend(u32::from(flags).to_be_bytes());
                    self.ask(option::STRUCTURED_REPLY, &[], out);
                }
                Step::Option(asked) => {
                    let Some((kind, data)) = self.reply(asked, input)? else {
                        return Ok(None);
                    };
                    self.pending.clear();
                    self.replies += 1;
                    if self.replies > MAX_OPTIONS {
                        return Err(NbdError::TooManyOptions);
                    }
                    if let Some(negotiated) = self.take(asked, kind, &data, out)? {
                        return Ok(Some(negotiated));
                    }
                }
                Step::Over => return Ok(None),
            }
        }
    }

    /// Checks the first eight bytes of an incomplete greeting: a peer that is not an NBD server may never send more.
    fn early(&mut self, input: &mut &[u8]) -> Result<Option<Negotiated>, NbdError> {
        if let Some(bytes) = self.pending.fill(input, 8) {
            first_magic(bytes)?;
        }
        Ok(None)
    }

    fn ask(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        out.extend(OPTION_MAGIC.to_be_bytes());
        out.extend(option.to_be_bytes());
        out.extend((data.len() as u32).to_be_bytes());
        out.extend(data);
        self.step = Step::Option(option);
    }

    fn reply(&mut self, asked: u32, input: &mut &[u8]) -> Result<Option<(u32, Vec<u8>)>, NbdError> {
        let Some(bytes) = self.pending.fill(input, REPLY_HEADER) else {
            return Ok(None);
        };
        let mut header = Cursor(bytes);
        let found = header.u64().unwrap_or_default();
        if found != OPTION_REPLY_MAGIC {
            let what = "a reply to an option";
            return Err(NbdError::Magic { what, found });
        }
        let mut number = || header.u32().unwrap_or_default();
        let (option, kind, length) = (number(), number(), number());
        if option != asked {
            return Err(NbdError::OtherOption {
                expected: asked,
                found: option,
            });
        }
        let length = check_length(option, length)?;
        let all = self.pending.fill(input, REPLY_HEADER + length);
        Ok(all.map(|all| (kind, all[REPLY_HEADER..].to_vec())))
    }

    fn take(
        &mut self,
        asked: u32,
        kind: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Negotiated>, NbdError> {
        let malformed = |what| NbdError::OptionReply {
            option: asked,
            what,
        };
        match (asked, kind) {
            (option::STRUCTURED_REPLY, _) => {
                // A server that does not know the option refuses it and goes on with simple replies.
                self.structured = kind == option_reply::ACK;
                if !self.structured && kind & option_reply::ERROR == 0 {
                    return Err(malformed("neither an acknowledgement nor an error"));
                }
                let mut go = (self.name.len() as u32).to_be_bytes().to_vec();
                go.extend(self.name.as_bytes());
                go.extend(1u16.to_be_bytes());
                go.extend(info::BLOCK_SIZE.to_be_bytes());
                self.ask(option::GO, &go, out);
                Ok(None)
            }
            (_, option_reply::INFO) => {
                self.learn(data).map_err(malformed)?;
                Ok(None)
            }
            (_, option_reply::ACK) => {
                let (size, flags) = self
                    .size_and_flags
                    .ok_or_else(|| malformed("it says nothing of the export's size"))?;
                if flags & transmission::HAS_FLAGS == 0 {
                    return Err(malformed("the export's flags are not marked as such"));
                }
                self.step = Step::Over;
                let (min_block, max_block) = self.blocks;
                Ok(Some(Negotiated {
                    export: Export {
                        size,
                        flags,
                        min_block,
                        max_block,
                    },
                    structured: self.structured,
                }))
            }
            (_, code) if code & option_reply::ERROR != 0 => Err(NbdError::Refused {
                option: asked,
                code,
                message: String::from_utf8_lossy(data)
                    .chars()
                    .filter(|character| !character.is_control())
                    .take(200)
                    .collect(),
            }),
            _ => Err(malformed("of an unknown kind")),
        }
    }

    /// Decodes an `INFO` reply, which carries one property of the export. Unknown types are ignored.
    fn learn(&mut self, data: &[u8]) -> Result<(), &'static str> {
        let mut data = Cursor(data);
        let kind = data.u16().ok_or("a property without a type")?;
        match kind {
            info::EXPORT => {
                let both = data.u64().zip(data.u16());
                self.size_and_flags = Some(both.ok_or("size and flags are cut off")?);
            }
            info::BLOCK_SIZE => {
                let mut next = || data.u32().ok_or("the block sizes are cut off");
                let (min, _, max) = (next()?, next()?, next()?);
                if !min.is_power_of_two() || max < min {
                    return Err("block sizes that no request can have");
                }
                self.blocks = (min, max);
            }
            _ => {}
        }
        Ok(())
    }
}

fn first_magic(bytes: &[u8]) -> Result<(), NbdError> {
    let found = Cursor(bytes).u64().unwrap_or_default();
    if found == SERVER_MAGIC {
        Ok(())
    } else {
        Err(NbdError::NoServer { found })
    }
}

/// Checks the server's greeting. Returns the client flags to answer with.
fn greeting(bytes: &[u8]) -> Result<u16, NbdError> {
    first_magic(bytes)?;
    let mut rest = Cursor(&bytes[8..]);
    let found = rest.u64().unwrap_or_default();
    let flags = rest.u16().unwrap_or_default();
    match found {
        OLDSTYLE_MAGIC => Err(NbdError::OldStyle),
        OPTION_MAGIC if flags & handshake::FIXED_NEWSTYLE == 0 => Err(NbdError::NotFixed),
        OPTION_MAGIC => Ok(flags & (handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES)),
        _ => {
            let what = "a server's greeting";
            Err(NbdError::Magic { what, found })
        }
    }
}
