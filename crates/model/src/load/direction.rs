//! Which host runs which end of a load.

use serde::{Deserialize, Serialize};

use crate::end_window::End;

/// Which host runs the load's client, which sends or requests.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Host a sends or requests, host b receives or responds.
    #[default]
    AToB,
    /// Host b sends or requests, host a receives or responds.
    BToA,
}

impl Direction {
    /// The opposite direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::AToB => Self::BToA,
            Self::BToA => Self::AToB,
        }
    }

    /// Both directions.
    pub const ALL: [Self; 2] = [Self::AToB, Self::BToA];

    /// The word in plans and records.
    pub const fn key(self) -> &'static str {
        match self {
            Self::AToB => "a-to-b",
            Self::BToA => "b-to-a",
        }
    }

    /// The host that runs this end, `a` or `b`.
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
