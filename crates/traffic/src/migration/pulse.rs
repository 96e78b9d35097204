//! How it is known that a machine runs at an end.

/// How a machine is seen to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulse {
    /// It is known to.
    Runs,
    /// Its timer has ticked so often: a request was met by a guest that ran once there is another tick.
    Ticks(u32),
}
