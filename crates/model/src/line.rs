//! How an emulated line lets packets out.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a plan has where it does not say: microseconds between two releases, as a card's interrupt moderation has them.
pub const RELEASE_US: u32 = 100;

/// What holds packets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LineBy {
    /// A program gives each packet a departure time, in steps, and fq holds it back until then.
    Fq,
    /// A token bucket lets packets out one by one.
    Tbf,
    /// Of several links, a class with a token bucket for each, which a program divides flows among.
    Htb,
}

/// How a lab's line lets packets out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRelease {
    /// What holds packets back.
    pub by: LineBy,
    /// Microseconds between two releases of what waits; `None` where each packet is released by itself.
    pub step_us: Option<u32>,
    /// Why it is not [`LineBy::Fq`].
    pub why: Option<String>,
    /// The core that it has for itself, which no host uses; `None`: what waits is released on the sender's cores.
    #[serde(default)]
    pub core: Option<u32>,
}

impl LineRelease {
    /// In steps of so many microseconds.
    pub const fn in_steps(step_us: u32) -> Self {
        Self {
            by: LineBy::Fq,
            step_us: Some(step_us),
            why: None,
            core: None,
        }
    }

    /// One by one, for that reason.
    pub const fn one_by_one(why: String) -> Self {
        Self {
            by: LineBy::Tbf,
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
            (LineBy::Fq, Some(step)) => write!(f, "the line releases every {step} us (fq)")?,
            (LineBy::Fq, None) => f.write_str("the line releases frame by frame (fq)")?,
            (LineBy::Htb, _) => f.write_str("each link releases frame by frame (htb)")?,
            (LineBy::Tbf, _) => f.write_str("the line releases frame by frame (tbf)")?,
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
