//! Text for a terminal, wrapped between words, with or without colour.

use unicode_width::UnicodeWidthChar;

use super::Terminal;
use crate::render::visible::visible;

/// Highlighting of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Bold,
    Dim,
    Good,
    Bad,
    Better,
    Worse,
}

impl Style {
    const ALL: [Self; 6] = [
        Self::Bold,
        Self::Dim,
        Self::Good,
        Self::Bad,
        Self::Better,
        Self::Worse,
    ];

    /// The style's SGR parameters (ECMA-48, 8.3.117).
    const fn sgr(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Good => "1;32",
            Self::Bad => "1;31",
            Self::Better => "32",
            Self::Worse => "33",
        }
    }
}

/// Represents a space at which no line is broken. Not U+00A0, which may occur in a text.
const GLUE: char = '\u{1f}';

const HANGING: &str = "  ";

/// The text printed so far, and how to print.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    width: usize,
    colour: bool,
    ascii: bool,
}

impl Page {
    pub(super) fn new(options: Terminal) -> Self {
        Self {
            text: String::new(),
            width: options.width.max(40),
            colour: options.colour,
            ascii: options.ascii,
        }
    }

    /// Whether signs and rules are ASCII.
    pub(super) const fn ascii(&self) -> bool {
        self.ascii
    }

    pub(super) const fn width(&self) -> usize {
        self.width
    }

    /// A piece of text in a style, if colour is wanted. No line is broken within it.
    pub(super) fn paint(&self, style: Style, text: &str) -> String {
        if self.colour {
            nonbreaking(&format!("\x1b[{}m{text}\x1b[0m", style.sgr()))
        } else {
            nonbreaking(text)
        }
    }

    /// A text in a style, word by word, so that lines may break between words.
    pub(super) fn paint_words(&self, style: Style, text: &str) -> String {
        let words: Vec<String> = text
            .split(' ')
            .map(|word| self.paint(style, word))
            .collect();
        words.join(" ")
    }

    /// Adds an empty line, unless there is one.
    pub(super) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.gap();
        let text = self.paint(Style::Bold, text);
        self.paragraph(&text);
    }

    /// Adds a line without wrapping it; spaces at its end are removed.
    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// Adds a wrapped paragraph, its second and further lines indented.
    pub(super) fn paragraph(&mut self, text: &str) {
        let room = self.width - HANGING.len();
        // A glued text that is wider than a line is broken all the same.
        let words = text.split(' ').flat_map(|word| {
            let fits = visible_width(word) <= room;
            word.split(move |c| c == GLUE && !fits)
        });
        let mut column = 0;
        for word in words.filter(|word| !word.is_empty()) {
            let width = visible_width(word);
            if column > 0 && column + 1 + width > self.width {
                self.text.push('\n');
                self.text.push_str(HANGING);
                column = HANGING.len() + width;
            } else {
                let space = usize::from(column > 0);
                self.text.push_str(&" "[..space]);
                column += space + width;
            }
            self.text.push_str(word);
        }
        self.text.push('\n');
    }

    pub(super) fn finish(self) -> String {
        let mut text = self.text.trim_end().replace(GLUE, " ") + "\n";
        if self.ascii {
            text = text.replace('\u{b1}', "+-").replace('\u{d7}', "x");
        }
        if !self.colour {
            return visible(&text).into_owned();
        }
        // An escape sequence that is not one of `Style` comes from a text of the record, and is made visible.
        let mut pieces = text.split(ESCAPE);
        let mut shown = visible(pieces.next().unwrap_or_default()).into_owned();
        for piece in pieces {
            let ours = sequence(piece).unwrap_or_default();
            let escape = if ours.is_empty() {
                visible(ESCAPE)
            } else {
                ESCAPE.into()
            };
            shown.extend([&escape, ours, &visible(&piece[ours.len()..])]);
        }
        shown
    }
}

const ESCAPE: &str = "\x1b";

/// The rest of one of the sequences of [`Style`], behind its ESC, at the beginning of a text.
fn sequence(text: &str) -> Option<&str> {
    let end = text.strip_prefix('[')?.find('m')? + 2;
    let parameters = &text[1..end - 1];
    let ours = |style: &Style| style.sgr() == parameters;
    (parameters == "0" || Style::ALL.iter().any(ours)).then(|| &text[..end])
}

/// A piece of text at whose spaces no line is broken.
pub(super) fn nonbreaking(text: &str) -> String {
    text.replace(' ', &GLUE.to_string())
}

/// Width of a text on a terminal, columns, without SGR sequences.
pub(super) fn visible_width(text: &str) -> usize {
    let mut width = 0;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().find(|&c| c == 'm');
        } else {
            width += c.width().unwrap_or(1);
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(colour: bool) -> Page {
        Page::new(Terminal {
            width: 40,
            colour,
            ..Terminal::default()
        })
    }

    #[test]
    fn lines_break_at_words_and_hang() {
        let mut page = page(false);
        page.paragraph("one two three four five six seven eight nine ten");
        assert_eq!(
            page.finish(),
            "one two three four five six seven eight\n  nine ten\n"
        );
    }

    #[test]
    fn what_is_glued_stays_together_and_colour_takes_no_room() {
        for colour in [false, true] {
            let mut page = page(colour);
            let verdict = page.paint(Style::Good, "pays a lot");
            page.paragraph(&format!("a line of some thirty-two letters {verdict}"));
            let text = page.finish();
            assert!(text.contains("pays a lot"), "{text}");
            assert_eq!(text.lines().count(), 2);
            assert_eq!(text.contains('\x1b'), colour);
        }
    }
}
