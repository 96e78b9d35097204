//! Factors that are demanded of a network, as opposed to those that its operator chooses.

/// Keys of factors that are options of loads.
const OF_LOAD: [&str; 21] = [
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
    "outstanding",
    "seconds",
    "io_size",
    "pattern",
    "reads",
    "connections",
    "connections_per_guest",
    "machines",
    "memory",
    "dirty_rate",
    "max_downtime",
];

/// Keys of the plan's other factors that are demanded.
const OF_PLAN: [&str; 2] = ["guests", "underlay.rate"];

/// Whether a factor is an option of the load, or of one of several loads (`ping.request`).
pub(crate) fn is_of_load(key: &str) -> bool {
    let option = key.rsplit_once('.').map_or(key, |(_, option)| option);
    OF_LOAD.contains(&key) || OF_LOAD.contains(&option) && !key.starts_with("underlay")
}

/// Whether a factor is demanded: an option of a load, or one of [`OF_PLAN`].
pub(crate) fn is_demand(key: &str) -> bool {
    OF_PLAN.contains(&key) || is_of_load(key)
}
