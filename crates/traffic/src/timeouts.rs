//! Times that clients and servers have in common.

use std::time::Duration;

/// How long data or a response may be missing before the peer counts as gone.
pub(crate) const PEER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait of a blocking call before the thread checks whether it is to stop.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
