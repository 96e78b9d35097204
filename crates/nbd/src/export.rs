//! An export: what a server says of it, and which requests it can serve.

use crate::NbdError;
use crate::protocol::{command, errno, transmission};
use crate::request::Request;

/// What an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Export {
    /// Bytes.
    pub size: u64,
    /// [`transmission`].
    pub flags: u16,
    /// Requests begin and end at multiples of it, bytes.
    pub min_block: u32,
    /// Bytes of a read or write at most.
    pub max_block: u32,
}

/// A request that an export serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Send these bytes.
    Read,
    /// Store the bytes that follow.
    Write,
    /// Read the bytes that follow, then answer with this error.
    RefuseWrite(u32),
    /// Answer with this error.
    Refuse(u32),
    /// Answer that all is durable.
    Flush,
    /// The client ends the connection.
    Disconnect,
}

impl Export {
    /// Whether it takes `FLUSH`.
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

    /// What is to be done with a request.
    ///
    /// # Errors
    /// A write that is too long to be read and refused.
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
