//! The figures of one window of one generator.

use serde::Serialize;
use wirecost_agent::protocol::Measured;
use wirecost_model::usage::{FOREIGN_CORES_THRESHOLD, HostUsage, STEAL_THRESHOLD};

use crate::error::BenchError;
use crate::load::EndCounters;

/// One window of one generator.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sample {
    /// The yardstick, in the load's unit: Gbit/s of payload, or thousand transactions or datagrams per second.
    pub(crate) figure: f64,
    /// What the generator itself says, in the same unit: ours over the window, others over their whole test.
    pub(crate) own: f64,
    /// Median and 99th percentile of latencies as the generator says them, microseconds, where the row is about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) latency_us: Option<[f64; 2]>,
    /// Percent of one core of the sending host for each unit of the yardstick.
    pub(crate) sender_cpu: f64,
    /// Percent of one core of the receiving host for each unit of the yardstick.
    pub(crate) receiver_cpu: f64,
    /// Cores that tasks of neither used, over the machine.
    pub(crate) foreign_cores: f64,
    /// Nanoseconds that a cache line took from a core of the sending host to one of the receiving and back, before it
    /// and after; `None` where they share the cores, or others had one.
    pub(crate) apart_ns: [Option<f64>; 2],
    /// Foreign load, steal or backlog drops above what marks a sample of a run.
    pub(crate) disturbed: bool,
    /// Peak memory of the larger of both ends' processes in bytes, where they tell it.
    pub(crate) peak_bytes: Option<u64>,
    /// Whether the load's own threads were the limit, where it tells.
    pub(crate) generator_bound: Option<bool>,
}

impl Sample {
    /// From what counted it and what the generator told.
    pub(crate) fn new(
        peer: &'static str,
        [figure, own]: [f64; 2],
        hosts: &[Measured; 2],
        [sender_cores, receiver_cores]: [f64; 2],
        apart_ns: [Option<f64>; 2],
        counters: &[EndCounters],
    ) -> Result<Self, BenchError> {
        // Not a load, whatever it was.
        if figure < 1e-3 {
            return Err(BenchError::NothingArrived(peer));
        }
        let [sender, receiver] = hosts.each_ref().map(|host| &host.usage);
        Ok(Self {
            figure,
            own,
            latency_us: None,
            sender_cpu: sender_cores * 100.0 / figure,
            receiver_cpu: receiver_cores * 100.0 / figure,
            foreign_cores: sender.foreign_cores.unwrap_or_default(),
            apart_ns,
            disturbed: disturbed(sender) || disturbed(receiver),
            peak_bytes: counters.iter().map(|counters| counters.peak_bytes).max(),
            generator_bound: (!counters.is_empty())
                .then(|| counters.iter().any(|counters| counters.generator_bound)),
        })
    }
}

fn disturbed(host: &HostUsage) -> bool {
    host.foreign_cores
        .is_some_and(|cores| cores > FOREIGN_CORES_THRESHOLD)
        || host.steal_fraction() > STEAL_THRESHOLD
        || host.backlog_drops > 0
}
