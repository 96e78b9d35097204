//! Factors that are demanded of a network, as opposed to those that its operator chooses.

/// Keys of factors that are options of loads.
const OF_LOAD: [&str; 28] = [
    "load",
    "streams",
    "streams_per_guest",
    "message",
    "request",
    "response",
    "rate",
    "total_rate",
    "think_time",
    "reply_timeout",
    "depth",
    "io_size",
    "pattern",
    "reads",
    "size",
    "flush_every",
    "connections",
    "connections_per_guest",
    "machines",
    "machines_per_guest",
    "memory",
    "dirty_rate",
    "dirty_order",
    "working_set",
    "zero_pages",
    "max_downtime",
    "limit",
    "direction",
];

/// Keys of the plan's other factors that are demanded.
const OF_PLAN: [&str; 3] = ["guests", "underlay.rate", "pairs"];

/// Whether a factor is an option of the load, or of one of several loads (`ping.request`).
pub(crate) fn is_of_load(key: &str) -> bool {
    let option = key.rsplit_once('.').map_or(key, |(_, option)| option);
    OF_LOAD.contains(&key) || OF_LOAD.contains(&option) && !key.starts_with("underlay")
}

/// Whether a factor is demanded: an option of a load, or one of [`OF_PLAN`].
pub(crate) fn is_demand(key: &str) -> bool {
    OF_PLAN.contains(&key) || is_of_load(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_load_asks_for_is_demanded_and_how_it_is_run_is_not() {
        for key in [
            "depth",
            "disk.depth",
            "machines_per_guest",
            "move.working_set",
            "flush_every",
            "ping.limit",
            "direction",
        ] {
            assert!(is_of_load(key) && is_demand(key), "{key}");
        }
        for key in [
            "congestion",
            "threads",
            "ping.socket_buffer",
            "underlay.rate",
            "guest_mtu",
        ] {
            assert!(!is_of_load(key), "{key}");
        }
        // Nobody chooses between which hosts the path is.
        assert!(is_demand("pairs") && !is_of_load("pairs"));
    }
}
