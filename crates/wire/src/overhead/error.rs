//! What cannot be computed, and what to write instead.

use wirecost_model::ip::IpVersion;

/// An encapsulation that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("encapsulation `{expression}`: {problem}; {help}")]
pub struct StackError {
    /// As it was written.
    pub expression: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub help: String,
}

/// An MTU with which nothing goes through. All sizes are IP MTUs in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MtuError {
    /// No link has it.
    #[error("an {ip} {side} cannot have an MTU of {mtu}: it lies between {min} ({}) and {max}", source_of_min(*ip), max = super::MAX_MTU)]
    OutOfRange {
        /// `underlay` or `guest`.
        side: &'static str,
        /// What was asked for.
        mtu: u32,
        /// What that side speaks.
        ip: IpVersion,
        /// The smallest that it may be.
        min: u32,
    },
    /// The headers leave guests less than IP asks for.
    #[error(
        "an underlay MTU of {underlay_mtu} is too small for `{stack}`: {}, and an {guest_ip} guest needs {min} ({}); \
         the underlay needs at least {needed}", left_words(*left), source_of_min(*guest_ip)
    )]
    TooSmall {
        /// The encapsulation.
        stack: String,
        /// What was asked for.
        underlay_mtu: u32,
        /// The largest guest packet that fits, if any does.
        left: Option<u32>,
        /// What the guest speaks.
        guest_ip: IpVersion,
        /// The smallest MTU of such a guest.
        min: u32,
        /// The smallest underlay MTU that carries it.
        needed: u32,
    },
    /// No IP packet is that long.
    #[error(
        "no underlay carries a guest MTU of {guest_mtu} in `{stack}`: it would need an MTU of {needed}, and {max} is the \
         largest", max = super::MAX_MTU
    )]
    TooLarge {
        /// The encapsulation.
        stack: String,
        /// What was asked for.
        guest_mtu: u32,
        /// What the underlay would need.
        needed: u32,
    },
}

fn left_words(left: Option<u32>) -> String {
    match left {
        Some(left) => format!("{left} bytes are left"),
        None => "nothing is left".into(),
    }
}

const fn source_of_min(ip: IpVersion) -> &'static str {
    match ip {
        IpVersion::Ipv4 => "RFC 791",
        IpVersion::Ipv6 => "RFC 8200",
    }
}
