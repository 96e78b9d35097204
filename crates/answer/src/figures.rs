//! Absolute figures in digits, with their units.

use wirecost_model::metric::Metric;

/// From so many microseconds on, latencies are told in milliseconds.
const MILLISECONDS: f64 = 1000.0;

/// Three digits that count.
fn digits(value: f64) -> String {
    match value {
        v if v < 0.995 => format!("{v:.2}"),
        v if v < 9.995 => format!("{v:.1}"),
        v if v < 99.5 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// `5.2 to 9.9 Gbit/s`, `0.06 to 4.8 ms`, `16 to 18 thousand transactions/s`: two of one metric, `between` them.
pub(crate) fn both(metric: Metric, from: f64, to: f64, between: &str) -> String {
    let (scale, unit) = scale(metric, from.max(to));
    format!(
        "{}{between}{} {unit}",
        digits(from * scale),
        digits(to * scale)
    )
}

/// `9.9 Gbit/s`.
pub(crate) fn one(metric: Metric, value: f64) -> String {
    let (scale, unit) = scale(metric, value);
    format!("{} {unit}", digits(value * scale))
}

fn scale(metric: Metric, largest: f64) -> (f64, &'static str) {
    match metric {
        Metric::MoveTime | Metric::Downtime => (1.0, metric.unit().0),
        _ if metric.is_latency() && largest >= MILLISECONDS => (1e-3, "ms"),
        Metric::Transactions if largest >= 10_000.0 => (1e-3, "thousand transactions/s"),
        Metric::Datagrams if largest >= 10_000.0 => (1e-3, "thousand datagrams/s"),
        metric => (1.0, metric.unit().0),
    }
}

/// The range of some figures in the unit of their largest, without it: `0.06`, `4.5-5.1`; and the unit.
pub(crate) fn range(metric: Metric, values: &[f64], largest: f64) -> (String, &'static str) {
    let (scale, unit) = scale(metric, largest);
    let low = values.iter().copied().fold(f64::INFINITY, f64::min) * scale;
    let high = values.iter().copied().fold(0.0, f64::max) * scale;
    let (low, high) = (digits(low), digits(high));
    if low == high {
        (high, unit)
    } else {
        (format!("{low}-{high}"), unit)
    }
}
