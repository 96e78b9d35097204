//! Splits a line into words by the quoting rules of a POSIX shell (XCU 2.2, "Quoting"); nothing else of a shell is
//! there: no variables, no patterns, no operators.

/// Quoting that a line leaves open, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnclosedQuote {
    /// A quote, and the byte at which it opens.
    Quote(char, usize),
    /// A backslash at the end of the line, and its byte.
    Backslash(usize),
}

/// The words of a line, with quotes and backslashes removed.
///
/// # Errors
/// A quote that is not closed, or a backslash with nothing behind it.
pub fn split_words(line: &str) -> Result<Vec<String>, UnclosedQuote> {
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
                        None => return Err(UnclosedQuote::Quote('\'', at)),
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
                            // Inside double quotes a backslash quotes only these characters.
                            Some((_, quoted @ ('$' | '`' | '"' | '\\'))) => word.push(quoted),
                            Some((_, other)) => word.extend(['\\', other]),
                            None => return Err(UnclosedQuote::Quote('"', at)),
                        },
                        Some((_, inside)) => word.push(inside),
                        None => return Err(UnclosedQuote::Quote('"', at)),
                    }
                }
            }
            '\\' => match rest.next() {
                Some((_, '\n')) => {}
                Some((_, quoted)) => word.get_or_insert_default().push(quoted),
                None => return Err(UnclosedQuote::Backslash(at)),
            },
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}
