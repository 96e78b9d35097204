//! Parts that charts of effects have in common: the band of changes that are not worth it, the grid of ratios, the
//! arrow at the end of an interval.

use wirecost_stats::Margin;

use super::scale::Scale;
use super::svg::{Svg, points};

/// Draws the band of `margin` and a line at each tick from `top` to `bottom`, with the tick's ratio `below` pixels
/// under the line.
pub(super) fn grid(
    svg: &mut Svg,
    scale: &Scale,
    ticks: &[f64],
    margin: Margin,
    (top, bottom): (f64, f64),
    below: f64,
) {
    let (left, right) = (scale.at(margin.low), scale.at(margin.high));
    let band = svg.element("rect").class("band");
    let band = band.number("x", left).number("y", top);
    band.number("width", right - left)
        .number("height", bottom - top)
        .end();
    for &tick in ticks {
        let x = scale.at(tick);
        let class = if (tick - 1.0).abs() < 1e-9 {
            "one"
        } else {
            "grid"
        };
        svg.line(class, (x, top), (x, bottom));
        svg.text("tick", "middle", (x, bottom + below), &format!("×{tick}"));
    }
}

/// Draws an arrow at the end of the axis where an interval continues beyond it. `length` is negative towards the left;
/// `half` is half of the arrow's height.
pub(super) fn arrow(svg: &mut Svg, (x, y): (f64, f64), (length, half): (f64, f64)) {
    let arrow = points([(x + length, y), (x, y - half), (x, y + half)]);
    svg.element("polygon")
        .class("arrow")
        .attribute("points", &arrow)
        .end();
}
