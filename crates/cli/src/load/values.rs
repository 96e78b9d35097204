//! Parses values of options, and formats times and throughputs.

use std::time::Duration;

use wirecost_model::units::{parse_bytes, parse_seconds};

/// Parses a duration: as in plans, and also with `us` and `h`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = [("us", 1e-6), ("µs", 1e-6), ("h", 3600.0)]
        .into_iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))
        .map_or_else(
            || parse_seconds(text).ok(),
            |(number, seconds)| Some(number.trim().parse::<f64>().ok()? * seconds),
        );
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| {
            format!("`{text}` is no duration: write 10s, 1.5s, 200ms, 500us, 2min or 1h")
        })
}

/// Parses a size in bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// Parses a size in bytes, below 4 GiB.
pub(super) fn small_size(text: &str) -> Result<u32, String> {
    let size = size(text)?;
    u32::try_from(size).map_err(|_| format!("`{text}` is too large: at most 4 GiB"))
}

/// A time in seconds as text with three significant digits: `71.2 us`, `1.25 ms`, `2.50 s`.
pub(super) fn time(seconds: f64) -> String {
    let (number, unit) = match seconds {
        ..1e-3 => (seconds * 1e6, "us"),
        ..1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let digits = match number {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{number:.digits$} {unit}")
}

/// A throughput in Gbit/s as text for a column, in a unit in which it is not zero.
pub(super) fn throughput(gbps: f64) -> String {
    let (number, unit) = match gbps {
        0.0 | 0.1.. => (gbps, "Gbit/s"),
        1e-4..0.1 => (gbps * 1e3, "Mbit/s"),
        _ => (gbps * 1e6, "kbit/s"),
    };
    format!("{number:8.3} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_from_microseconds_to_hours() {
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("2min"), Ok(Duration::from_mins(2)));
        assert_eq!(duration("1h"), Ok(Duration::from_hours(1)));
        for wrong in ["", "us", "h", "-1s", "-1h", "soon"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn throughputs_have_a_unit_in_which_they_are_not_zero() {
        let cases = [
            (0.0, "   0.000 Gbit/s"),
            (12.345_6, "  12.346 Gbit/s"),
            (0.099_9, "  99.900 Mbit/s"),
            (0.001, "   1.000 Mbit/s"),
            (9.765e-6, "   9.765 kbit/s"),
        ];
        for (gbps, text) in cases {
            assert_eq!(throughput(gbps), text);
        }
    }

    #[test]
    fn times_have_three_digits_and_their_unit() {
        let cases = [
            (0.0, "0.00 us"),
            (7.125e-6, "7.12 us"),
            (71.25e-6, "71.2 us"),
            (0.012_5, "12.5 ms"),
            (0.25, "250 ms"),
            (2.5, "2.50 s"),
        ];
        for (seconds, text) in cases {
            assert_eq!(time(seconds), text);
        }
    }
}
