//! Panels: small pictures of one cell each, with common axes.

use minijinja::Value;

use super::cells::CellView;
use super::chart::Panel;
use super::scale::{Scale, tick};
use super::strip::thinned;
use super::svg::Svg;
use crate::result::document::Document;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 118.0;

/// Most panels that one chart draws.
pub(super) const DRAWN: usize = 24;

/// The axes that all panels of a chart share.
#[derive(Debug)]
pub(super) struct Axes {
    pub(super) x: Scale,
    pub(super) y: Scale,
    across: Vec<f64>,
    up: Vec<f64>,
    unit: (&'static str, &'static str),
}

impl Axes {
    /// Axes over the ranges `x` and `y`, with the units of x and y.
    pub(super) fn new(x: (f64, f64), y: (f64, f64), unit: (&'static str, &'static str)) -> Self {
        let (x, across) = Scale::linear(x.0, x.1, (LEFT, WIDTH - 8.0), 4);
        let (y, up) = Scale::linear(y.0, y.1, (BOTTOM, 20.0), 4);
        Self {
            x,
            y,
            across,
            up,
            unit,
        }
    }

    /// A panel of one cell: the axes, and what `draw` adds.
    pub(super) fn panel(&self, chart: &str, cell: &CellView, draw: impl FnOnce(&mut Svg)) -> Panel {
        let mut svg = Svg::default();
        for &at in &self.up {
            let y = self.y.at(at);
            svg.line("grid", (LEFT, y), (WIDTH - 8.0, y));
            svg.text("tick", "end", (LEFT - 5.0, y + 4.0), &tick(at, &self.up));
        }
        for &at in &self.across {
            let x = self.x.at(at);
            svg.line("grid", (x, BOTTOM), (x, BOTTOM + 4.0));
            svg.text(
                "tick",
                "middle",
                (x, BOTTOM + 16.0),
                &tick(at, &self.across),
            );
        }
        svg.text("axis", "start", (0.0, 10.0), self.unit.1);
        svg.text("axis", "end", (WIDTH - 8.0, HEIGHT - 2.0), self.unit.0);
        draw(&mut svg);
        let id = format!("{chart}.{}", cell.result.cell);
        Panel {
            svg: Value::from_safe_string(svg.finish("small", WIDTH, HEIGHT, &id)),
            id,
            label: cell.label.clone(),
            cell: Some(cell.result.cell),
        }
    }

    /// Draws a horizontal line at a figure to compare with, if it is on the axis.
    pub(super) fn level(&self, svg: &mut Svg, class: &'static str, figure: f64) {
        if self.y.holds(figure) {
            let y = self.y.at(figure);
            svg.line(class, (LEFT, y), (WIDTH - 8.0, y));
        }
    }
}

/// A note where not every cell, or not every sample, is drawn.
pub(super) fn left_out(doc: &Document, drawn: &[&CellView], cells: usize) -> Option<String> {
    let of_cells = (cells > drawn.len()).then(|| {
        format!(
            "Drawn are the first {} of {cells} cells; the table has more.",
            drawn.len()
        )
    });
    let said: Vec<String> = of_cells.into_iter().chain(thinned(doc, drawn)).collect();
    (!said.is_empty()).then(|| said.join(" "))
}
