//! Errors of building and parsing Geneve headers.

/// Why options cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The length is not a multiple of four bytes, the unit in which options are counted.
    #[error("{0} bytes of Geneve options: must be a multiple of 4")]
    NotWords(usize),
    /// The data of one option is longer than 124 bytes.
    #[error("{0} bytes of data in one Geneve option: at most 124")]
    DataTooLong(usize),
    /// All options together are longer than 252 bytes.
    #[error("{0} bytes of Geneve options: at most 252")]
    TooMany(usize),
}

/// Why bytes are not a Geneve header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The packet ends within the fixed header.
    #[error("a Geneve header has 8 bytes, there are {0}")]
    Short(usize),
    /// The version is not 0, the only one defined.
    #[error("Geneve version {0} is not known")]
    Version(u8),
    /// The packet ends before the options.
    #[error("{said} bytes of Geneve options announced, {there} there")]
    OptionsBeyondPacket {
        /// Bytes that the header announces.
        said: usize,
        /// Bytes of the packet after the fixed header.
        there: usize,
    },
    /// An option is longer than the rest of the options.
    #[error("a Geneve option of {said} bytes where {there} are left")]
    OptionBeyondOptions {
        /// Bytes of data that the option announces.
        said: usize,
        /// Bytes left of the options.
        there: usize,
    },
}
