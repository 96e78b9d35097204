//! Cells: the combinations that a plan expands to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::offload::Offload;
use crate::plan::{Cores, Encapsulation, Levels, Plan};

/// A plan expanded: what `run` executes and the record keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The effective plan.
    pub plan: Plan,
    /// Every factor, constant ones included, in the order of the plan's keys.
    pub factors: Vec<Factor>,
    /// The cells, numbered from 0 in the order of the cross product (the last factor varies fastest).
    pub cells: Vec<Cell>,
}

impl Experiment {
    /// The factors with more than one level.
    pub fn varied(&self) -> impl Iterator<Item = &Factor> {
        self.factors.iter().filter(|factor| factor.levels.len() > 1)
    }
}

/// One thing that is varied, or could have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// The plan's key: `guest_mtu`, `encapsulation`, `offload`, `underlay.mtu`, `underlay.rate`,
    /// `streams`, `message`, `congestion`, `socket_buffer`.
    pub key: String,
    /// The labels of its levels in the plan's order; the first is the reference.
    pub levels: Vec<String>,
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its number in the experiment.
    pub index: u32,
    /// Its level of every factor.
    pub levels: Levels,
    /// What is built.
    pub network: Network,
    /// The guest's MTU in bytes, resolved where the plan said `max`.
    pub guest_mtu: u32,
    /// The offloads on every device of the path.
    pub offload: Offload,
    /// What is sent.
    pub load: TcpStream,
}

/// What has to be built anew when it changes: cells with the same network share a lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Network {
    /// MTU of the underlay in bytes.
    pub underlay_mtu: u32,
    /// Line rate in bits per second.
    pub rate: Option<u64>,
    /// How guest frames cross it.
    pub encapsulation: Encapsulation,
    /// How the hosts share the cores.
    pub cores: Cores,
}

/// In words: `vxlan over an underlay of MTU 9000 at 10gbit`.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} over an underlay of MTU {}",
            self.encapsulation, self.underlay_mtu
        )?;
        match self.rate {
            Some(rate) => write!(f, " at {}", crate::units::format_rate(rate)),
            None => f.write_str(" without a rate limit"),
        }
    }
}

/// One bulk TCP load, every option resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpStream {
    /// Connections at once.
    pub streams: u32,
    /// Bytes per write.
    pub message: u32,
    /// Congestion control by the kernel's name.
    pub congestion: String,
    /// `SO_SNDBUF` and `SO_RCVBUF` in bytes; `None` is the kernel's autotuning.
    pub socket_buffer: Option<u32>,
}
