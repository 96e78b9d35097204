//! The Open vSwitch that carried a sample.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The Open vSwitch of a sample. The record names it because its two datapaths differ by far more than their headers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenVswitch {
    /// The version that `ovs-vswitchd --version` prints.
    pub version: String,
    /// Where packets are switched.
    pub datapath: OvsDatapath,
    /// The version of OVN on top, which `ovn-controller --version` prints; `None` without OVN.
    #[serde(default)]
    pub ovn: Option<String>,
}

/// Where Open vSwitch switches packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OvsDatapath {
    /// In the daemon itself (`datapath_type` netdev), over packet sockets, frame by frame.
    Userspace,
    /// In the kernel's openvswitch module (`datapath_type` system).
    Kernel,
}

impl OvsDatapath {
    /// The value of column `datapath_type` in Open vSwitch's table Bridge.
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
