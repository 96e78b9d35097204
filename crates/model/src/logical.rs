//! The logical network that OVN makes of a lab's guests.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The logical network that OVN puts between the guests. For other datapaths the default, without a meaning.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Logical {
    /// How the guests of both hosts are joined.
    pub topology: Topology,
    /// The access-control lists that filter guests' packets.
    pub acl: Acl,
}

/// How a logical network joins the guests of host a and those of host b.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// All guests are ports of one logical switch.
    #[default]
    Switched,
    /// Each host's guests are ports of a logical switch of their own, in a subnet of their own; a distributed logical
    /// router connects the two switches.
    Routed,
}

impl Topology {
    /// Both topologies.
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
    /// No access-control lists.
    #[default]
    None,
    /// As with a security group: packets that guests send, and packets that come from guests, are allowed together with
    /// their replies (`allow-related`); everything else is dropped. Every packet passes connection tracking, at both
    /// hosts.
    AllowRelated,
}

impl Acl {
    /// All variants.
    pub const ALL: [Self; 2] = [Self::None, Self::AllowRelated];

    /// The plan's word.
    pub const fn key(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::AllowRelated => "allow-related",
        }
    }
}

/// The part of a network's description: `, routed, ACL allow-related`; empty for the default.
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
