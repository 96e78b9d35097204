//! Errors in a host's address: what is wrong, where, and what to write instead.

use std::fmt;

use super::FORMS;

/// Why a text is no host's address, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAddressError {
    /// Position of the character at which it is wrong, from 1.
    pub at: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a host's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// An empty text.
    Empty,
    /// An IP address alone, which does not say how to reach an agent.
    NoPlace,
    /// A text that begins with no kind of place.
    UnknownPlace {
        /// The kind that was written.
        found: String,
        /// The kind that was perhaps meant.
        meant: Option<&'static str>,
    },
    /// Text behind `local` other than `=ADDRESS`.
    LocalTakesNothing,
    /// `netns:` without a name.
    NoNetnsName,
    /// A name that no network namespace can have.
    NetnsName,
    /// `ssh:` without a host.
    NoSshHost,
    /// `@` without a user before it.
    NoSshUser,
    /// A character that no ssh host or user may have, or a leading `-`, which ssh would take for an option.
    SshCharacter(char),
    /// An IPv6 address without brackets, or more than one port.
    SshColons,
    /// A bracket without its counterpart, or brackets around anything but an IPv6 address.
    SshBracket,
    /// Text behind the `]` that is no port.
    SshAfterBracket,
    /// A port that is not a number from 1 to 65535, as it was written.
    SshPort(String),
    /// `exec:` without a command.
    NoCommand,
    /// A quote that is not closed.
    UnclosedQuote(char),
    /// A backslash with nothing behind it.
    TrailingBackslash,
    /// Text behind the `=` that is no IP address.
    NoAddress(String),
    /// An unspecified, multicast or broadcast address, which no host has as its own.
    NotAHosts(std::net::IpAddr),
    /// A link-local address, which is ambiguous without a device.
    LinkLocal(std::net::IpAddr),
    /// A device behind an address that is not link-local, or a name that no device can have.
    Device(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "there is no host: write {FORMS}"),
            Self::NoPlace => write!(
                f,
                "an address alone does not say how to reach an agent there: write ssh: before it, or one of {FORMS}"
            ),
            Self::UnknownPlace { found, meant } => {
                if let Some(meant) = meant {
                    write!(f, "`{found}` is no kind of host, did you mean `{meant}`? Write {FORMS}")
                } else {
                    write!(f, "`{found}` is no kind of host: write {FORMS}")
                }
            }
            Self::LocalTakesNothing => f.write_str(
                "`local` is this machine and takes nothing but =ADDRESS; a namespace of it is netns:NAME",
            ),
            Self::NoNetnsName => f.write_str("netns: needs the name of a namespace, as `ip netns list` shows it"),
            Self::NetnsName => f.write_str(
                "this is not the name of a namespace: write it as `ip netns list` shows it, without a path",
            ),
            Self::NoSshHost => f.write_str("ssh: needs a host: write ssh:[USER@]HOST[:PORT]"),
            Self::NoSshUser => f.write_str("there is no user before the @: leave the @ out, or name one"),
            Self::SshCharacter('-') => f.write_str("neither host nor user may begin with `-`, which ssh takes for an option"),
            Self::SshCharacter(found) => write!(
                f,
                "{found:?} can stand in neither a host's nor a user's name: write ssh:[USER@]HOST[:PORT], and options \
                 of ssh into its own configuration (man ssh_config)"
            ),
            Self::SshColons => f.write_str(
                "more than one colon: write an IPv6 address in brackets, such as ssh:[fd00::1] or ssh:[fd00::1]:22",
            ),
            Self::SshBracket => f.write_str("brackets hold an IPv6 address, such as ssh:[fd00::1]:22"),
            Self::SshAfterBracket => f.write_str("only :PORT may stand behind the ]"),
            Self::SshPort(found) => write!(f, "`{found}` is no port: write a number from 1 to 65535"),
            Self::NoCommand => f.write_str(
                "exec: needs a command whose standard input and output lead to the host, such as exec:docker exec -i NAME",
            ),
            Self::UnclosedQuote(quote) => write!(f, "the quote {quote} is not closed"),
            Self::TrailingBackslash => f.write_str("nothing stands behind the backslash"),
            Self::NoAddress(found) => write!(
                f,
                "`{found}` is no IP address: write one of the host's own behind the =, such as 10.0.0.1 or fd00::1"
            ),
            Self::NotAHosts(found) => write!(
                f,
                "{found} is not a unicast address: write one that the host has on a device, such as 10.0.0.1"
            ),
            Self::LinkLocal(found) => write!(
                f,
                "{found} is link-local and says nothing without a device: write another address of the host, or for \
                 `wirecost check` and `wirecost load` the device behind it, as {found}%eth0"
            ),
            Self::Device(found) => write!(
                f,
                "`{found}`: only a link-local address has a device behind it, such as fe80::1%eth0"
            ),
        }
    }
}

impl fmt::Display for HostAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at, self.problem)
    }
}

impl std::error::Error for HostAddressError {}
