//! Time-outs for agents' answers.

use std::time::Duration;

/// For a request that only changes or reads settings.
pub(crate) const PROMPT: Duration = Duration::from_secs(10);
