//! Scales, which map figures to pixels, and the ticks of an axis.

/// A linear or logarithmic axis: figures from `low` to `high` on pixels from `from` to `to`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
}

/// Round steps, to be multiplied with powers of ten.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// Ratios for ticks, the more important first.
const RATIOS: [f64; 23] = [
    1.0, 2.0, 0.5, 10.0, 0.1, 5.0, 0.2, 100.0, 0.01, 1.5, 0.7, 1.2, 0.8, 3.0, 0.3, 1.1, 0.9, 20.0,
    0.05, 50.0, 0.02, 1.05, 0.95,
];

impl Scale {
    /// A linear axis from `low` to `high`, with about `ticks` ticks at round figures.
    pub(super) fn linear(
        low: f64,
        high: f64,
        pixels: (f64, f64),
        ticks: usize,
    ) -> (Self, Vec<f64>) {
        // Where all figures are equal, the axis still has a width.
        let span = (high - low).max(high.abs() * 1e-3).max(1e-9);
        let step = step(span / ticks.max(1) as f64);
        let scale = Self {
            low,
            high: low + span,
            from: pixels.0,
            to: pixels.1,
            log: false,
        };
        let first = (low / step - 1e-9).ceil();
        let count = ((low + span) / step + 1e-9).floor() - first;
        let ticks = (0..=count.max(0.0) as usize).map(|n| (first + n as f64) * step);
        (scale, ticks.collect())
    }

    /// A logarithmic axis over ratios, with a little room at its ends, and its ticks, at least `apart`
    /// pixels from each other.
    pub(super) fn ratios(low: f64, high: f64, pixels: (f64, f64), apart: f64) -> (Self, Vec<f64>) {
        let room = (high / low).powf(0.04).max(1.01);
        let scale = Self {
            low: low / room,
            high: high * room,
            from: pixels.0,
            to: pixels.1,
            log: true,
        };
        let mut ticks: Vec<f64> = Vec::new();
        for ratio in RATIOS {
            let within = (scale.low..=scale.high).contains(&ratio);
            let free = |other: &f64| (scale.at(*other) - scale.at(ratio)).abs() >= apart;
            if within && ticks.iter().all(free) {
                ticks.push(ratio);
            }
        }
        ticks.sort_by(f64::total_cmp);
        (scale, ticks)
    }

    /// A logarithmic axis over positive figures, with a little room at its ends, and its ticks: as many steps per
    /// decade as fit at least `apart` pixels from each other.
    pub(super) fn decades(low: f64, high: f64, pixels: (f64, f64), apart: f64) -> (Self, Vec<f64>) {
        let low = low.max(1e-3);
        let high = high.max(low);
        // Where all figures are equal, the axis still has a width.
        let room = (high / low).powf(0.03).max(1.05);
        let scale = Self {
            low: low / room,
            high: high * room,
            from: pixels.0,
            to: pixels.1,
            log: true,
        };
        let first = scale.low.log10().floor() as i32;
        let last = scale.high.log10().ceil() as i32;
        let ticks = |of: &[f64]| -> Vec<f64> {
            (first..=last)
                .flat_map(|ten| of.iter().map(move |step| step * 10f64.powi(ten)))
                .filter(|figure| scale.holds(*figure))
                .collect()
        };
        let free = |ticks: &[f64]| {
            let mut pairs = ticks.windows(2);
            pairs.all(|two| (scale.at(two[1]) - scale.at(two[0])).abs() >= apart)
        };
        let fine: [&[f64]; 4] = [
            &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            &[1.0, 2.0, 3.0, 5.0, 7.0],
            &STEPS,
            &[1.0],
        ];
        let mut chosen = fine.into_iter().map(ticks);
        let chosen = chosen.find(|ticks| !ticks.is_empty() && free(ticks));
        // The ends are so near to each other that none of these ticks lies between them.
        let linear = || Self::linear(scale.low, scale.high, pixels, 3).1;
        (scale, chosen.unwrap_or_else(linear))
    }

    /// The pixel of a figure; of one beyond an end, the pixel of that end.
    pub(super) fn at(&self, figure: f64) -> f64 {
        let figure = figure.clamp(self.low, self.high);
        let (figure, low, high) = if self.log {
            (figure.ln(), self.low.ln(), self.high.ln())
        } else {
            (figure, self.low, self.high)
        };
        self.from + (figure - low) / (high - low) * (self.to - self.from)
    }

    /// Whether a figure lies on the axis.
    pub(super) fn holds(&self, figure: f64) -> bool {
        (self.low..=self.high).contains(&figure)
    }
}

/// The smallest round step that is at least `width`.
fn step(width: f64) -> f64 {
    let ten = 10f64.powf(width.log10().floor());
    let steps = STEPS.iter().map(|step| step * ten);
    steps
        .chain([10.0 * ten])
        .find(|step| *step >= width * (1.0 - 1e-9))
        .unwrap_or(10.0 * ten)
}

/// The label of a tick, with as many decimals as the step between `ticks` needs.
pub(super) fn tick(figure: f64, ticks: &[f64]) -> String {
    let step = match ticks {
        [first, second, ..] => (second - first).abs(),
        _ => 1.0,
    };
    let digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{:.digits$}", figure + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_axis_has_its_ticks_at_round_figures() {
        let (scale, ticks) = Scale::linear(4.0, 10.0, (0.0, 600.0), 6);
        assert_eq!(ticks, [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        assert!((scale.at(7.0) - 300.0).abs() < 1e-9);
        let (_, ticks) = Scale::linear(4.7, 9.9, (0.0, 600.0), 3);
        assert_eq!(ticks, [6.0, 8.0]);
        assert_eq!(tick(0.1 + 0.2, &[0.0, 0.1]), "0.3");
    }

    #[test]
    fn figures_all_alike_still_have_an_axis() {
        for figure in [0.0, 5.0, 1e-12] {
            let (scale, ticks) = Scale::linear(figure, figure, (0.0, 100.0), 5);
            assert!(
                scale.at(figure).is_finite() && !ticks.is_empty(),
                "{figure}"
            );
        }
    }

    #[test]
    fn a_logarithmic_axis_has_its_ticks_at_round_figures_that_do_not_touch() {
        for (low, high) in [
            (10.0, 100_000.0),
            (31.0, 52.0),
            (7.0, 7.0),
            (2.4, 2.6),
            (0.5, 1e8),
        ] {
            let (scale, ticks) = Scale::decades(low, high, (0.0, 600.0), 46.0);
            assert!(!ticks.is_empty(), "{low} to {high}");
            let places: Vec<f64> = ticks.iter().map(|tick| scale.at(*tick)).collect();
            assert!(
                places.windows(2).all(|two| two[1] - two[0] >= 46.0),
                "{ticks:?}"
            );
            assert!(scale.holds(low) && scale.holds(high));
        }
        let (scale, _) = Scale::decades(10.0, 1000.0, (0.0, 600.0), 46.0);
        assert!((scale.at(100.0) - 300.0).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_and_its_reciprocal_are_as_far_from_one() {
        let (scale, ticks) = Scale::ratios(0.25, 4.0, (0.0, 400.0), 40.0);
        assert!((scale.at(1.0) - 200.0).abs() < 1e-9);
        assert!((scale.at(2.0) + scale.at(0.5) - 400.0).abs() < 1e-9);
        assert!(
            ticks.contains(&1.0)
                && ticks
                    .windows(2)
                    .all(|t| scale.at(t[1]) - scale.at(t[0]) >= 40.0)
        );
        assert!(!scale.holds(5.0) && scale.at(5.0) <= 400.0);
    }
}
