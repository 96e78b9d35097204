//! Deadlines on the monotonic clock.

use std::time::{Duration, Instant};

use wirecost_sys::extended_wait::{self, ExtendedWait, ProcessActivity};

const MOMENT: Duration = Duration::from_millis(1);

/// A point in time on the monotonic clock.
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

    /// Time that is left, as a socket's timeout, for which zero would mean no timeout.
    pub(crate) fn timeout(self) -> Duration {
        self.left().max(MOMENT)
    }

    /// This deadline, at least a moment from now, so that data already received is read.
    pub(crate) fn at_least_a_moment(self) -> Self {
        Self(self.0.max(Instant::now() + MOMENT))
    }
}

/// A wait for daemons: its timeout, and more while they are at work.
pub(crate) struct DaemonWait {
    within: Duration,
    until: Deadline,
    extended: Option<ExtendedWait<Box<dyn Fn() -> ProcessActivity>>>,
    daemons: Vec<u32>,
}

impl DaemonWait {
    /// `daemons` are process ids; without any the wait is not extended.
    pub(crate) fn with(daemons: Vec<u32>, within: Duration) -> Self {
        Self {
            within,
            until: Deadline::within(within),
            extended: None,
            daemons,
        }
    }

    /// Deadline of a single request.
    pub(crate) fn request_deadline(&self) -> Deadline {
        Deadline::within(self.within)
    }

    pub(crate) fn is_over(&mut self) -> bool {
        if !self.until.is_over() {
            return false;
        }
        let (begins, daemons) = (self.extended.is_none(), self.daemons.clone());
        let extended = self.extended.get_or_insert_with(|| {
            ExtendedWait::begin(self.within, Box::new(move || extended_wait::of(&daemons)))
        });
        if !begins && !extended.extend() {
            return true;
        }
        self.until = Deadline(extended.until());
        false
    }
}
