//! The logical network that OVN makes of a lab's guests.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What OVN puts between the guests. Without OVN it has no meaning, and is the default.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Logical {
    /// One switch, or two and a router.
    pub topology: Topology,
    /// What filters their packets.
    pub acl: Acl,
}

/// How a logical network joins the guests of host a and those of host b.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// All are ports of one logical switch.
    #[default]
    Switched,
    /// Each host's guests are ports of a logical switch and in a subnet of their own; a distributed logical router is
    /// between them.
    Routed,
}

impl Topology {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Switched, Self::Routed];

    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Switched => "switched",
            Self::Routed => "routed",
        }
    }
}

/// The access-control lists of a logical network.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Acl {
    /// There are none.
    #[default]
    None,
    /// As of a security group: what guests send, and what comes from guests, is allowed together with what answers it
    /// (`allow-related`), everything else is dropped. Every packet passes connection tracking, at both hosts.
    AllowRelated,
}

impl Acl {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::None, Self::AllowRelated];

    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::AllowRelated => "allow-related",
        }
    }
}

/// As it is added to a network's description: `, routed, ACL allow-related`; nothing for the default.
impl fmt::Display for Logical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.topology == Topology::Routed {
            f.write_str(", routed")?;
        }
        match self.acl {
            Acl::None => Ok(()),
            Acl::AllowRelated => f.write_str(", ACL allow-related"),
        }
    }
}
