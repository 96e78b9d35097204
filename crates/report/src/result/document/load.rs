//! One load of a cell over its valid samples.

use std::collections::BTreeMap;

use serde::Serialize;
use wirecost_model::load::Workload;
use wirecost_model::metric::Metric;
use wirecost_model::path_access::PathAccess;
use wirecost_stats::Summary;

use super::network::NetworkShare;
use crate::result::flows::FlowsResult;
use crate::result::moves::MovesResult;

/// One load of a cell; `null` where the workload has no such figure, or no valid sample has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellLoad {
    /// The load's name.
    pub name: String,
    /// What was run.
    pub workload: Workload,
    /// Gbit/s that the receiving application read; of both where both send.
    pub throughput_gbps: Option<Summary>,
    /// Messages per second that the receiving application read of a TCP stream of small messages (4 KiB at most).
    pub messages_per_s: Option<Summary>,
    /// Transactions per second.
    pub transactions_per_s: Option<Summary>,
    /// Latencies of all rounds together.
    pub latency: Option<LatencyResult>,
    /// Datagrams, of all rounds together.
    pub datagrams: Option<DatagramsResult>,
    /// Datagrams per second that the receiving application read.
    pub datagrams_per_s: Option<Summary>,
    /// Percent of the datagrams sent that arrived.
    pub delivered_percent: Option<Summary>,
    /// Interarrival jitter in microseconds (RFC 3550).
    pub jitter_us: Option<Summary>,
    /// Percent of one core of the sending host per Gbit/s; `null` where several loads ran at once.
    pub sender_cpu_percent_per_gbps: Option<Summary>,
    /// Percent of one core of the receiving host per Gbit/s.
    pub receiver_cpu_percent_per_gbps: Option<Summary>,
    /// Percent of one core of the machine per Gbit/s, where the hosts share their cores.
    pub cpu_percent_per_gbps: Option<Summary>,
    /// Microseconds of core time of the asking host per transaction.
    pub client_cpu_us_per_transaction: Option<Summary>,
    /// Microseconds of core time of the answering host per transaction.
    pub server_cpu_us_per_transaction: Option<Summary>,
    /// Microseconds of core time of the machine per transaction, where the hosts share their cores.
    pub cpu_us_per_transaction: Option<Summary>,
    /// Where all rounds together held too few steps of the processors' counter, what the figure is below, by metric and in
    /// its unit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu_below: BTreeMap<Metric, f64>,
    /// Jain's fairness index over the flows.
    pub fairness: Option<Summary>,
    /// Its flows and their sockets.
    pub flows: Option<FlowsResult>,
    /// Of a migration: its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moves: Option<MovesResult>,
    /// Of storage with `network_share`: what of the latency is the network's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkShare>,
    /// Of storage at a path: how it was read and written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathAccess>,
    /// Connections and datagrams of others that reached its ports and were dropped, all valid samples.
    pub strays: u64,
    /// Samples in which the load's own threads were the limit.
    pub generator_bound: u32,
    /// Samples in which less than 95 % of the requests that a rate asked for were over, so that latencies have the wait
    /// behind that schedule in them.
    pub behind_schedule: u32,
}

/// Latencies in microseconds, from the merged histogram of all valid samples; no time-out is in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencyResult {
    /// Transactions.
    pub count: u64,
    /// Median.
    pub p50_us: f64,
    /// 90 % took at most this.
    pub p90_us: f64,
    /// 99 %.
    pub p99_us: f64,
    /// 99.9 %; `null` where fewer than ten transactions lie beyond it.
    pub p999_us: Option<f64>,
    /// 99.99 %; likewise.
    pub p9999_us: Option<f64>,
    /// The largest.
    pub max_us: f64,
    /// Share, 0 to 1, of those that took at most 500 us.
    pub share_within_500us: f64,
    /// From when requests were due until they were sent, the median; absent where nothing had a rate, or the record is older.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_p50_us: Option<f64>,
    /// 99 % of them left at most so late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_p99_us: Option<f64>,
    /// Of flushes, which are no transactions, the median; absent where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_p50_us: Option<f64>,
    /// 99 % of them took at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_p99_us: Option<f64>,
    /// Requests given up.
    pub timeouts: u64,
    /// Responses to requests that had been given up.
    pub late: u64,
    /// Responses that came again, over UDP.
    pub duplicated: u64,
}

/// Counts of datagrams over all valid samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DatagramsResult {
    /// Handed to the kernel.
    pub sent: u64,
    /// Read, each counted once.
    pub received: u64,
    /// Of those sent within the windows, the ones that never came.
    pub lost: i64,
    /// Received after a higher number.
    pub reordered: u64,
    /// Read again.
    pub duplicated: u64,
}
