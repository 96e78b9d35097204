//! Errors of the calculation, and what to write instead.

use wirecost_model::ip::IpVersion;

/// An encapsulation that is not possible.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("encapsulation `{expression}`: {problem}; {help}")]
pub struct StackError {
    /// The expression as it was written.
    pub expression: String,
    /// What is wrong with the expression.
    pub problem: String,
    /// What to write instead.
    pub help: String,
}

/// An MTU that is not possible. All sizes are IP MTUs in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MtuError {
    /// The MTU is outside the range of the IP version.
    #[error("an {ip} {side} cannot have an MTU of {mtu}: it lies between {min} ({}) and {max}", source_of_min(*ip), max = super::MAX_MTU)]
    OutOfRange {
        /// `underlay` or `guest`.
        side: &'static str,
        /// The MTU asked for, bytes.
        mtu: u32,
        /// IP version of that side.
        ip: IpVersion,
        /// Smallest MTU of that IP version, bytes.
        min: u32,
    },
    /// The headers leave less than the smallest MTU of the guest's IP version.
    #[error(
        "an underlay MTU of {underlay_mtu} is too small for `{stack}`: {}, and an {guest_ip} guest needs {min} ({}); \
         the underlay needs at least {needed}", left_words(*left), source_of_min(*guest_ip)
    )]
    TooSmall {
        /// The encapsulation as an expression.
        stack: String,
        /// The underlay MTU asked for, bytes.
        underlay_mtu: u32,
        /// Size of the largest guest packet that fits, bytes; `None` if none does.
        left: Option<u32>,
        /// IP version of the guest.
        guest_ip: IpVersion,
        /// Smallest MTU of that IP version, bytes.
        min: u32,
        /// Smallest underlay MTU that carries such a guest, bytes.
        needed: u32,
    },
    /// The underlay's packet would be longer than any IP packet.
    #[error(
        "no underlay carries a guest MTU of {guest_mtu} in `{stack}`: it would need an MTU of {needed}, and {max} is the \
         largest", max = super::MAX_MTU
    )]
    TooLarge {
        /// The encapsulation as an expression.
        stack: String,
        /// The guest MTU asked for, bytes.
        guest_mtu: u32,
        /// The underlay MTU that it would need, bytes.
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
