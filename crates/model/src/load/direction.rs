//! Which host has which end of a load.

use serde::{Deserialize, Serialize};

use crate::end_window::End;

/// Which host has the load's client: who asks, or sends.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Host a asks or sends, host b answers or receives.
    #[default]
    AToB,
    /// The other way round.
    BToA,
}

impl Direction {
    /// The other one.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::AToB => Self::BToA,
            Self::BToA => Self::AToB,
        }
    }

    /// Both.
    pub const ALL: [Self; 2] = [Self::AToB, Self::BToA];

    /// As plans and records write it.
    pub const fn key(self) -> &'static str {
        match self {
            Self::AToB => "a-to-b",
            Self::BToA => "b-to-a",
        }
    }

    /// The host that has the end, `a` or `b`.
    pub const fn host_of(self, end: End) -> &'static str {
        match (self, end) {
            (Self::AToB, End::Client) | (Self::BToA, End::Server) => "a",
            (Self::AToB, End::Server) | (Self::BToA, End::Client) => "b",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_direction_has_its_name() {
        for direction in Direction::ALL {
            let json = serde_json::to_value(direction).expect("JSON");
            assert_eq!(json, direction.key());
        }
    }
}
