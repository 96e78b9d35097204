//! Absolute figures in digits, with their units.

use wirecost_model::load::Workload;
use wirecost_model::metric::Metric;

/// From this many microseconds on, latencies are given in milliseconds.
const MILLISECONDS: f64 = 1000.0;

/// The number with two decimals below 1, one below 100, and none from there on.
fn digits(value: f64) -> String {
    match value {
        v if v < 0.995 => format!("{v:.2}"),
        v if v < 99.5 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// The unit in which figures of one metric are given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    /// Factor from the unit of [`Metric::unit_of`] to this one.
    scale: f64,
    /// The unit's name: `Gbit/s`.
    pub(crate) name: &'static str,
}

impl Unit {
    /// The unit that suits figures up to `largest`, which is in the unit of [`Metric::unit_of`].
    pub(crate) fn of(metric: Metric, workload: Workload, largest: f64) -> Self {
        let (scale, name) = match metric {
            Metric::MoveTime | Metric::Downtime => (1.0, metric.unit().0),
            _ if metric.is_latency() && largest >= MILLISECONDS => (1e-3, "ms"),
            Metric::Transactions if largest >= 10_000.0 && workload.is_storage() => {
                (1e-3, "thousand I/O per second")
            }
            Metric::Transactions if largest >= 10_000.0 => (1e-3, "thousand transactions/s"),
            Metric::Datagrams if largest >= 10_000.0 => (1e-3, "thousand datagrams/s"),
            metric => (1.0, metric.unit_of(workload).0),
        };
        Self { scale, name }
    }

    /// The range of `values`, which are in the unit of [`Metric::unit_of`], without the unit: `0.06`, `4.5-5.1`.
    pub(crate) fn range(self, values: &[f64]) -> String {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        let (low, high) = (digits(low * self.scale), digits(high * self.scale));
        if low == high {
            high
        } else {
            format!("{low}-{high}")
        }
    }
}

/// `5.2 -> 9.9 Gbit/s`, `0.06 -> 4.8 ms`, `16 -> 18 thousand transactions/s`.
pub(crate) fn change(metric: Metric, workload: Workload, from: f64, to: f64) -> String {
    let unit = Unit::of(metric, workload, from.max(to));
    let [from, to] = [from, to].map(|value| digits(value * unit.scale));
    format!("{from} -> {to} {}", unit.name)
}

/// `9.9 Gbit/s`.
pub(crate) fn one(metric: Metric, workload: Workload, value: f64) -> String {
    let unit = Unit::of(metric, workload, value);
    format!("{} {}", digits(value * unit.scale), unit.name)
}
