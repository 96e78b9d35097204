//! The start of a run, which a preview shows too: the cores that it may use, and its seed.

use serde::Serialize;

use super::error::RunError;
use crate::random;

/// Where the seed of the random order comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeedSource {
    /// The command line.
    Option,
    /// The plan.
    Plan,
    /// The kernel's random source: another seed in every run.
    Random,
}

/// The cores that this process may use.
pub(crate) fn allowed_cpus() -> Result<Vec<u32>, RunError> {
    wirecost_agent::lab::allowed_cpus().map_err(|source| RunError::Machine {
        what: "reading the cores",
        source,
    })
}

/// The seed of the random order: the option's, the plan's, or a fresh one.
pub(crate) fn choose_seed(
    option: Option<u64>,
    plan: Option<u64>,
) -> Result<(u64, SeedSource), RunError> {
    if let Some(seed) = option {
        return Ok((seed, SeedSource::Option));
    }
    if let Some(seed) = plan {
        return Ok((seed, SeedSource::Plan));
    }
    // 32 bits: a JSON reader with doubles keeps them exactly.
    let bytes = random_bytes()?;
    let fresh = bytes
        .iter()
        .take(4)
        .fold(0, |seed, byte| seed << 8 | u64::from(*byte));
    Ok((fresh, SeedSource::Random))
}

/// 128 random bits.
pub(crate) fn random_bytes() -> Result<[u8; 16], RunError> {
    random::bytes().map_err(|source| RunError::Machine {
        what: "reading /dev/urandom",
        source,
    })
}
