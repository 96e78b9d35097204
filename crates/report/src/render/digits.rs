//! Figures as text, with as many digits as are significant.

use wirecost_stats::Summary;

/// A ratio with as many digits as are significant: `x1.52`, `x0.061`, `x12.3`, `x6718`.
pub(crate) fn ratio(ratio: f64) -> String {
    format!("x{ratio:.*}", decimals(ratio))
}

/// A ratio and its interval, all three with the ratio's decimals: `x1.52 [1.45, 1.60]`; without an interval the ratio
/// alone; without a ratio `None`.
pub(crate) fn ratio_and_interval(
    of: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
) -> Option<String> {
    let of = of?;
    let decimals = decimals(of);
    let end = |end: f64| {
        // An end beyond a hundred times or a hundredth of the ratio says only that nothing is known.
        const FAR: f64 = 100.0;
        let (least, most) = (of / FAR, of * FAR);
        let text = |end: f64| format!("{end:.0$}", decimals.max(self::decimals(end).min(3)));
        match end {
            end if end < least => format!("<{}", text(least)),
            end if end > most => format!(">{most:.decimals$}"),
            end => format!("{end:.decimals$}"),
        }
    };
    Some(match (low, high) {
        (Some(low), Some(high)) => format!("{} [{}, {}]", ratio(of), end(low), end(high)),
        _ => ratio(of),
    })
}

/// Number of decimals of a ratio.
fn decimals(ratio: f64) -> usize {
    match ratio {
        r if r < 0.1 => 3,
        r if r < 9.995 => 2,
        r if r < 99.95 => 1,
        _ => 0,
    }
}

/// Gbit/s with two decimals, and with more below 1 Gbit/s: 0.0987.
pub(crate) fn gbps(gbps: f64) -> String {
    let decimals = match gbps {
        g if g >= 0.995 || g <= 0.0 => 2,
        g if g >= 0.0995 => 3,
        g if g >= 0.00995 => 4,
        _ => 5,
    };
    format!("{gbps:.decimals$}")
}

/// A ratio or a median: three decimals below 0.1, two below 10, else one.
pub(crate) fn figure(ratio: f64) -> String {
    match ratio {
        r if r < 0.1 => format!("{r:.3}"),
        r if r < 9.995 => format!("{r:.2}"),
        r => format!("{r:.1}"),
    }
}

/// Microseconds with three digits or more: `1.23`, `12.3`, `123`.
pub(crate) fn micros(us: f64) -> String {
    match us {
        us if us < 9.995 => format!("{us:.2}"),
        us if us < 99.95 => format!("{us:.1}"),
        us => format!("{us:.0}"),
    }
}

/// Mean microseconds with the 95 % interval, where there is one: `140 [130, 151]`. The mean may be negative.
pub(crate) fn micros_and_interval(of: &Summary) -> String {
    let decimals = match of.mean.abs() {
        us if us < 9.995 => 2,
        us if us < 99.95 => 1,
        _ => 0,
    };
    match (of.low, of.high) {
        (Some(low), Some(high)) => {
            format!(
                "{:.decimals$} [{low:.decimals$}, {high:.decimals$}]",
                of.mean
            )
        }
        _ => format!("{:.decimals$}", of.mean),
    }
}

/// A count in thousands: with three decimals below 9,950, else with one.
pub(crate) fn thousands(count: f64) -> String {
    let decimals = if count < 9_950.0 { 3 } else { 1 };
    format!("{:.decimals$}", count / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_and_its_interval_have_the_same_decimals() {
        let of = |ratio, low, high| ratio_and_interval(Some(ratio), Some(low), Some(high));
        let cases = [
            ((6718.4, 5911.2, 7635.0), "x6718 [5911, 7635]"),
            ((12.34, 9.876, 15.4), "x12.3 [9.9, 15.4]"),
            ((0.95, 0.0834, 1.2), "x0.95 [0.08, 1.20]"),
            ((0.061, 0.05, 0.12), "x0.061 [0.050, 0.120]"),
        ];
        for ((ratio, low, high), text) in cases {
            assert_eq!(of(ratio, low, high).as_deref(), Some(text));
        }
    }

    #[test]
    fn an_interval_that_knows_nothing_is_not_given_digits() {
        assert_eq!(
            ratio_and_interval(Some(2.7), Some(1.0e-7), Some(1.07e6)).as_deref(),
            Some("x2.70 [<0.027, >270.00]")
        );
    }

    #[test]
    fn slow_lines_have_three_digits_too() {
        let cases = [
            (9.8765, "9.88"),
            (0.9412, "0.941"),
            (0.0941, "0.0941"),
            (0.00941, "0.00941"),
            (0.0, "0.00"),
        ];
        for (figure, words) in cases {
            assert_eq!(gbps(figure), words);
        }
    }

    #[test]
    fn what_is_rounded_up_to_a_power_of_ten_has_no_digit_more() {
        let of = ratio_and_interval(Some(9.996), Some(9.9), Some(10.1));
        assert_eq!(of.as_deref(), Some("x10.0 [9.9, 10.1]"));
        assert_eq!(ratio(99.96), "x100");
        assert_eq!(figure(9.996), "10.0");
        assert_eq!([9.996, 99.96].map(micros), ["10.0", "100"]);
    }

    #[test]
    fn ratios_keep_digits_that_tell_something() {
        assert_eq!(ratio(1.524), "x1.52");
        assert_eq!(ratio(0.0612), "x0.061");
        assert_eq!(ratio(12.34), "x12.3");
        assert_eq!(
            ratio_and_interval(Some(1.5), None, None).as_deref(),
            Some("x1.50")
        );
    }
}
