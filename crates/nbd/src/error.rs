//! What a peer did that the protocol does not allow, or refused.

use crate::protocol::{errno, option, option_reply};

/// Why a connection cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NbdError {
    /// Its first bytes are not an NBD server's.
    #[error("its first bytes are not an NBD server's ({found:#018x} for NBDMAGIC)")]
    NoServer {
        /// The first eight bytes.
        found: u64,
    },
    /// It speaks the oldstyle handshake, which has no options.
    #[error("it speaks NBD's oldstyle handshake: a server of fixed newstyle is needed")]
    OldStyle,
    /// Newstyle, but not fixed: options cannot be refused.
    #[error("it speaks NBD's newstyle handshake, but not the fixed one")]
    NotFixed,
    /// The client's flags have bits that the server did not offer.
    #[error("the client's flags {flags:#x} have bits that were not offered")]
    ClientFlags {
        /// All of them.
        flags: u32,
    },
    /// Something begins with other bytes than it must.
    #[error("{what} begins with {found:#x} and not with its magic number")]
    Magic {
        /// What it was to be.
        what: &'static str,
        /// The bytes.
        found: u64,
    },
    /// An option, or the reply to one, is longer than is accepted.
    #[error("{} with {length} bytes: at most {}", option::name(*.option), crate::protocol::MAX_OPTION_BYTES)]
    OptionLength {
        /// Its number.
        option: u32,
        /// Bytes.
        length: u32,
    },
    /// More options, or replies to one, than a handshake needs.
    #[error(
        "more than {} options or replies in one handshake",
        crate::protocol::MAX_OPTIONS
    )]
    TooManyOptions,
    /// The reply belongs to another option.
    #[error("a reply to {} while {} waited for one", option::name(*.found), option::name(*.expected))]
    OtherOption {
        /// The option that was sent.
        expected: u32,
        /// The option that was answered.
        found: u32,
    },
    /// The reply's data is not what its type has.
    #[error("a malformed reply to {}: {what}", option::name(*.option))]
    OptionReply {
        /// The option that was sent.
        option: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// The server refused an option.
    #[error("it refused {}: {}{}", option::name(*.option), refusal(*.code), words(.message))]
    Refused {
        /// The option.
        option: u32,
        /// The reply's type.
        code: u32,
        /// What the server says, at most 200 characters.
        message: String,
    },
    /// `EXPORT_NAME` chose an export that there is not.
    #[error("there is no export `{0}`")]
    UnknownExport(String),
    /// A write that is too long to be read and refused.
    #[error("a write of {length} bytes: at most {most}")]
    WriteLength {
        /// Bytes.
        length: u32,
        /// The export's largest block.
        most: u32,
    },
    /// A reply to no request.
    #[error("a reply to a request that was not sent (cookie {cookie:#x})")]
    Cookie {
        /// The reply's.
        cookie: u64,
    },
    /// A reply of a kind that its request cannot have.
    #[error("a malformed reply: {what}")]
    Reply {
        /// What is wrong.
        what: &'static str,
    },
    /// A request failed.
    #[error("a {command} of {length} bytes at offset {offset} failed with {} ({error})", errno::name(*.error))]
    Failed {
        /// `read`, `write` or `flush`.
        command: &'static str,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u32,
        /// The number.
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
