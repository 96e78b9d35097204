//! A line split into words as a POSIX shell does it (XCU 2.2, "Quoting"), and nothing else of a shell: no variables,
//! no patterns, no operators.

/// Where a line's quoting does not end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unclosed {
    /// A quote, and the byte at which it opens.
    Quote(char, usize),
    /// A backslash at the end, and its byte.
    Backslash(usize),
}

/// The words of a line, quotes and backslashes taken off.
///
/// # Errors
/// A quote that is not closed, or a backslash with nothing behind it.
pub fn split_words(line: &str) -> Result<Vec<String>, Unclosed> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.char_indices();
    while let Some((at, next)) = rest.next() {
        match next {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some((_, '\'')) => break,
                        Some((_, inside)) => word.push(inside),
                        None => return Err(Unclosed::Quote('\'', at)),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        Some((_, '"')) => break,
                        Some((_, '\\')) => match rest.next() {
                            Some((_, '\n')) => {}
                            // Only before these is it a quote of its own.
                            Some((_, quoted @ ('$' | '`' | '"' | '\\'))) => word.push(quoted),
                            Some((_, other)) => word.extend(['\\', other]),
                            None => return Err(Unclosed::Quote('"', at)),
                        },
                        Some((_, inside)) => word.push(inside),
                        None => return Err(Unclosed::Quote('"', at)),
                    }
                }
            }
            '\\' => match rest.next() {
                Some((_, '\n')) => {}
                Some((_, quoted)) => word.get_or_insert_default().push(quoted),
                None => return Err(Unclosed::Backslash(at)),
            },
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}
