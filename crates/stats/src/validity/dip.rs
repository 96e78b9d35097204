//! Hartigan's dip: the distance of a sample from the nearest unimodal distribution.

/// The dip of the values: Hartigan and Hartigan, "The dip test of unimodality", Ann. Statist. 13
/// (1985) 70; computed as in Hartigan, "Computation of the dip statistic", Appl. Statist. 34 (1985)
/// 320. From `1 / (2 n)` to 1/4; `None` without a value.
pub fn dip(values: &[f64]) -> Option<f64> {
    let mut x = values.to_vec();
    x.sort_unstable_by(f64::total_cmp);
    let n = x.len();
    let (mut low, mut high) = (0, n.checked_sub(1)?);
    // Twice the dip in units of 1 / n, from the least that any step function has.
    let mut most = 1.0f64;
    if x[low] < x[high] {
        while low < high {
            let below = hull(&x, low, high, |turn| turn <= 0.0);
            let above = hull(&x, low, high, |turn| turn >= 0.0);
            let (distance, left, right) = widest(&x, &below, &above);
            if distance <= most {
                break;
            }
            let beside_left = fit(&x, &below, |end| end <= left, |gap| gap + 1.0);
            let beside_right = fit(&x, &above, |end| end > right, |gap| 1.0 - gap);
            most = most.max(beside_left).max(beside_right);
            if (left, right) == (low, high) {
                break;
            }
            (low, high) = (left, right);
        }
    }
    Some(most / (2.0 * n as f64))
}

/// Indices at which the hull of the points `(x[i], i)` from `low` to `high` touches them: the
/// greatest convex minorant if `drop` is true for clockwise turns, the least concave majorant if
/// for the others.
fn hull(x: &[f64], low: usize, high: usize, drop: impl Fn(f64) -> bool) -> Vec<usize> {
    let mut touching: Vec<usize> = vec![low];
    for i in low + 1..=high {
        while let [.., a, b] = touching[..] {
            let turn = (x[b] - x[a]) * (i - a) as f64 - (b - a) as f64 * (x[i] - x[a]);
            if !drop(turn) {
                break;
            }
            touching.pop();
        }
        touching.push(i);
    }
    touching
}

/// The index at `x[i]` on the straight line from touching point `a` to `b`; between equal values
/// the line is vertical, and the index is `i`.
fn line(x: &[f64], a: usize, b: usize, i: usize) -> f64 {
    if x[b] > x[a] {
        a as f64 + (b - a) as f64 * (x[i] - x[a]) / (x[b] - x[a])
    } else {
        i as f64
    }
}

/// The largest distance between the two hulls, and the modal interval that it bounds: from the
/// minorant's touching point at or before it to the majorant's at or after it.
fn widest(x: &[f64], below: &[usize], above: &[usize]) -> (f64, usize, usize) {
    let segment = |touching: &[usize], i: usize| {
        let end = touching.partition_point(|&t| t < i).max(1);
        (touching[end - 1], touching[end])
    };
    let mut best = (f64::NEG_INFINITY, 0, 0);
    for &i in below {
        let (a, b) = segment(above, i);
        let distance = line(x, a, b, i) - i as f64 + 1.0;
        if distance > best.0 {
            let right = if i == a { a } else { b };
            best = (distance, i, right);
        }
    }
    for &i in above {
        let (a, b) = segment(below, i);
        let distance = i as f64 - line(x, a, b, i) + 1.0;
        if distance > best.0 {
            let left = if i == b { b } else { a };
            best = (distance, left, i);
        }
    }
    best
}

/// The largest distance of the steps from a hull, over the segments for whose end `inside` is true.
fn fit(
    x: &[f64],
    touching: &[usize],
    inside: impl Fn(usize) -> bool,
    distance: impl Fn(f64) -> f64,
) -> f64 {
    touching
        .windows(2)
        .filter(|segment| inside(segment[1]))
        .flat_map(|segment| (segment[0]..=segment[1]).map(move |i| (segment, i)))
        .map(|(segment, i)| distance(i as f64 - line(x, segment[0], segment[1], i)))
        .fold(1.0, f64::max)
}

/// p that values from the uniform distribution, the worst case of one mode, have a dip this large;
/// between 0.001 and 0.5 by interpolation in the table below, clamped at its ends. `None` below 10 values.
///
/// For a distribution with tails, a normal one say, p is far too large: false alarms are then rare, and mild
/// bimodality is missed.
pub fn dip_p(dip: f64, n: usize) -> Option<f64> {
    let scaled = dip * (n as f64).sqrt();
    let at = TABLE.partition_point(|(size, _)| *size <= n);
    let (size, row) = TABLE.get(at.checked_sub(1)?)?;
    let (next_size, next) = TABLE.get(at).unwrap_or(&TABLE[at - 1]);
    let between = if next_size > size {
        (n - size) as f64 / (next_size - size) as f64
    } else {
        0.0
    };
    let quantile = |i: usize| row[i] + (next[i] - row[i]) * between;
    if scaled <= quantile(0) {
        return Some(TAILS[0]);
    }
    for i in 1..TAILS.len() {
        let (a, b) = (quantile(i - 1), quantile(i));
        if scaled <= b {
            let part = (scaled - a) / (b - a);
            return Some((TAILS[i - 1].ln() * (1.0 - part) + TAILS[i].ln() * part).exp());
        }
    }
    Some(TAILS[TAILS.len() - 1])
}

/// Upper tails of the columns of [`TABLE`].
const TAILS: [f64; 6] = [0.5, 0.1, 0.05, 0.01, 0.005, 0.001];

include!("dip_table.rs");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_points_apart_have_a_quarter() {
        assert_eq!(dip(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), Some(0.25));
        assert_eq!(dip(&[5.0; 8]), Some(1.0 / 16.0));
        assert_eq!(dip(&[]), None);
    }

    #[test]
    fn few_values_have_no_p() {
        assert_eq!(dip_p(0.2, 9), None);
        assert!(dip_p(0.25, 10).expect("enough") <= 0.01);
        assert_eq!(dip_p(0.01, 500), Some(0.5));
    }

    proptest! {
        #[test]
        fn scale_and_mirror_do_not_matter(values in proptest::collection::vec(-1.0f64..1.0, 2..40)) {
            let a = dip(&values).expect("values");
            let mirrored: Vec<f64> = values.iter().map(|v| -3.0 * v).collect();
            let b = dip(&mirrored).expect("values");
            prop_assert!((a - b).abs() < 1e-9, "{} {}", a, b);
            prop_assert!(a >= 0.5 / values.len() as f64 && a <= 0.25 + 1e-12);
        }

        #[test]
        fn p_falls_as_the_dip_grows(a in 0.01f64..0.25, b in 0.01f64..0.25, n in 10usize..300) {
            let (p, q) = (dip_p(a, n).expect("enough"), dip_p(b, n).expect("enough"));
            prop_assert!((p - q) * (b - a) >= 0.0);
        }
    }
}
