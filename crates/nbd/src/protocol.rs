//! Numbers of the protocol (doc/proto.md of the NBD project). All of them are big-endian on the wire.

/// First eight bytes of a server: `NBDMAGIC`.
pub const SERVER_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Next eight bytes of a newstyle server, and the first of each option: `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Next eight bytes of an oldstyle server.
pub const OLDSTYLE_MAGIC: u64 = 0x0000_4202_8186_1253;
/// First bytes of the reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// First bytes of a request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First bytes of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// First bytes of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Upper bound on the data of an option, or of a reply to one, bytes. A name has at most [`MAX_NAME_BYTES`].
pub const MAX_OPTION_BYTES: u32 = 8 << 10;
/// Upper bound on the options of one handshake, and on the replies to them.
pub const MAX_OPTIONS: u32 = 64;
/// Longest name of an export, bytes.
pub const MAX_NAME_BYTES: usize = 4096;

/// Flags of the handshake.
pub mod handshake {
    /// Server and client: fixed newstyle.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// Server and client: no 124 zero bytes after the reply to `EXPORT_NAME`.
    pub const NO_ZEROES: u16 = 2;
}

/// Options.
pub mod option {
    /// Selects an export. Has no error reply.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the handshake.
    pub const ABORT: u32 = 2;
    /// Lists the exports.
    pub const LIST: u32 = 3;
    /// Describes an export.
    pub const INFO: u32 = 6;
    /// Describes and selects an export.
    pub const GO: u32 = 7;
    /// Asks for structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;

    /// Name of an option, for error messages.
    pub const fn name(option: u32) -> &'static str {
        match option {
            EXPORT_NAME => "EXPORT_NAME",
            ABORT => "ABORT",
            LIST => "LIST",
            INFO => "INFO",
            GO => "GO",
            STRUCTURED_REPLY => "STRUCTURED_REPLY",
            _ => "another option",
        }
    }
}

/// Replies to options.
pub mod option_reply {
    /// The option is accepted, and its data, if any, were sent.
    pub const ACK: u32 = 1;
    /// Name of an export, in answer to `LIST`.
    pub const SERVER: u32 = 2;
    /// Property of an export ([`super::info`]).
    pub const INFO: u32 = 3;
    /// Bit that is set in every error.
    pub const ERROR: u32 = 1 << 31;
    /// The server does not know the option.
    pub const UNSUPPORTED: u32 = ERROR | 1;
    /// Forbidden by the server's configuration.
    pub const POLICY: u32 = ERROR | 2;
    /// Malformed option.
    pub const INVALID: u32 = ERROR | 3;
    /// Not supported on the server's platform.
    pub const PLATFORM: u32 = ERROR | 4;
    /// The server requires TLS.
    pub const TLS_REQUIRED: u32 = ERROR | 5;
    /// Unknown export.
    pub const UNKNOWN: u32 = ERROR | 6;
    /// The server is shutting down.
    pub const SHUTDOWN: u32 = ERROR | 7;
    /// The server requires a client that keeps to its block sizes.
    pub const BLOCK_SIZE_REQUIRED: u32 = ERROR | 8;
    /// The data of the option are too long for the server.
    pub const TOO_BIG: u32 = ERROR | 9;
}

/// Types of [`option_reply::INFO`]: properties of an export.
pub mod info {
    /// Size and flags.
    pub const EXPORT: u16 = 0;
    /// Smallest, preferred and largest block, bytes.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of an export.
pub mod transmission {
    /// Always set.
    pub const HAS_FLAGS: u16 = 1;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// The server accepts `FLUSH`.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The server accepts writes with `NBD_CMD_FLAG_FUA`: durable before their reply.
    pub const SEND_FUA: u16 = 1 << 3;
    /// Several connections see the same content, and a flush on one covers the writes of all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Commands of requests.
pub mod command {
    /// Reads data.
    pub const READ: u16 = 0;
    /// Writes data.
    pub const WRITE: u16 = 1;
    /// Ends the connection.
    pub const DISCONNECT: u16 = 2;
    /// Makes completed writes durable.
    pub const FLUSH: u16 = 3;
}

/// Types of the chunks of structured replies.
pub mod chunk {
    /// No payload: only ends the reply.
    pub const NONE: u16 = 0;
    /// Data that were read.
    pub const OFFSET_DATA: u16 = 1;
    /// A range of zeroes that was read.
    pub const OFFSET_HOLE: u16 = 2;
    /// The request failed.
    pub const ERROR: u16 = 1 << 15 | 1;
    /// The request failed at an offset.
    pub const ERROR_OFFSET: u16 = 1 << 15 | 2;

    /// Flag: last chunk of the reply.
    pub const FLAG_DONE: u16 = 1;
}

/// Errors of requests: Linux's numbers, whatever the platform.
pub mod errno {
    /// Input/output error.
    pub const EIO: u32 = 5;
    /// Invalid argument.
    pub const EINVAL: u32 = 22;
    /// A write beyond the end.
    pub const ENOSPC: u32 = 28;
    /// Operation not permitted.
    pub const EPERM: u32 = 1;

    /// Name of an error, for error messages.
    pub const fn name(error: u32) -> &'static str {
        match error {
            EPERM => "EPERM",
            EIO => "EIO",
            12 => "ENOMEM",
            EINVAL => "EINVAL",
            ENOSPC => "ENOSPC",
            75 => "EOVERFLOW",
            95 => "ENOTSUP",
            108 => "ESHUTDOWN",
            _ => "an error",
        }
    }
}
