//! Samples of two cells as a noisy machine gives them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// How one sample varies around its cell's true figure. The number is the relative standard
/// deviation of its core.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Noise {
    /// Normal.
    Normal(f64),
    /// The slow-down is log-normal (shape 1: skewness 6), the deviation of its logarithm the number.
    LogNormal(f64),
    /// Normal, a random walk from round to round with steps of that size, and a slope within each
    /// round of twice that size from its first to its last sample.
    Drifting(f64),
    /// Three in ten samples are slow by four deviations, and one in twenty is an outlier that is
    /// slow by ten to forty.
    Bimodal(f64),
    /// The second cell as [`Noise::Bimodal`], the first normal.
    Lopsided(f64),
}

impl Noise {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Normal(sd) => format!("normal {:.0} %", sd * 100.0),
            Self::LogNormal(sd) => format!("log-normal {:.0} %", sd * 100.0),
            Self::Drifting(sd) => format!("drifting {:.0} %", sd * 100.0),
            Self::Bimodal(sd) => format!("bimodal, outliers {:.0} %", sd * 100.0),
            Self::Lopsided(sd) => format!("that in one cell {:.0} %", sd * 100.0),
        }
    }

    /// The noise of either cell. The mean logarithm of both is that of no noise.
    fn of_cell(self, second: bool, numbers: &mut Numbers) -> f64 {
        match (self, second) {
            (Self::Lopsided(sd), false) => sd * numbers.normal(),
            // Three in ten by 4, one in twenty by 25 on average.
            (Self::Lopsided(sd), true) => Self::Bimodal(sd).sample(numbers) + 2.45 * sd,
            _ => self.sample(numbers),
        }
    }

    pub(crate) fn sample(self, numbers: &mut Numbers) -> f64 {
        match self {
            Self::Normal(sd) | Self::Drifting(sd) => (1.0 + sd * numbers.normal()).max(0.01).ln(),
            Self::LogNormal(sd) => {
                // Mean and deviation of a log-normal of shape 1.
                let (mean, deviation) = (0.5f64.exp(), (1f64.exp() * (1f64.exp() - 1.0)).sqrt());
                -sd * (numbers.normal().exp() - mean) / deviation
            }
            Self::Bimodal(sd) | Self::Lopsided(sd) => {
                let slow = if numbers.uniform() < 0.3 { 4.0 } else { 0.0 };
                let outlier = if numbers.uniform() < 0.05 {
                    10.0 + 30.0 * numbers.uniform()
                } else {
                    0.0
                };
                sd * (numbers.normal() - slow - outlier)
            }
        }
    }
}

/// Random numbers of one experiment: the stream `experiment` of the generator with `seed`.
pub(crate) struct Numbers(ChaCha8Rng);

impl Numbers {
    pub(crate) fn new(seed: u64, experiment: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(experiment);
        Self(generator)
    }

    /// Above 0 and below 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Box and Muller 1958.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Cells of a round; two of them are compared.
const CELLS: usize = 8;

/// The log ratios of `rounds` rounds in which the second cell is truly `ratio` times the first.
/// The order within a round is the program's own.
pub(crate) fn log_ratios(
    noise: Noise,
    ratio: f64,
    rounds: u32,
    seed: u64,
    numbers: &mut Numbers,
) -> Vec<f64> {
    let mut level = 0.0;
    (0..rounds)
        .map(|round| {
            let slope = match noise {
                Noise::Drifting(sd) => {
                    level += sd * numbers.normal();
                    2.0 * sd / (CELLS - 1) as f64
                }
                _ => 0.0,
            };
            let order = wirecost_stats::order(CELLS, round, seed);
            let position = |cell: usize| order.iter().position(|&c| c == cell).unwrap_or(0) as f64;
            let first = level + slope * position(0) + noise.of_cell(false, numbers);
            let second = level + slope * position(1) + noise.of_cell(true, numbers) + ratio.ln();
            second - first
        })
        .collect()
}
