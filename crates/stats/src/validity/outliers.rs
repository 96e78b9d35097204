//! Finds outliers; they are named, never removed.

use serde::Serialize;

use crate::bootstrap::quantile;

/// Modified z-score above which a value is called an outlier: Iglewicz and Hoaglin, "How to detect
/// and handle outliers", ASQC Basic References in Quality Control 16 (1993), page 12.
pub const MODIFIED_Z: f64 = 3.5;

/// Ratio of a normal distribution's median absolute deviation to its standard deviation (ibid.).
const NORMAL_MAD: f64 = 0.6745;

/// Ratio of a normal distribution's standard deviation to its mean absolute deviation, which is
/// used where more than half of the values are equal (ibid.): the root of pi / 2.
const NORMAL_MEAN_AD: f64 = 1.253_314;

/// Values below which an outlier cannot be distinguished from the spread.
const MIN_VALUES: usize = 6;

/// A value far from the others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Outlier {
    /// Index of the value in the input.
    pub index: usize,
    /// Modified z-score: negative below the median.
    pub z: f64,
}

/// The values whose modified z-score exceeds [`MODIFIED_Z`] in magnitude. Empty below six values.
pub fn outliers(values: &[f64]) -> Vec<Outlier> {
    if values.len() < MIN_VALUES {
        return Vec::new();
    }
    let median = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        quantile(&values, 0.5)
    };
    let centre = median(values.to_vec());
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    let mean = deviations.iter().sum::<f64>() / values.len() as f64;
    let mad = median(deviations);
    let unit = if mad > 0.0 {
        mad / NORMAL_MAD
    } else {
        mean * NORMAL_MEAN_AD
    };
    values
        .iter()
        .enumerate()
        .map(|(index, value)| Outlier {
            index,
            z: (value - centre) / unit,
        })
        .filter(|outlier| outlier.z.abs() > MODIFIED_Z)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_one_that_is_far_is_named() {
        let found = outliers(&[1.0, 1.1, 0.9, 1.05, 0.5, 0.95, 1.0]);
        assert_eq!(found.len(), 1);
        assert!(found[0].index == 4 && found[0].z < -3.5);
    }

    #[test]
    fn equal_values_have_none_and_one_other_among_many_equal_is_one() {
        assert!(outliers(&[1.0; 9]).is_empty());
        let mut values = [1.0; 9];
        values[2] = 2.0;
        assert_eq!(outliers(&values)[0].index, 2);
        assert!(outliers(&[1.0, 9.0]).is_empty());
    }

    proptest! {
        #[test]
        fn scale_and_place_do_not_matter(
            values in proptest::collection::vec(-1.0f64..1.0, 6..30), scale in 0.5f64..4.0, by in -5.0f64..5.0,
        ) {
            let moved: Vec<f64> = values.iter().map(|v| v * scale + by).collect();
            let (a, b) = (outliers(&values), outliers(&moved));
            let index = |found: &[Outlier]| found.iter().map(|o| o.index).collect::<Vec<_>>();
            // A score within rounding of the threshold may fall either way.
            if a.iter().chain(&b).all(|o| (o.z.abs() - MODIFIED_Z).abs() > 1e-6) {
                prop_assert_eq!(index(&a), index(&b));
            }
        }
    }
}
