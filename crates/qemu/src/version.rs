//! Versions of QEMU.

use std::fmt;

use serde_json::Value;

/// A version of QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Version {
    /// 7 of 7.2.22.
    pub major: u32,
    /// 2.
    pub minor: u32,
    /// 22.
    pub micro: u32,
}

impl Version {
    /// From the monitor's greeting; zeroes where it does not say.
    pub(crate) fn of(greeting: &Value) -> Self {
        let number = |part: &str| {
            let number = greeting["version"]["qemu"][part].as_u64();
            number.map_or(0, |number| number as u32)
        };
        Self {
            major: number("major"),
            minor: number("minor"),
            micro: number("micro"),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}
