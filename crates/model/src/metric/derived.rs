//! The figures of a sample's load for other programs: the values of [`Metric`]s, with the unit in each name.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{Metric, median_at_target};
use crate::cores::Cores;
use crate::load::Workload;
use crate::sample::{LoadResult, Sample};

/// Figures by name, such as `gbit_per_s`: 0 or above, finite. A figure without a value is left out. The names are a
/// contract (docs/record-format.md).
pub type Derived = BTreeMap<&'static str, f64>;

impl Metric {
    /// The name of the derived figure, and the factor from the metric's own unit to the unit in the name.
    pub const fn derived(self) -> (&'static str, f64) {
        match self {
            Self::Throughput => ("gbit_per_s", 1e-9),
            Self::SenderCpu => ("sender_cpu_percent_per_gbit", 1.0),
            Self::ReceiverCpu => ("receiver_cpu_percent_per_gbit", 1.0),
            Self::Cpu => (CPU_PER_GBIT, 1.0),
            Self::Transactions => ("transactions_per_s", 1.0),
            Self::LatencyMedian => ("latency_p50_us", 1e6),
            Self::LatencyP99 => ("latency_p99_us", 1e6),
            Self::LatencyP999 => ("latency_p999_us", 1e6),
            Self::ClientCpu => ("client_cpu_us_per_transaction", 1.0),
            Self::ServerCpu => ("server_cpu_us_per_transaction", 1.0),
            Self::TransactionCpu => (CPU_PER_TRANSACTION, 1.0),
            Self::Datagrams => ("datagrams_per_s", 1.0),
            Self::Delivered => ("delivered_percent", 100.0),
            Self::MoveTime => ("move_s", 1.0),
            Self::Downtime => ("downtime_ms", 1e3),
            Self::DirtyLimit => ("dirty_limit_gbit_per_s", 1e-9),
        }
    }
}

/// Percent of a core per Gbit/s, both hosts together.
const CPU_PER_GBIT: &str = "cpu_percent_per_gbit";
/// Core time per transaction, microseconds, both hosts together.
const CPU_PER_TRANSACTION: &str = "cpu_us_per_transaction";

/// The figures of one load; `cores` decides whether sender and receiver have CPU figures of their own.
fn of_load(sample: &Sample, result: &LoadResult, cores: Cores) -> Derived {
    let mut figures: Derived = Metric::of(result.workload, cores)
        .iter()
        .filter_map(|metric| {
            let (name, scale) = metric.derived();
            Some((name, metric.value(sample, &result.name)? * scale))
        })
        .collect();
    let (parts, both) = if result.workload.is_request_response() {
        ([Metric::ClientCpu, Metric::ServerCpu], CPU_PER_TRANSACTION)
    } else {
        ([Metric::SenderCpu, Metric::ReceiverCpu], CPU_PER_GBIT)
    };
    let [one, other] = parts.map(|part| figures.get(part.derived().0).copied());
    if let Some((one, other)) = one.zip(other) {
        figures.insert(both, one + other);
    }
    if let Some(median) = median_at_target(sample, &result.name) {
        figures.insert("at_target_latency_p50_us", median * 1e6);
    }
    if result.workload == Workload::TcpBidirectional
        && let Some(stream) = &result.stream
    {
        let rates = [
            ("forth_gbit_per_s", stream.bytes, result.seconds),
            ("back_gbit_per_s", stream.back_bytes, result.client_seconds),
        ];
        for (name, bytes, seconds) in rates.into_iter().filter(|(_, _, seconds)| *seconds > 0.0) {
            figures.insert(name, bytes as f64 * 8e-9 / seconds);
        }
    }
    figures
}

/// A sample with the figures of its loads: a line of `samples.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleWithFigures<S> {
    /// The sample as it was counted.
    #[serde(flatten)]
    pub sample: S,
    /// Derived figures by the load's name. Readers of a record derive them again and ignore these.
    pub figures: BTreeMap<String, Derived>,
}

impl<S: Borrow<Sample>> SampleWithFigures<S> {
    /// A sample with its derived figures; `cores` says whether the hosts have cores of their own.
    pub fn of(sample: S, cores: Cores) -> Self {
        let counted: &Sample = sample.borrow();
        let loads = counted.loads.iter();
        let figures = loads.map(|load| (load.name.clone(), of_load(counted, load, cores)));
        Self {
            figures: figures.collect(),
            sample,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;

    #[test]
    fn names_of_figures_end_with_their_unit_and_no_two_are_the_same() {
        let all = [
            Metric::of(Workload::TcpStream, Cores::Split),
            Metric::of(Workload::TcpStream, Cores::Shared),
            Metric::of(Workload::UdpStream, Cores::Split),
            Metric::of(Workload::TcpRr, Cores::Split),
            Metric::of(Workload::TcpRr, Cores::Shared),
            Metric::of(Workload::Migration, Cores::Split),
        ];
        let mut known: BTreeMap<&str, Metric> = BTreeMap::new();
        for metric in all.concat() {
            let (name, scale) = metric.derived();
            assert!(
                known.insert(name, metric).is_none_or(|same| same == metric),
                "{name}"
            );
            let units = [
                "_per_s",
                "_us",
                "_percent",
                "_percent_per_gbit",
                "_us_per_transaction",
                "_s",
                "_ms",
            ];
            assert!(units.iter().any(|unit| name.ends_with(unit)), "{name}");
            assert!(
                (metric.unit().1 - scale).abs() < f64::EPSILON,
                "as people read it: {name}"
            );
        }
        assert_eq!(known.len(), 16);
    }
}
