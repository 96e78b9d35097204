//! Makes characters of untrusted text visible that would control a terminal or change the direction of
//! a line.

use std::borrow::Cow;

/// Replaces C0 control characters and DEL by their pictures (Unicode block 2400), and C1 control
/// characters and those that change the direction of text (UAX #9) by U+FFFD. Keeps line ends and tabs;
/// removes CR before LF.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| sign(c).is_some()) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    Cow::Owned(text.chars().map(|c| sign(c).unwrap_or(c)).collect())
}

fn sign(c: char) -> Option<char> {
    match c {
        '\n' | '\t' => None,
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)),
        '\u{7f}' => Some('\u{2421}'),
        '\u{80}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => Some('\u{fffd}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_turns_a_line_is_shown() {
        assert_eq!(visible("plain é\n\ttext"), "plain é\n\ttext");
        assert_eq!(visible("\u{1b}[31mred"), "␛[31mred");
        assert_eq!(visible("a\u{202e}b\u{9b}c\r\nd"), "a\u{fffd}b\u{fffd}c\nd");
    }
}
