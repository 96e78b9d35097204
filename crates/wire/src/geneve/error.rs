//! What is wrong with a Geneve header, given or found.

/// Why options cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Lengths are counted in words of four bytes.
    #[error("{0} bytes of Geneve options: must be a multiple of 4")]
    NotWords(usize),
    /// One option holds at most 124 bytes.
    #[error("{0} bytes of data in one Geneve option: at most 124")]
    DataTooLong(usize),
    /// All options together take at most 252 bytes.
    #[error("{0} bytes of Geneve options: at most 252")]
    TooMany(usize),
}

/// Why bytes are no Geneve header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The packet ends in the fixed header.
    #[error("a Geneve header has 8 bytes, there are {0}")]
    Short(usize),
    /// Only version 0 is defined.
    #[error("Geneve version {0} is not known")]
    Version(u8),
    /// The packet ends before the options do.
    #[error("{said} bytes of Geneve options announced, {there} there")]
    OptionsBeyondPacket {
        /// Bytes that the header announces.
        said: usize,
        /// Bytes that the packet has.
        there: usize,
    },
    /// An option is longer than what is left of the options.
    #[error("a Geneve option of {said} bytes where {there} are left")]
    OptionBeyondOptions {
        /// Bytes of data that it announces.
        said: usize,
        /// Bytes that are left.
        there: usize,
    },
}
