//! Figures as they stand in tables.

use wirecost_stats::PairedRatio;

/// Three digits that matter.
pub fn short(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// `1.012 [1.003, 1.021]`: a ratio and its interval, `-` for what there is not.
pub fn interval(ratio: &PairedRatio) -> String {
    let decimals = if ratio.high.is_some_and(|high| high >= 10.0) {
        1
    } else {
        3
    };
    let number = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
    };
    format!(
        "{} [{}, {}]",
        number(ratio.ratio),
        number(ratio.low),
        number(ratio.high)
    )
}

/// Without the blanks that padding leaves at the ends of lines.
pub fn trim(text: &str) -> String {
    let mut trimmed = String::with_capacity(text.len());
    for line in text.lines() {
        trimmed.push_str(line.trim_end());
        trimmed.push('\n');
    }
    trimmed
}
