//! Rules that every load must obey, each with its error message. Plans and the traffic engine apply the same rules.

mod external_target;
mod handling;
mod migration;
mod pace;
mod sizes;
mod storage;

use super::{Load, MAX_DEPTH, MAX_SOCKET_BUFFER, MAX_STREAMS, MIN_SOCKET_BUFFER, Workload};

pub use pace::{MAX_REPLY_TIMEOUT, MAX_THINK_TIME};

/// A rule that a load breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The option at fault, as plans write it: `depth`, `request`.
    pub option: &'static str,
    /// What is wrong with the option, in words.
    pub message: String,
}

type Rule = fn(&Load) -> Option<Fault>;

const RULES: &[Rule] = &[
    streams,
    sizes::message,
    sizes::response,
    storage::storage,
    storage::flushes,
    storage::network_share,
    external_target::external_target,
    external_target::path,
    external_target::overwrite,
    external_target::job_threads,
    migration::migration,
    threads,
    socket_buffer,
    depth,
    pace::rate,
    pace::most,
    pace::limit,
    handling::zero_copy,
    handling::discard,
    handling::segmentation,
    dscp,
    pace::reply_timeout,
    pace::think_time,
    congestion,
];

impl Load {
    /// Every rule that this load breaks; empty where the load can be run.
    pub fn faults(&self) -> Vec<Fault> {
        RULES.iter().filter_map(|rule| rule(self)).collect()
    }
}

fn unless(holds: bool, option: &'static str, message: impl FnOnce() -> String) -> Option<Fault> {
    (!holds).then(|| Fault {
        option,
        message: message(),
    })
}

fn streams(load: &Load) -> Option<Fault> {
    unless((1..=MAX_STREAMS).contains(&load.streams), "streams", || {
        format!("streams is {}: 1 to {MAX_STREAMS}", load.streams)
    })
}

fn threads(load: &Load) -> Option<Fault> {
    // Only bidirectional streams have two halves, each of which can have a thread.
    let halves = match load.workload {
        Workload::TcpBidirectional => 2,
        _ => 1,
    };
    let most = load.connections().max(1).saturating_mul(halves);
    let fits = |threads: u32| (1..=most).contains(&threads);
    unless(load.threads.is_none_or(fits), "threads", || {
        format!(
            "threads is {}: at least 1, at most {most} for this load",
            load.threads.unwrap_or_default()
        )
    })
}

fn socket_buffer(load: &Load) -> Option<Fault> {
    let fits = |bytes: u32| (MIN_SOCKET_BUFFER..=MAX_SOCKET_BUFFER).contains(&bytes);
    unless(load.socket_buffer.is_none_or(fits), "socket_buffer", || {
        format!(
            "a socket buffer of {} bytes: {MIN_SOCKET_BUFFER} to {MAX_SOCKET_BUFFER}: the kernel gives no less, and keeps \
             twice as much in an int",
            load.socket_buffer.unwrap_or_default()
        )
    })
}

fn depth(load: &Load) -> Option<Fault> {
    let depth = load.depth;
    if !(1..=MAX_DEPTH).contains(&depth) {
        return unless(false, "depth", || {
            format!("depth is {depth}: 1 to {MAX_DEPTH}")
        });
    }
    unless(depth == 1 || load.workload.has_depth(), "depth", || {
        format!(
            "depth is {depth}, but {} has at most one request outstanding on a connection",
            load.workload
        )
    })
}

fn dscp(load: &Load) -> Option<Fault> {
    let dscp = load.dscp.unwrap_or_default();
    unless(dscp <= 63, "dscp", || format!("dscp is {dscp}: 0 to 63"))
}

fn congestion(load: &Load) -> Option<Fault> {
    let fits = load.congestion.is_none() || !load.workload.is_udp();
    if !fits {
        return unless(false, "congestion", || {
            "UDP has no congestion control".to_owned()
        });
    }
    let name = load.congestion.as_deref();
    // TCP_CA_NAME_MAX of include/net/tcp.h, which counts the terminating zero.
    let possible = name.is_none_or(|name| (1..16).contains(&name.len()) && !name.contains('\0'));
    unless(possible, "congestion", || {
        "a congestion control has a name of 1 to 15 characters, such as cubic".to_owned()
    })
}

#[cfg(test)]
mod tests;
