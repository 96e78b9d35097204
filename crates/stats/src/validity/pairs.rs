//! Statistics over all pairs of many points, without enumerating the pairs: 30,000 points have 450 million.

use std::cmp::Ordering;

/// Kendall's score and the numbers of ties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Score {
    /// Pairs that rise minus pairs that fall.
    pub(super) difference: i64,
    /// Pairs with the same x.
    pub(super) tied_x: i64,
    /// Pairs with the same y.
    pub(super) tied_y: i64,
}

/// Kendall's score by sorting (Knight, "A computer method for calculating Kendall's tau with ungrouped data",
/// JASA 61 (1966) 436).
pub(super) fn score(points: &[(f64, f64)]) -> Score {
    let n = points.len();
    // Adding 0 turns -0 into 0.
    let mut sorted: Vec<_> = points.iter().map(|(x, y)| (x + 0.0, y + 0.0)).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let tied_x = tied(&sorted, |a, b| same(a.0, b.0));
    let tied_both = tied(&sorted, |a, b| same(a.0, b.0) && same(a.1, b.1));
    let mut ys: Vec<f64> = sorted.iter().map(|point| point.1).collect();
    let falling = inversions(&mut ys, |earlier, later| earlier > later);
    let tied_y = tied(&ys, |a, b| same(*a, *b));
    let pairs = (n * n.saturating_sub(1) / 2) as i64;
    Score {
        difference: pairs - tied_x - tied_y + tied_both - 2 * falling,
        tied_x,
        tied_y,
    }
}

/// The median of all slopes between points of different x, accurate to 1e-12 of the overall slope.
/// Found by bisection: the slopes up to a value are the inversions of the residuals from a line of
/// that slope.
pub(super) fn median_slope(points: &[(f64, f64)]) -> f64 {
    let mut sorted = points.to_vec();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(of);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    };
    let ((left, right), (bottom, top)) = (ends(|point| point.0), ends(|point| point.1));
    let gaps = sorted.windows(2).map(|pair| pair[1].0 - pair[0].0);
    let narrowest = gaps.filter(|gap| *gap > 0.0).fold(f64::INFINITY, f64::min);
    let slopes =
        (points.len() * (points.len() - 1) / 2) as i64 - tied(&sorted, |a, b| same(a.0, b.0));
    let steepest = (top - bottom) / narrowest;
    let enough = (top - bottom) / (right - left) * 1e-12;
    let (mut low, mut high) = (-steepest, steepest);
    while high - low > enough {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if slopes_up_to(&sorted, middle) * 2 >= slopes {
            high = middle;
        } else {
            low = middle;
        }
    }
    f64::midpoint(low, high)
}

/// Number of pairs of points, sorted by x, whose slope is `slope` or less.
fn slopes_up_to(sorted: &[(f64, f64)], slope: f64) -> i64 {
    let mut above: Vec<f64> = sorted.iter().map(|(x, y)| y - slope * x).collect();
    let mut start = 0;
    let mut of_no_slope = 0;
    for column in sorted.chunk_by(|a, b| same(a.0, b.0)) {
        let column = &mut above[start..start + column.len()];
        start += column.len();
        column.sort_unstable_by(f64::total_cmp);
        of_no_slope += tied(column, |a, b| same(*a, *b));
    }
    inversions(&mut above, |earlier, later| earlier >= later) - of_no_slope
}

fn same(one: f64, other: f64) -> bool {
    one.partial_cmp(&other) == Some(Ordering::Equal)
}

/// Number of pairs that are the same, in a slice in which equal values stand next to each other.
fn tied<T>(sorted: &[T], same: impl Fn(&T, &T) -> bool) -> i64 {
    let groups = sorted.chunk_by(same).map(|group| group.len() as i64);
    groups.map(|length| length * (length - 1) / 2).sum()
}

/// Number of pairs for which `out_of_order(earlier, later)` holds, counted while merging; `values`
/// are sorted afterwards.
fn inversions(values: &mut [f64], out_of_order: impl Fn(f64, f64) -> bool + Copy) -> i64 {
    let mut scratch = values.to_vec();
    let mut count = 0;
    let mut width = 1;
    while width < values.len() {
        for start in (0..values.len()).step_by(2 * width) {
            let middle = (start + width).min(values.len());
            let end = (start + 2 * width).min(values.len());
            count += merge(
                &values[start..middle],
                &values[middle..end],
                &mut scratch[start..end],
                out_of_order,
            );
        }
        values.copy_from_slice(&scratch);
        width *= 2;
    }
    count
}

fn merge(
    left: &[f64],
    right: &[f64],
    out: &mut [f64],
    out_of_order: impl Fn(f64, f64) -> bool,
) -> i64 {
    // Both are sorted: where a left value is out of order with `later`, so are all left values after it.
    let (mut count, mut from) = (0, 0);
    for &later in right {
        while from < left.len() && !out_of_order(left[from], later) {
            from += 1;
        }
        count += (left.len() - from) as i64;
    }
    let (mut i, mut j) = (0, 0);
    for slot in out {
        let take_left = j == right.len()
            || (i < left.len() && left[i].total_cmp(&right[j]) != Ordering::Greater);
        *slot = if take_left { left[i] } else { right[j] };
        i += usize::from(take_left);
        j += usize::from(!take_left);
    }
    count
}
