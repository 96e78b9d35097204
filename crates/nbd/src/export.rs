//! An export: its properties as a server advertises them, and how a server handles requests for it.

use crate::NbdError;
use crate::protocol::{command, errno, transmission};
use crate::request::Request;

/// Properties of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// Size, bytes.
    pub size: u64,
    /// Flags of [`transmission`].
    pub flags: u16,
    /// Smallest block, bytes. Offset and length of a request must be multiples of this size.
    pub min_block: u32,
    /// Largest block: upper bound on the length of a read or write, bytes.
    pub max_block: u32,
}

/// How a server handles a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Send the requested bytes.
    Read,
    /// Store the data that follow the request.
    Write,
    /// Discard the data that follow the request, then answer with this error ([`errno`]).
    RefuseWrite(u32),
    /// Answer with this error ([`errno`]).
    Refuse(u32),
    /// Make completed writes durable, then answer.
    Flush,
    /// The client ends the connection.
    Disconnect,
}

impl Export {
    /// Whether the export accepts `FLUSH`.
    pub const fn can_flush(&self) -> bool {
        self.flags & transmission::SEND_FLUSH != 0
    }

    /// Whether several connections see the same content.
    pub const fn can_multi_conn(&self) -> bool {
        self.flags & transmission::CAN_MULTI_CONN != 0
    }

    /// Whether writes are refused.
    pub const fn is_read_only(&self) -> bool {
        self.flags & transmission::READ_ONLY != 0
    }

    /// How a server handles `request`.
    ///
    /// # Errors
    /// [`NbdError::WriteLength`]: a write longer than [`Self::max_block`].
    pub fn operation(&self, request: &Request) -> Result<Operation, NbdError> {
        let length = request.length;
        let end = request.offset.checked_add(u64::from(length));
        let inside = end.is_some_and(|end| end <= self.size);
        let block = u64::from(self.min_block.max(1));
        let aligned = request.offset.is_multiple_of(block)
            && u64::from(length).is_multiple_of(block)
            && length > 0;
        Ok(match request.command {
            command::READ if length > self.max_block || !inside || !aligned => {
                Operation::Refuse(errno::EINVAL)
            }
            command::READ => Operation::Read,
            command::WRITE if length > self.max_block => {
                let most = self.max_block;
                return Err(NbdError::WriteLength { length, most });
            }
            command::WRITE if self.is_read_only() => Operation::RefuseWrite(errno::EPERM),
            command::WRITE if !inside => Operation::RefuseWrite(errno::ENOSPC),
            command::WRITE if !aligned => Operation::RefuseWrite(errno::EINVAL),
            command::WRITE => Operation::Write,
            command::FLUSH if self.can_flush() => Operation::Flush,
            command::DISCONNECT => Operation::Disconnect,
            _ => Operation::Refuse(errno::EINVAL),
        })
    }
}
