//! The Open vSwitch that carried a sample.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which Open vSwitch it was: part of the record, for the two datapaths differ by far more than their headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenVswitch {
    /// As printed by `ovs-vswitchd --version`.
    pub version: String,
    /// Where packets are switched.
    pub datapath: OvsDatapath,
    /// The version of OVN that programs it, as printed by `ovn-controller --version`; `None` where none does.
    #[serde(default)]
    pub ovn: Option<String>,
}

/// Where Open vSwitch switches packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OvsDatapath {
    /// In the daemon itself (`datapath_type` netdev), over packet sockets: frame by frame.
    Userspace,
    /// In the kernel's openvswitch module (`datapath_type` system).
    Kernel,
}

impl OvsDatapath {
    /// The word in Open vSwitch's table Bridge, column `datapath_type`.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Userspace => "netdev",
            Self::Kernel => "system",
        }
    }
}

impl fmt::Display for OvsDatapath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Userspace => "userspace datapath",
            Self::Kernel => "kernel datapath",
        })
    }
}

/// `Open vSwitch 3.1.0, userspace datapath`, `OVN 23.03.1 over Open vSwitch 3.1.0, kernel datapath`.
impl fmt::Display for OpenVswitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ovn) = &self.ovn {
            write!(f, "OVN {ovn} over ")?;
        }
        write!(f, "Open vSwitch {}, {}", self.version, self.datapath)
    }
}
