//! How the hosts of a lab share the cores.

use serde::{Deserialize, Serialize};

/// How the lab's hosts share this machine's cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cores {
    /// Host a on one half of the cores, host b on the other: sender and receiver CPU can be separated.
    Split,
    /// Both hosts on all cores: CPU is known for the machine as a whole only.
    Shared,
}
