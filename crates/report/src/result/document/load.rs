//! One load of a cell over its valid samples.

use std::collections::BTreeMap;

use serde::Serialize;
use wirecost_model::load::Workload;
use wirecost_model::metric::Metric;
use wirecost_model::path_access::PathAccess;
use wirecost_stats::Summary;

use super::network::NetworkShare;
use crate::result::flows::FlowsResult;
use crate::result::load_counts::{DatagramsResult, RequestsResult};
use crate::result::moves::MovesResult;

/// One load of a cell. A figure is `null` where the workload does not have it, or no valid sample has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellLoad {
    /// The load's name.
    pub name: String,
    /// The kind of load.
    pub workload: Workload,
    /// Gbit/s that the receiving application read; both directions together where both ends send.
    pub throughput_gbps: Option<Summary>,
    /// Messages per second that the receiving application read of a TCP stream of small messages (4 KiB at most).
    pub messages_per_s: Option<Summary>,
    /// Transactions (requests answered) per second.
    pub transactions_per_s: Option<Summary>,
    /// Latencies, of all rounds together.
    pub latency: Option<LatencyResult>,
    /// Counts of datagrams, of all rounds together.
    pub datagrams: Option<DatagramsResult>,
    /// Datagrams per second that the receiving application read.
    pub datagrams_per_s: Option<Summary>,
    /// Datagrams that arrived, percent of those sent.
    pub delivered_percent: Option<Summary>,
    /// Interarrival jitter in microseconds (RFC 3550).
    pub jitter_us: Option<Summary>,
    /// Percent of one core of the sending host per Gbit/s; `null`, as all CPU figures, where several loads ran at once.
    pub sender_cpu_percent_per_gbps: Option<Summary>,
    /// Percent of one core of the receiving host per Gbit/s.
    pub receiver_cpu_percent_per_gbps: Option<Summary>,
    /// Percent of one core of the machine per Gbit/s, where the hosts share their cores.
    pub cpu_percent_per_gbps: Option<Summary>,
    /// Core time of the client's host per transaction, microseconds.
    pub client_cpu_us_per_transaction: Option<Summary>,
    /// Core time of the server's host per transaction, microseconds.
    pub server_cpu_us_per_transaction: Option<Summary>,
    /// Core time of the machine per transaction, microseconds, where the hosts share their cores.
    pub cpu_us_per_transaction: Option<Summary>,
    /// Upper bounds of CPU figures, by metric and in the metric's unit, where all rounds together held too few steps of
    /// the cores' busy time counter.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu_below: BTreeMap<Metric, f64>,
    /// Jain's fairness index over the flows, up to 1.
    pub fairness: Option<Summary>,
    /// The load's flows and their sockets.
    pub flows: Option<FlowsResult>,
    /// Moves of the machines; only of a migration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<MovesResult>,
    /// The network's part of the latency; only of storage with `network_share`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkShare>,
    /// How the path was read and written; only of storage at a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathAccess>,
    /// Connections and datagrams of other senders that reached the load's ports and were dropped, in all valid samples.
    pub strays: u64,
    /// Samples in which the load's own threads were the limit.
    pub generator_bound: u32,
    /// Samples in which the load did not keep its rate: more than 1 % of the messages that were due in the window were
    /// not sent, or waited to be. Its figures then show the load's own backlog.
    #[serde(rename = "behind_schedule")]
    pub missed_schedule: u32,
}

/// Latencies in microseconds, from the merged histogram of all valid samples; timed-out requests are not in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencyResult {
    /// Number of transactions.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile; `null` where fewer than ten transactions lie beyond it.
    pub p999_us: Option<f64>,
    /// 99.99th percentile; `null` likewise.
    pub p9999_us: Option<f64>,
    /// The largest latency.
    pub max_us: f64,
    /// Share of transactions that took at most 500 us, 0 to 1.
    pub share_within_500us: f64,
    /// Median time from when a request was due until it was sent; absent without a rate, and in older records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_p50_us: Option<f64>,
    /// 99th percentile of that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_p99_us: Option<f64>,
    /// Median latency of flushes, which are no transactions; absent where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_p50_us: Option<f64>,
    /// 99th percentile of the latency of flushes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_p99_us: Option<f64>,
    /// Counts of requests.
    #[serde(flatten)]
    pub requests: RequestsResult,
}
