//! Decoding of big-endian numbers, and collection of messages that arrive in pieces.

use crate::NbdError;
use crate::protocol::MAX_OPTION_BYTES;

/// Reads big-endian numbers from the front of a slice; each method returns `None` where the slice is too short.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Bytes of a message that has not arrived completely: at most [`MAX_OPTION_BYTES`] and a header.
#[derive(Debug, Default)]
pub(crate) struct Pending(Vec<u8>);

impl Pending {
    /// Takes bytes from `input` until `wanted` bytes are pending. Returns these, or `None` where some are missing.
    pub(crate) fn fill(&mut self, input: &mut &[u8], wanted: usize) -> Option<&[u8]> {
        let missing = wanted.saturating_sub(self.0.len()).min(input.len());
        let (taken, rest) = input.split_at(missing);
        self.0.extend_from_slice(taken);
        *input = rest;
        (self.0.len() >= wanted).then_some(&self.0[..])
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Checks the length of an option's data, bytes.
///
/// # Errors
/// [`NbdError::OptionLength`] above [`MAX_OPTION_BYTES`].
pub(crate) fn check_length(option: u32, length: u32) -> Result<usize, NbdError> {
    if length > MAX_OPTION_BYTES {
        return Err(NbdError::OptionLength { option, length });
    }
    Ok(length as usize)
}
