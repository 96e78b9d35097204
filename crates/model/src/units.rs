//! Units as users write them: `10gbit`, `128KiB`, `5%`.

use std::fmt;

/// Why a quantity could not be parsed; the text says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitError(String);

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnitError {}

/// A unit that may follow a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// The unit's name.
    pub name: &'static str,
    /// Factor from the unit to the base unit, before the division by `over`.
    times: f64,
    /// Divisor, which keeps results exact: 200 / 1000 is the double nearest to 0.2, 200 x 0.001 need not be.
    over: f64,
}

impl Unit {
    const fn times(name: &'static str, times: f64) -> Self {
        let over = 1.0;
        Self { name, times, over }
    }

    const fn over(name: &'static str, over: f64) -> Self {
        let times = 1.0;
        Self { name, times, over }
    }

    fn of(self, number: f64) -> f64 {
        number * self.times / self.over
    }

    /// The unit of that name; the base unit for an empty name.
    fn find(units: &[Self], name: &str) -> Option<Self> {
        if name.is_empty() {
            return Some(Self::times("", 1.0));
        }
        units.iter().find(|unit| unit.name == name).copied()
    }
}

/// Units of a bit rate (base unit: bit/s), in upper or lower case; `/s` may follow.
pub const RATE_UNITS: &[Unit] = &[
    Unit::times("bit", 1.0),
    Unit::times("kbit", 1e3),
    Unit::times("mbit", 1e6),
    Unit::times("gbit", 1e9),
];

/// Units of a size (base unit: byte).
pub const SIZE_UNITS: &[Unit] = &[
    Unit::times("B", 1.0),
    Unit::times("KiB", 1024.0),
    Unit::times("K", 1024.0),
    Unit::times("MiB", 1_048_576.0),
    Unit::times("M", 1_048_576.0),
    Unit::times("GiB", 1_073_741_824.0),
    Unit::times("G", 1_073_741_824.0),
    Unit::times("kB", 1e3),
    Unit::times("MB", 1e6),
    Unit::times("GB", 1e9),
];

/// Units of a duration (base unit: second).
pub const DURATION_UNITS: &[Unit] = &[
    Unit::times("s", 1.0),
    Unit::over("ms", 1e3),
    Unit::over("us", 1e6),
    Unit::times("min", 60.0),
];

/// Units of a share (base unit: the fraction).
pub const SHARE_UNITS: &[Unit] = &[Unit::over("%", 100.0)];

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim()))
}

/// Parses a bit rate in decimal units, as `tc` writes them: `10gbit`, `2.5Gbit`, `800mbit`, `64kbit`.
///
/// Returns bit/s, 1 to 10^13. A bare number is refused because it would be ambiguous.
///
/// # Errors
/// A text that is no rate, or a rate out of this range.
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    let hint = || {
        UnitError(format!(
            "`{text}` is not a rate: write a number and kbit, mbit or gbit, such as 10gbit"
        ))
    };
    let (number, unit) = split(text).ok_or_else(hint)?;
    let unit = unit.to_ascii_lowercase();
    let unit = unit.strip_suffix("/s").unwrap_or(&unit);
    let unit = RATE_UNITS.iter().find(|known| known.name == unit);
    let bits = unit.ok_or_else(hint)?.of(number);
    if !(1.0..=1e13).contains(&bits) {
        return Err(UnitError(format!(
            "`{text}` is out of range: a rate lies between 1bit and 10000gbit"
        )));
    }
    Ok(bits.round() as u64)
}

/// Formats a bit rate as `tc` does, in the largest unit in which it has at most three decimals.
pub fn format_rate(bits_per_second: u64) -> String {
    let value = bits_per_second as f64;
    for (scale, unit) in [(1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit")] {
        let scaled = value / scale;
        if scaled >= 1.0 && ((scaled * 1000.0).round() - scaled * 1000.0).abs() < 1e-6 {
            return format!("{scaled}{unit}");
        }
    }
    format!("{bits_per_second}bit")
}

/// Formats a number per second for people: with more decimals for small numbers.
pub fn format_per_second(rate: f64) -> String {
    let decimals = match rate {
        r if r >= 99.5 || r <= 0.0 => 0,
        r if r >= 9.95 => 1,
        r if r >= 0.0995 => 2,
        _ => 4,
    };
    format!("{rate:.decimals$}")
}

/// Parses a size in bytes: a bare number, or one with a unit of [`SIZE_UNITS`].
///
/// # Errors
/// A text that is no size, a fraction of a byte, or more than 10^15 bytes.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let hint = || {
        UnitError(format!(
            "`{text}` is not a size: write bytes, such as 131072 or 128KiB"
        ))
    };
    let (number, unit) = split(text).ok_or_else(hint)?;
    let bytes = Unit::find(SIZE_UNITS, unit).ok_or_else(hint)?.of(number);
    if bytes.fract() != 0.0 || bytes > 1e15 {
        return Err(hint());
    }
    Ok(bytes as u64)
}

/// Formats a size in bytes, in a binary unit where it divides evenly: `128KiB`, `1500B`.
pub fn format_bytes(bytes: u64) -> String {
    for (scale, unit) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if bytes >= scale && bytes.is_multiple_of(scale) {
            return format!("{}{unit}", bytes / scale);
        }
    }
    format!("{bytes}B")
}

/// Parses a share, `5%` or `0.05`, as a fraction.
///
/// # Errors
/// A text that is no share.
pub fn parse_fraction(text: &str) -> Result<f64, UnitError> {
    let hint = || UnitError(format!("`{text}` is not a share: write 5% or 0.05"));
    let (number, unit) = split(text).ok_or_else(hint)?;
    Ok(Unit::find(SHARE_UNITS, unit).ok_or_else(hint)?.of(number))
}

/// Formats a fraction as a percentage: `5%`, `2.5%`.
pub fn format_fraction(fraction: f64) -> String {
    format!("{}%", (fraction * 1e6).round() / 1e4)
}

/// Parses a duration in seconds: `1.5`, `1.5s`, `200ms`, `100us`, `2min`.
///
/// # Errors
/// A text that is no duration.
pub fn parse_seconds(text: &str) -> Result<f64, UnitError> {
    let hint = || {
        UnitError(format!(
            "`{text}` is not a duration: write 1.5, 200ms or 2min"
        ))
    };
    let (number, unit) = split(text).ok_or_else(hint)?;
    Ok(Unit::find(DURATION_UNITS, unit)
        .ok_or_else(hint)?
        .of(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_read_as_tc_writes_them() {
        assert_eq!(parse_rate("10gbit"), Ok(10_000_000_000));
        assert_eq!(parse_rate("2.5Gbit/s"), Ok(2_500_000_000));
        assert_eq!(parse_rate("800 mbit"), Ok(800_000_000));
    }

    #[test]
    fn a_rate_without_a_unit_says_what_to_write() {
        let text = parse_rate("10").expect_err("ambiguous").to_string();
        assert!(text.contains("such as 10gbit"), "{text}");
        assert!(parse_rate("0gbit").is_err());
        assert!(parse_rate("10gbit/s/s").is_err());
        assert!(parse_rate("fast").is_err());
    }

    #[test]
    fn sizes_shares_and_durations_read() {
        assert_eq!(parse_bytes("128KiB"), Ok(131_072));
        assert_eq!(parse_bytes("1500"), Ok(1500));
        assert!(parse_bytes("1.5").is_err());
        assert_eq!(parse_fraction("5%"), Ok(0.05));
        assert_eq!(parse_seconds("200ms"), Ok(0.2));
        assert_eq!(parse_seconds("100us"), Ok(1e-4));
        assert_eq!(format_fraction(0.05), "5%");
    }

    #[test]
    fn rare_events_have_as_many_decimals_as_tell_them() {
        let said = [0.0, 0.004, 0.05, 0.5, 12.3, 99.4, 99.5, 48_123.7].map(format_per_second);
        let as_meant = [
            "0", "0.0040", "0.0500", "0.50", "12.3", "99.4", "100", "48124",
        ];
        assert_eq!(said, as_meant);
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(rate in 1u64..1_000_000_000_000, bytes in 0u64..1 << 40) {
            prop_assert_eq!(parse_rate(&format_rate(rate)), Ok(rate));
            prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
        }
    }
}
