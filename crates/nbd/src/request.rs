//! Requests of a client.

use crate::NbdError;
use crate::protocol::{REQUEST_MAGIC, command};

/// Bytes of a request, without the data of a write.
pub const REQUEST_BYTES: usize = 28;

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Flags of [`command`].
    pub flags: u16,
    /// One of [`command`].
    pub command: u16,
    /// Chosen by the client, and repeated in the reply.
    pub cookie: u64,
    /// Offset of the first byte in the export.
    pub offset: u64,
    /// Number of bytes to read or write.
    pub length: u32,
}

impl Request {
    /// The encoded bytes.
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Decodes a request.
    ///
    /// # Errors
    /// [`NbdError::Magic`].
    pub fn decode(bytes: &[u8; REQUEST_BYTES]) -> Result<Self, NbdError> {
        let number = |at: usize, length: usize| {
            bytes[at..at + length]
                .iter()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let found = number(0, 4);
        if found != u64::from(REQUEST_MAGIC) {
            let what = "a request";
            return Err(NbdError::Magic { what, found });
        }
        Ok(Self {
            flags: number(4, 2) as u16,
            command: number(6, 2) as u16,
            cookie: number(8, 8),
            offset: number(16, 8),
            length: number(24, 4) as u32,
        })
    }

    /// Bytes of data that follow the request: the length of a write, else 0.
    pub const fn payload(&self) -> u32 {
        if self.command == command::WRITE {
            self.length
        } else {
            0
        }
    }

    /// Name of the command, for error messages.
    pub const fn word(&self) -> &'static str {
        match self.command {
            command::READ => "read",
            command::WRITE => "write",
            command::FLUSH => "flush",
            _ => "request",
        }
    }
}
