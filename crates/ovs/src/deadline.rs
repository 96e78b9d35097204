//! A deadline on the monotonic clock.

use std::time::{Duration, Instant};

/// A moment by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn within(time: Duration) -> Self {
        Self(Instant::now() + time)
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_zero()
    }

    pub(crate) fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// What is left as a socket's timeout, for which zero would mean none.
    pub(crate) fn timeout(self) -> Duration {
        self.left().max(Duration::from_millis(1))
    }
}
