//! Formats figures.

/// A number with commas between thousands: `14,880,952`.
pub(super) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share, 0 to 1, in percent: `94.1%`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// A rate in bit/s with its unit and three significant digits: `9.41 Gbit/s`.
pub(super) fn rate(bits_per_second: f64) -> String {
    let (value, unit) = match bits_per_second {
        rate if rate >= 1e9 => (rate / 1e9, "Gbit/s"),
        rate if rate >= 1e6 => (rate / 1e6, "Mbit/s"),
        rate if rate >= 1e3 => (rate / 1e3, "kbit/s"),
        rate => (rate, "bit/s"),
    };
    let digits = match value {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_parted_by_commas() {
        assert_eq!(count(0.0), "0");
        assert_eq!(count(999.4), "999");
        assert_eq!(count(812_743.8), "812,744");
        assert_eq!(count(14_880_952.4), "14,880,952");
    }

    #[test]
    fn rates_have_three_digits_and_their_unit() {
        assert_eq!(rate(9.415e9), "9.41 Gbit/s");
        assert_eq!(rate(94.15e9), "94.2 Gbit/s");
        assert_eq!(rate(376.6e9), "377 Gbit/s");
        assert_eq!(rate(941.5e6), "942 Mbit/s");
        assert_eq!(rate(60_300.0), "60.3 kbit/s");
        assert_eq!(rate(0.0), "0.00 bit/s");
    }
}
