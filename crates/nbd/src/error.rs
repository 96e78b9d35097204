//! Errors of an NBD connection: protocol violations, and refusals by the peer.

use crate::protocol::{errno, option, option_reply};

/// An error that ends an NBD connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NbdError {
    /// The peer's first bytes are not those of an NBD server.
    #[error("its first bytes are not an NBD server's ({found:#018x} for NBDMAGIC)")]
    NoServer {
        /// First eight bytes, as a big-endian number.
        found: u64,
    },
    /// The server speaks the oldstyle handshake, which has no options.
    #[error("it speaks NBD's oldstyle handshake: a server of fixed newstyle is needed")]
    OldStyle,
    /// The server speaks newstyle, but not fixed newstyle: it cannot refuse a single option.
    #[error("it speaks NBD's newstyle handshake, but not the fixed one")]
    NotFixed,
    /// The client's flags have bits that the server did not offer.
    #[error("the client's flags {flags:#x} have bits that were not offered")]
    ClientFlags {
        /// All flags that the client sent.
        flags: u32,
    },
    /// A message does not begin with its magic number.
    #[error("{what} begins with {found:#x} and not with its magic number")]
    Magic {
        /// The expected message.
        what: &'static str,
        /// The bytes found instead, as a big-endian number.
        found: u64,
    },
    /// The data of an option, or of a reply to one, are longer than [`crate::protocol::MAX_OPTION_BYTES`].
    #[error("{} with {length} bytes: at most {}", option::name(*.option), crate::protocol::MAX_OPTION_BYTES)]
    OptionLength {
        /// Number of the option.
        option: u32,
        /// Length of the data, bytes.
        length: u32,
    },
    /// More options or replies than [`crate::protocol::MAX_OPTIONS`] in one handshake.
    #[error(
        "more than {} options or replies in one handshake",
        crate::protocol::MAX_OPTIONS
    )]
    TooManyOptions,
    /// A reply answers another option than the one that was sent.
    #[error("a reply to {} while {} waited for one", option::name(*.found), option::name(*.expected))]
    OtherOption {
        /// The option that was sent.
        expected: u32,
        /// The option that was answered.
        found: u32,
    },
    /// The data of a reply to an option are malformed.
    #[error("a malformed reply to {}: {what}", option::name(*.option))]
    OptionReply {
        /// The option that was sent.
        option: u32,
        /// What is wrong with the data.
        what: &'static str,
    },
    /// The server refused an option.
    #[error("it refused {}: {}{}", option::name(*.option), refusal(*.code), words(.message))]
    Refused {
        /// The refused option.
        option: u32,
        /// Type of the reply ([`option_reply`]).
        code: u32,
        /// The server's message, at most 200 characters.
        message: String,
    },
    /// The client selected an export that does not exist by `EXPORT_NAME`, which has no error reply.
    #[error("there is no export `{0}`")]
    UnknownExport(String),
    /// A write longer than the export's largest block. It is not answered: its data would have to be read first.
    #[error("a write of {length} bytes: at most {most}")]
    WriteLength {
        /// Length of the write, bytes.
        length: u32,
        /// Largest block of the export, bytes.
        most: u32,
    },
    /// A reply to a request that was not sent.
    #[error("a reply to a request that was not sent (cookie {cookie:#x})")]
    Cookie {
        /// Cookie of the reply.
        cookie: u64,
    },
    /// A reply that is malformed, or does not fit its request.
    #[error("a malformed reply: {what}")]
    Reply {
        /// What is wrong with the reply.
        what: &'static str,
    },
    /// The server answered a request with an error.
    #[error("a {command} of {length} bytes at offset {offset} failed with {} ({error})", errno::name(*.error))]
    Failed {
        /// `read`, `write` or `flush`.
        command: &'static str,
        /// Offset of the first byte.
        offset: u64,
        /// Length of the request, bytes.
        length: u32,
        /// Error number ([`errno`]).
        error: u32,
    },
}

const fn refusal(code: u32) -> &'static str {
    match code {
        option_reply::UNSUPPORTED => "it does not know the option",
        option_reply::POLICY => "its configuration forbids it",
        option_reply::INVALID => "it calls the option malformed",
        option_reply::PLATFORM => "its platform has not got it",
        option_reply::TLS_REQUIRED => "it asks for TLS, which is not spoken here",
        option_reply::UNKNOWN => "it has no export of that name",
        option_reply::SHUTDOWN => "it is shutting down",
        option_reply::BLOCK_SIZE_REQUIRED => "it asks for a client that keeps to its block size",
        option_reply::TOO_BIG => "the option is too long for it",
        _ => "an unknown error",
    }
}

fn words(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(" (`{message}`)")
    }
}
