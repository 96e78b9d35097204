//! How a host spreads received packets over its cores: queues, and receive packet steering.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Queues and receive steering of the devices of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Steering {
    /// Number of transmit and of receive queues of every veth of the path, at least 1.
    pub queues: u32,
    /// Receive packet steering of packets from the underlay.
    pub rps: Rps,
}

/// The values in records before version 3.
impl Default for Steering {
    fn default() -> Self {
        Self {
            queues: 1,
            rps: Rps::Own,
        }
    }
}

/// Receive packet steering (RPS, Documentation/networking/scaling.rst): the cores that process the packets that a
/// device has received.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rps {
    /// The host's own cores, where the hosts have cores of their own; otherwise no steering.
    #[default]
    Own,
    /// No steering: on a veth the sending core also processes the packet on receipt.
    Off,
    /// Every core of the run.
    All,
    /// These cores, ascending, without duplicates.
    Cores(Vec<u32>),
}

impl Rps {
    /// Parses a mask of cores in hexadecimal digits after `0x`; `None` where the text is no mask, or the mask is empty.
    pub fn parse_mask(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x")?;
        if digits.is_empty() || digits.len() > MASK_DIGITS {
            return None;
        }
        let mut cores = Vec::new();
        for (place, digit) in (0..).zip(digits.chars().rev()) {
            let digit = digit.to_digit(16)?;
            cores.extend(
                (0..4)
                    .filter(|bit| digit >> bit & 1 == 1)
                    .map(|bit| place * 4 + bit),
            );
        }
        (!cores.is_empty()).then_some(Self::Cores(cores))
    }

    /// Whether packets may be received on cores other than the host's `own`, where all hosts of the run have cores of
    /// their own.
    pub fn leaves_own_cores(&self, own: &[u32]) -> bool {
        match self {
            Self::Own => false,
            Self::Off | Self::All => true,
            Self::Cores(cores) => cores.iter().any(|core| !own.contains(core)),
        }
    }
}

/// Most queues of each direction of a device of a lab.
pub const MAX_QUEUES: u32 = 64;
/// Most cores of a machine: the kernel's largest number (arch/x86/Kconfig, `NR_CPUS_RANGE_END`).
pub const MAX_CORES: u32 = 8192;
/// Most hexadecimal digits of a mask: 1024 cores.
pub const MASK_DIGITS: usize = 256;

/// The level's label: `own`, `off`, `all`, `0x3`.
impl fmt::Display for Rps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("own"),
            Self::Off => f.write_str("off"),
            Self::All => f.write_str("all"),
            Self::Cores(cores) => {
                let highest = cores.iter().max().copied().unwrap_or(0) / 4;
                f.write_str("0x")?;
                for place in (0..=highest).rev() {
                    let bits = cores.iter().filter(|core| *core / 4 == place);
                    write!(
                        f,
                        "{:x}",
                        bits.fold(0, |digit, core| digit | 1 << (core % 4))
                    )?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_reads_as_its_cores_and_is_written_without_leading_zeros() {
        assert_eq!(Rps::parse_mask("0x5"), Some(Rps::Cores(vec![0, 2])));
        let wide = Rps::parse_mask("0x0100000001").expect("a mask");
        assert_eq!(wide, Rps::Cores(vec![0, 32]));
        assert_eq!(wide.to_string(), "0x100000001");
        for none in ["0x", "0x0", "3", "0xg", "", "0x-1"] {
            assert_eq!(Rps::parse_mask(none), None, "{none}");
        }
    }

    #[test]
    fn only_a_hosts_own_cores_keep_its_work_there() {
        assert!(!Rps::Own.leaves_own_cores(&[1]));
        assert!(!Rps::Cores(vec![1]).leaves_own_cores(&[1]));
        assert!(Rps::Cores(vec![0, 1]).leaves_own_cores(&[1]));
        assert!(Rps::Off.leaves_own_cores(&[1]) && Rps::All.leaves_own_cores(&[1]));
    }
}
