//! How an emulated line releases packets.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Default time between two releases, microseconds: about that of a NIC's interrupt moderation.
pub const RELEASE_US: u32 = 100;

/// The queueing discipline that holds packets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineQdisc {
    /// fq: an eBPF program gives each packet a departure time, in steps, and fq holds the packet until then.
    Fq,
    /// tbf: a token bucket releases packets one by one.
    Tbf,
    /// htb, for several links: a class with a token bucket for each, among which a program divides flows.
    Htb,
}

/// How a lab's line releases packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRelease {
    /// The queueing discipline that holds packets back.
    pub by: LineQdisc,
    /// Microseconds between two releases of waiting packets; `None` where each packet is released by itself.
    pub step_us: Option<u32>,
    /// Why the line does not use [`LineQdisc::Fq`], where it does not.
    pub why: Option<String>,
    /// A core for the line alone, which no host uses; `None` where waiting packets are released on the sender's cores.
    #[serde(default)]
    pub core: Option<u32>,
}

impl LineRelease {
    /// A line that releases every `step_us` microseconds.
    pub const fn in_steps(step_us: u32) -> Self {
        Self {
            by: LineQdisc::Fq,
            step_us: Some(step_us),
            why: None,
            core: None,
        }
    }

    /// A line that releases packets one by one, and the reason.
    pub const fn one_by_one(why: String) -> Self {
        Self {
            by: LineQdisc::Tbf,
            step_us: None,
            why: Some(why),
            core: None,
        }
    }
}

/// `the line releases every 100 us (fq)`, `the line releases frame by frame (tbf): this kernel has no fq`.
impl fmt::Display for LineRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.by, self.step_us) {
            (LineQdisc::Fq, Some(step)) => write!(f, "the line releases every {step} us (fq)")?,
            (LineQdisc::Fq, None) => f.write_str("the line releases frame by frame (fq)")?,
            (LineQdisc::Htb, _) => f.write_str("each link releases frame by frame (htb)")?,
            (LineQdisc::Tbf, _) => f.write_str("the line releases frame by frame (tbf)")?,
        }
        if let Some(core) = self.core {
            write!(f, " on core {core}, which neither host uses")?;
        }
        match &self.why {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_it_releases_and_why_so() {
        assert_eq!(
            LineRelease::in_steps(100).to_string(),
            "the line releases every 100 us (fq)"
        );
        let apart = LineRelease {
            core: Some(3),
            ..LineRelease::in_steps(100)
        };
        assert_eq!(
            apart.to_string(),
            "the line releases every 100 us (fq) on core 3, which neither host uses"
        );
        assert_eq!(
            LineRelease::one_by_one("this kernel has no fq".into()).to_string(),
            "the line releases frame by frame (tbf): this kernel has no fq"
        );
    }
}
