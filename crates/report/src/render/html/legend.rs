//! Signs of samples and figures that charts have in common, and their legend.

use super::cells::State;
use super::svg::{Element, Svg, points, width_of};

/// A sign of a legend.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sign {
    Sample(State),
    Median,
    Interval,
    Limit,
    Published,
    Class(&'static str),
}

/// Height of a legend's line.
pub(super) const LINE: f64 = 22.0;

/// Draws a sample as a circle, which the style sheet makes hollow where it is marked; an invalid one as a cross.
pub(super) fn sample(svg: &mut Svg, state: State, at: (f64, f64), radius: f64) -> Element<'_> {
    let (x, y) = at;
    match state {
        State::Invalid => {
            let r = radius;
            let d = format!(
                "M{}L{}M{}L{}",
                points([(x - r, y - r)]),
                points([(x + r, y + r)]),
                points([(x - r, y + r)]),
                points([(x + r, y - r)])
            );
            svg.element("path")
                .class("sample invalid")
                .attribute("d", &d)
        }
        State::Valid | State::Marked => {
            let class = match state {
                State::Marked => "sample marked",
                _ => "sample",
            };
            let circle = svg.element("circle").class(class);
            circle.number("cx", x).number("cy", y).number("r", radius)
        }
    }
}

/// Draws a diamond, the sign of a published figure.
pub(super) fn diamond(svg: &mut Svg, at: (f64, f64)) -> Element<'_> {
    let ((x, y), r) = (at, 5.0);
    let corners = points([(x, y - r), (x + r, y), (x, y + r), (x - r, y)]);
    svg.element("polygon")
        .class("published")
        .attribute("points", &corners)
}

/// Draws a legend in as many lines as it needs, and returns its height in pixels.
pub(super) fn draw(svg: &mut Svg, left: f64, width: f64, signs: &[(Sign, &str)]) -> f64 {
    let (mut x, mut y) = (left, LINE / 2.0);
    for (sign, text) in signs {
        let wide = 22.0 + width_of(text) + 18.0;
        if x > left && x + wide > left + width {
            (x, y) = (left, y + LINE);
        }
        let at = (x + 8.0, y);
        match sign {
            Sign::Sample(state) => sample(svg, *state, at, 3.5).end(),
            Sign::Median => svg.line("median", (at.0, y - 8.0), (at.0, y + 8.0)),
            Sign::Interval => {
                let bar = svg.element("rect").class("interval").number("x", x);
                let bar = bar.number("y", y - 6.0).number("width", 16.0);
                bar.number("height", 12.0).end();
            }
            Sign::Limit => svg.line("limit", (at.0, y - 8.0), (at.0, y + 8.0)),
            Sign::Published => diamond(svg, at).end(),
            Sign::Class(class) => {
                let bar = svg.element("rect").class(class).number("x", x + 2.0);
                let bar = bar.number("y", y - 6.0).number("width", 12.0);
                bar.number("height", 12.0).end();
            }
        }
        svg.text("key", "start", (x + 22.0, y + 4.5), text);
        x += wide;
    }
    y + LINE / 2.0
}
