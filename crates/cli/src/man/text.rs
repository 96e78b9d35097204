//! Converts text to roff, with the macros that man(7) and mandoc(1) share.

use roff::{Inline, Roff, bold, roman};

/// The roff text of a page so far.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    /// Begins a page (`.TH`).
    pub(super) fn page(name: &str, section: u8) -> Self {
        let mut title = Roff::new();
        let version = concat!("wirecost ", env!("CARGO_PKG_VERSION"));
        let (name, section) = (name.to_uppercase(), section.to_string());
        // No date, so that the same program writes the same pages; the version tells their age.
        title.control("TH", [&*name, &section, "\"\"", version, "Wirecost Manual"]);
        Self(title.render())
    }

    pub(super) fn heading(&mut self, heading: &str) -> &mut Self {
        self.push(Roff::new().control("SH", [heading]))
    }

    /// Adds one line, as in NAME and SYNOPSIS.
    pub(super) fn line(&mut self, words: impl Into<Vec<Inline>>) -> &mut Self {
        self.push(Roff::new().text(words))
    }

    pub(super) fn paragraph(&mut self, words: &str) -> &mut Self {
        self.apart().push(Roff::new().text([roman(words)]))
    }

    /// Begins a paragraph (`.PP`), unless a heading precedes.
    fn apart(&mut self) -> &mut Self {
        let after_heading = self
            .0
            .lines()
            .last()
            .is_some_and(|line| line.starts_with(".SH"));
        if after_heading {
            return self;
        }
        self.push(Roff::new().control("PP", []))
    }

    /// Adds a term and its meaning (`.TP`).
    pub(super) fn item(&mut self, term: &str, meaning: &str) -> &mut Self {
        let mut item = Roff::new();
        self.push(
            item.control("TP", [])
                .text([bold(term)])
                .text([roman(meaning)]),
        )
    }

    /// Adds preformatted lines (`.EX`).
    pub(super) fn verbatim(&mut self, lines: &str) -> &mut Self {
        let mut block = Roff::new();
        block.control("EX", []);
        for line in lines.lines() {
            match line {
                "" => block.control("sp", []),
                // Protect backquotes, which `end` would turn into bold.
                line => block.text([roman(line.replace('`', GRAVE))]),
            };
        }
        self.apart().push(block.control("EE", []))
    }

    /// Adds the text of a help page: paragraphs, and text in columns as it is.
    pub(super) fn help(&mut self, words: &str) -> &mut Self {
        for part in words.split("\n\n").filter(|part| !part.trim().is_empty()) {
            let in_columns = part.lines().any(|line| line.trim_end().contains("  "));
            if in_columns {
                self.verbatim(part);
            } else {
                self.paragraph(&part.lines().collect::<Vec<_>>().join(" "));
            }
        }
        self
    }

    /// Adds rendered roff without its preamble.
    pub(super) fn roff(&mut self, rendered: &str) -> &mut Self {
        let body = rendered.lines().filter(|line| !is_preamble(line));
        for line in body {
            self.0.push_str(line);
            self.0.push('\n');
        }
        self
    }

    fn push(&mut self, roff: &Roff) -> &mut Self {
        self.roff(&roff.render())
    }

    /// The finished page: text in backquotes is bold.
    pub(super) fn end(&self) -> String {
        let mut page = String::with_capacity(self.0.len());
        for line in self.0.lines() {
            for (index, part) in line.split('`').enumerate() {
                match index {
                    0 => (),
                    index if index % 2 == 1 => page.push_str("\\fB"),
                    _ => page.push_str("\\fR"),
                }
                page.push_str(part);
            }
            page.push('\n');
        }
        page.replace(GRAVE, "\\(ga")
    }
}

/// A private-use character that stands for a literal backquote until the page is finished.
const GRAVE: &str = "\u{e000}";

/// Whether a line is of the preamble that defines the apostrophe string; one on a page is enough.
fn is_preamble(line: &str) -> bool {
    line.contains(".ds Aq")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_quotes_are_bold_in_words_and_kept_in_lines_as_they_are() {
        let mut text = Text::default();
        text.paragraph("Use `wirecost run`.")
            .verbatim("a: b  # `max`");
        insta::assert_snapshot!(text.end(), @r"
        .PP
        Use \fBwirecost run\fR.
        .PP
        .EX
        a: b  # \(gamax\(ga
        .EE
        ");
    }

    #[test]
    fn columns_of_a_help_text_stay_columns() {
        let mut text = Text::default();
        text.help("Words that\nflow.\n\nA name   what it is\nAnother  more");
        insta::assert_snapshot!(text.end(), @r"
        .PP
        Words that flow.
        .PP
        .EX
        A name   what it is
        Another  more
        .EE
        ");
    }

    #[test]
    fn nothing_that_begins_a_line_becomes_a_request() {
        let mut text = Text::default();
        text.paragraph(".de is a request").verbatim("'quoted'\n.x");
        insta::assert_snapshot!(text.end(), @r"
        .PP
        \&.de is a request
        .PP
        .EX
        \*(Aqquoted\*(Aq
        \&.x
        .EE
        ");
    }
}
