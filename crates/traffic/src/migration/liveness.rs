//! Evidence that a machine runs at one end of its move.

/// Evidence that a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuestLiveness {
    /// The machine is known to run.
    Runs,
    /// The number of ticks of the guest's timer. A guest that has ticked again since a request arrived has run
    /// meanwhile.
    Ticks(u32),
}
