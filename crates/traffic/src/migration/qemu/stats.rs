//! QEMU's figures of a move (`query-migrate`, qapi/migration.json of QEMU).

use serde_json::Value;

/// One answer to `query-migrate`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct MoveStats {
    /// `setup`, `active`, `completed` and others; empty: there was no move.
    pub(crate) status: String,
    /// Why the move failed.
    pub(crate) error: Option<String>,
    /// Total time, milliseconds.
    pub(crate) total_ms: u64,
    /// Time of the set-up, milliseconds.
    pub(crate) setup_ms: u64,
    /// Downtime, milliseconds.
    pub(crate) downtime_ms: u64,
    /// Bytes sent, headers included.
    pub(crate) transferred: u64,
    /// Pages sent with their content.
    pub(crate) pages: u64,
    /// Pages sent as zero.
    pub(crate) zero_pages: u64,
    /// Bytes that are left to send.
    pub(crate) remaining: u64,
    /// Dirty rate of the guest, pages per second.
    pub(crate) dirty_pages_per_s: u64,
    /// With post-copy, pages that the destination requested.
    pub(crate) fetched: u64,
    /// Throttle, percent of the guest's time.
    pub(crate) throttle: u64,
}

impl MoveStats {
    pub(crate) fn of(answer: &Value) -> Self {
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let ram = &answer["ram"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            status: text(&answer["status"]).unwrap_or_default(),
            error: text(&answer["error-desc"]),
            total_ms: number(&answer["total-time"]),
            setup_ms: number(&answer["setup-time"]),
            downtime_ms: number(&answer["downtime"]),
            transferred: number(&ram["transferred"]),
            pages: number(&ram["normal"]),
            zero_pages: number(&ram["duplicate"]),
            remaining: number(&ram["remaining"]),
            dirty_pages_per_s: number(&ram["dirty-pages-rate"]),
            fetched: number(&ram["postcopy-requests"]),
            throttle: number(&answer["cpu-throttle-percentage"]),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_there_is_nothing() {
        let stats = MoveStats::of(&json!({
            "status": "completed", "total-time": 900, "setup-time": 3, "downtime": 12,
            "ram": { "transferred": 5_000, "normal": 7, "duplicate": 2, "remaining": 0, "dirty-pages-rate": 40 },
        }));
        assert_eq!(
            (stats.status.as_str(), stats.total_ms, stats.downtime_ms),
            ("completed", 900, 12)
        );
        assert_eq!((stats.pages, stats.zero_pages, stats.throttle), (7, 2, 0));
        assert_eq!(MoveStats::of(&json!({})), MoveStats::default());
    }
}
