//! How large a ratio is, in words: `35 % slower`, `1.9 times as fast`, `16 times lower`.

use wirecost_model::metric::Metric;

/// Ratios from this one on are told as a multiple and not in percent. (Below 1: up to `1 / (TIMES + 0.5)`.)
const TIMES: f64 = 1.5;
/// Where the far end of a range is told as a multiple, the near end is too, from this ratio on.
const TIMES_BESIDE: f64 = 1.1;

/// The words for sizes of one metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    metric: Metric,
    /// Decimals of percentages: one where the margin is below 3 %, else none.
    decimals: usize,
}

/// A ratio in parts: `("35 %", "slower")`, `("1.9 times", "as fast")`.
type RatioWords = (String, &'static str);

impl Sizes {
    pub(crate) fn new(metric: Metric, worth: f64) -> Self {
        Self {
            metric,
            decimals: usize::from(worth < 0.03),
        }
    }

    /// `35 % slower`, `5 to 8 % faster`, `1.9 to 2.9 times as fast`, `5 % to 2.9 times lower`: from the ratio nearest
    /// to 1 to the farthest. All ratios are on the same side of 1.
    pub(crate) fn range(self, ratios: impl Iterator<Item = f64>) -> String {
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()));
        let (Some(&least), Some(&most)) = (ratios.first(), ratios.last()) else {
            return String::new();
        };
        let high = self.parts(most);
        let is_multiple = |parts: &RatioWords| parts.0.ends_with("times");
        let mut low = self.parts(least);
        if is_multiple(&high) && !is_multiple(&low) && factor(least) >= TIMES_BESIDE {
            low = self.multiple(least);
        }
        if low == high {
            return format!("{} {}", high.0, high.1);
        }
        if low.1 == high.1 {
            let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
            if unit(&low.0) == unit(&high.0) {
                let number = low.0.split(' ').next().unwrap_or_default();
                return format!("{number} to {} {}", high.0, high.1);
            }
            return format!("{} to {} {}", low.0, high.0, high.1);
        }
        format!("{} {} to {} {}", low.0, low.1, high.0, high.1)
    }

    fn parts(self, ratio: f64) -> RatioWords {
        if ratio >= TIMES || ratio <= 1.0 / (TIMES + 0.5) {
            self.multiple(ratio)
        } else if ratio >= 1.0 {
            let up = if self.is_speed() { "faster" } else { "higher" };
            (self.percent(ratio - 1.0), up)
        } else {
            (self.percent(1.0 - ratio), self.down())
        }
    }

    fn multiple(self, ratio: f64) -> RatioWords {
        let direction = match (ratio >= 1.0, self.is_speed()) {
            (true, true) => "as fast",
            (true, false) => "as high",
            (false, _) => self.down(),
        };
        (format!("{} times", times(factor(ratio))), direction)
    }

    const fn is_speed(self) -> bool {
        matches!(self.metric, Metric::Throughput | Metric::Datagrams)
    }

    const fn down(self) -> &'static str {
        if self.is_speed() { "slower" } else { "lower" }
    }

    /// `8 %`, rounded; `under 1 %` where it would round to 0.
    fn percent(self, fraction: f64) -> String {
        let text = format!("{:.*} %", self.decimals, fraction * 100.0);
        if text.trim_start_matches(['0', '.']).starts_with(" %") {
            return format!("under {} %", self.unit());
        }
        text
    }

    /// The smallest percentage that is told.
    fn unit(self) -> &'static str {
        if self.decimals == 0 { "1" } else { "0.1" }
    }

    /// The farthest that any of these interval ends is from 1, in percent, rounded up: `at most 4 %`. `None` without
    /// ends.
    pub(crate) fn at_most(self, ends: impl Iterator<Item = f64>) -> Option<String> {
        let far = ends.map(|end| if end >= 1.0 { end - 1.0 } else { 1.0 - end });
        let far = far.reduce(f64::max)?;
        let scale = 10_f64.powi(self.decimals as i32);
        // Only three decimals of the percentage count: digits beyond these do not round up.
        let percent = (far * 1e5).round() / 1e3;
        let percent = ((percent * scale - 1e-6).ceil() / scale).max(1.0 / scale);
        Some(format!("at most {percent:.*} %", self.decimals))
    }
}

/// The ratio or its reciprocal, whichever is at least 1.
fn factor(ratio: f64) -> f64 {
    ratio.max(ratio.recip())
}

/// A margin in percent: `5 %`, `1.5 %`.
pub(crate) fn percent(fraction: f64) -> String {
    format!("{} %", (fraction * 1000.0).round() / 10.0)
}

/// The ratio with one decimal below 10, else none: `1.9`, `16`.
pub(crate) fn times(ratio: f64) -> String {
    if ratio < 9.95 {
        format!("{ratio:.1}")
    } else {
        format!("{ratio:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_said_in_percent_or_as_a_multiple() {
        let of = |metric, ratios: &[f64]| Sizes::new(metric, 0.05).range(ratios.iter().copied());
        for (metric, ratios, words) in [
            (Metric::Throughput, &[0.65][..], "35 % slower"),
            (Metric::Throughput, &[1.05, 1.08], "5 to 8 % faster"),
            (
                Metric::Throughput,
                &[2.93, 1.91],
                "1.9 to 2.9 times as fast",
            ),
            (Metric::Throughput, &[1.4, 2.9], "1.4 to 2.9 times as fast"),
            (Metric::Throughput, &[0.25], "4.0 times slower"),
            (Metric::Cpu, &[0.064], "16 times lower"),
            (Metric::Cpu, &[0.52, 0.18], "1.9 to 5.6 times lower"),
            (Metric::Cpu, &[0.95, 0.18], "5 % to 5.6 times lower"),
            (Metric::Cpu, &[1.37, 1.56], "1.4 to 1.6 times as high"),
            (Metric::LatencyP99, &[80.2], "80 times as high"),
            (Metric::Throughput, &[1.002], "under 1 % faster"),
        ] {
            assert_eq!(of(metric, ratios), words);
        }
    }

    #[test]
    fn at_most_rounds_up_to_the_end_of_the_widest_interval() {
        let sizes = Sizes::new(Metric::Throughput, 0.05);
        assert_eq!(
            sizes.at_most([0.968, 1.01].into_iter()).as_deref(),
            Some("at most 4 %")
        );
        assert_eq!(
            sizes.at_most([0.97].into_iter()).as_deref(),
            Some("at most 3 %")
        );
        assert_eq!(
            sizes.at_most([1.0].into_iter()).as_deref(),
            Some("at most 1 %")
        );
    }
}
