//! Versions of QEMU.

use std::fmt;

use serde_json::Value;

/// A version of QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Version {
    /// Major version: 7 of 7.2.22.
    pub major: u32,
    /// Minor version: 2 of 7.2.22.
    pub minor: u32,
    /// Micro version: 22 of 7.2.22.
    pub micro: u32,
}

impl Version {
    /// Decodes the version in the monitor's greeting; missing parts are 0.
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
