//! Writes SVG; every attribute and text is escaped here.

use std::fmt::Write as _;

use crate::render::visible::visible;

/// Average width of a letter in the charts' text of 13 pixels, pixels.
const LETTER: f64 = 6.5;

/// Average width of a letter in text of 10.5 pixels, pixels.
const ROW_LETTER: f64 = 5.4;

/// Markup of a picture. Nothing gets into it unescaped.
#[derive(Debug, Default)]
pub(super) struct Svg(String);

/// An element whose attributes are being written.
#[must_use]
pub(super) struct Element<'a> {
    out: &'a mut String,
    name: &'static str,
}

impl Svg {
    /// Begins an element. It ends with [`Element::end`], [`Element::text`] or [`Element::titled`].
    pub(super) fn element(&mut self, name: &'static str) -> Element<'_> {
        self.0.push('<');
        self.0.push_str(name);
        Element {
            out: &mut self.0,
            name,
        }
    }

    /// Draws a line.
    pub(super) fn line(&mut self, class: &'static str, from: (f64, f64), to: (f64, f64)) {
        let line = self.element("line").class(class);
        let line = line.number("x1", from.0).number("y1", from.1);
        line.number("x2", to.0).number("y2", to.1).end();
    }

    /// Draws text that begins, ends or has its middle (`anchor`: `start`, `end`, `middle`) at a point.
    pub(super) fn text(&mut self, class: &'static str, anchor: &str, at: (f64, f64), text: &str) {
        let element = self.element("text").class(class);
        let element = element.number("x", at.0).number("y", at.1);
        element.attribute("text-anchor", anchor).text(text);
    }

    /// Draws a label in at most two lines, vertically centred at a point; what does not fit is cut.
    pub(super) fn label(&mut self, at: (f64, f64), width: f64, label: &str) {
        let lines = wrap(label, (width / LETTER) as usize);
        let top = at.1 + 4.5 - (lines.len() - 1) as f64 * 7.5;
        for (line, text) in lines.iter().enumerate() {
            self.text("label", "start", (at.0, top + line as f64 * 15.0), text);
        }
    }

    /// Opens a group, of the given cell if there is one.
    pub(super) fn open(&mut self, class: &str, cell: Option<u32>) {
        self.0.push_str("<g class=\"");
        escape(&mut self.0, class);
        self.0.push('"');
        if let Some(cell) = cell {
            // Writing to a string does not fail.
            let _ = write!(self.0, " data-cell=\"{cell}\"");
        }
        self.0.push('>');
    }

    /// Opens a group with attributes.
    pub(super) fn open_with(&mut self, attributes: &[(&'static str, &str)]) {
        let element = self.element("g");
        let element = attributes.iter().fold(element, |element, &(name, value)| {
            element.attribute(name, value)
        });
        element.out.push('>');
    }

    /// Draws a label in one line: the first of `labels` that fits, else the last, cut.
    pub(super) fn row_label(&mut self, at: (f64, f64), width: f64, labels: &[String]) {
        let letters = (width / ROW_LETTER) as usize;
        let fits = labels.iter().find(|label| label.chars().count() <= letters);
        let text = fits.cloned().unwrap_or_else(|| {
            let last = labels.last().map_or("", String::as_str);
            last.chars().take(letters - 1).collect::<String>() + "…"
        });
        self.text("row", "start", at, &text);
    }

    /// Closes the group.
    pub(super) fn close(&mut self) {
        self.0.push_str("</g>");
    }

    /// The whole picture. For screen readers, the text with the id `labelled_by` is its label.
    pub(super) fn finish(self, class: &str, width: f64, height: f64, labelled_by: &str) -> String {
        format!(
            "<svg class=\"{class}\" role=\"img\" aria-labelledby=\"{labelled_by}\" viewBox=\"0 0 {} {}\" \
             xmlns=\"http://www.w3.org/2000/svg\">{}</svg>",
            short(width),
            short(height),
            self.0
        )
    }
}

impl Element<'_> {
    pub(super) fn attribute(self, name: &'static str, value: &str) -> Self {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        escape(self.out, value);
        self.out.push('"');
        self
    }

    pub(super) fn class(self, class: &str) -> Self {
        self.attribute("class", class)
    }

    pub(super) fn number(self, name: &'static str, value: f64) -> Self {
        let value = short(value);
        self.attribute(name, &value)
    }

    /// Ends the element without content.
    pub(super) fn end(self) {
        self.out.push_str("/>");
    }

    /// Ends the element with a text.
    pub(super) fn text(self, text: &str) {
        self.out.push('>');
        escape(self.out, text);
        self.close();
    }

    /// Ends the element with a title, which browsers show as a tooltip.
    pub(super) fn titled(self, title: &str) {
        self.out.push_str("><title>");
        escape(self.out, title);
        self.out.push_str("</title>");
        self.close();
    }

    fn close(self) {
        self.out.push_str("</");
        self.out.push_str(self.name);
        self.out.push('>');
    }
}

/// Points in the form of `points` and `d` attributes.
pub(super) fn points(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let points = points.into_iter();
    let pairs: Vec<String> = points
        .map(|(x, y)| format!("{},{}", short(x), short(y)))
        .collect();
    pairs.join(" ")
}

/// A coordinate, rounded to tenths of a pixel.
fn short(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    // No negative zero.
    format!("{}", tenths + 0.0)
}

/// Escapes for text and for attributes in quotes (HTML Living Standard, 13.3).
pub(super) fn escape(out: &mut String, text: &str) {
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// Wraps a text at spaces into at most two lines of `letters` letters; what does not fit is replaced by an ellipsis.
fn wrap(text: &str, letters: usize) -> Vec<String> {
    let letters = letters.max(8);
    let fits = |text: &str| text.chars().count() <= letters;
    if fits(text) {
        return vec![text.to_owned()];
    }
    let mut first = String::new();
    let mut rest = text;
    while let Some((word, after)) = rest.split_once(' ') {
        let longer = format!("{first}{}{word}", if first.is_empty() { "" } else { " " });
        if !fits(&longer) {
            break;
        }
        (first, rest) = (longer, after);
    }
    let cut = |text: &str| {
        if fits(text) {
            text.to_owned()
        } else {
            let kept: String = text.chars().take(letters - 1).collect();
            kept + "…"
        }
    };
    if first.is_empty() {
        vec![cut(rest)]
    } else {
        vec![first, cut(rest)]
    }
}

/// Approximate width of a text of 13 pixels, pixels.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_and_attribute_is_escaped() {
        let mut svg = Svg::default();
        svg.text("t", "\"><script>", (0.0, 1.25), "</text>&\u{1b}");
        let text = svg.finish("c", 10.0, 5.0, "id");
        assert!(
            text.contains("text-anchor=\"&quot;&gt;&lt;script&gt;\""),
            "{text}"
        );
        assert!(text.contains(">&lt;/text&gt;&amp;␛</text>"), "{text}");
    }

    #[test]
    fn labels_break_at_spaces_and_end_in_an_ellipsis() {
        assert_eq!(wrap("short", 10), ["short"]);
        assert_eq!(
            wrap("guest MTU 8900, vxlan", 15),
            ["guest MTU 8900,", "vxlan"]
        );
        assert_eq!(wrap("one two three four five", 9), ["one two", "three fo…"]);
        assert_eq!(wrap("abcdefghijklmnop", 9), ["abcdefgh…"]);
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(points([(1.0, 2.04), (-0.01, 3.26)]), "1,2 0,3.3");
    }
}
