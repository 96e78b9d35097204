//! The paths of a source file, in `use` lists and in code, without what is compiled for tests only.

use std::collections::{BTreeMap, BTreeSet};

/// Names, one for each part of a path.
pub(crate) type Module = Vec<String>;

/// One file: its paths as they are written, and what names it imports.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) paths: BTreeSet<Module>,
    /// Name -> path that it stands for.
    pub(crate) names: BTreeMap<String, Module>,
    /// Modules in files of their own that are compiled for tests only.
    pub(crate) tests: BTreeSet<String>,
}

/// A name, or one sign, of which `::` is one; empty: a sign that no path has.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Sign(&'static str),
}

const SIGNS: &[&str] = &[
    "::", "{", "}", "(", ")", "[", "]", ",", ";", "*", "#", "!", "=",
];

/// Without comments, strings, numbers and other signs.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal(rest) {
            length
        } else if first.is_alphanumeric() || first == '_' {
            let is_part = |sign: char| sign.is_alphanumeric() || sign == '_';
            let length = rest.find(|sign| !is_part(sign)).unwrap_or(rest.len());
            tokens.push(Token::Name(rest[..length].to_owned()));
            length
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push(Token::Sign(sign));
            sign.len()
        } else {
            if !first.is_whitespace() {
                tokens.push(Token::Sign("")); // any other, which separates paths
            }
            first.len_utf8()
        };
        rest = &rest[skipped..];
    }
    tokens
}

/// The length of a string or character at the beginning.
fn literal(text: &str) -> Option<usize> {
    let start = text.trim_start_matches('b').trim_start_matches('c');
    let prefix = text.len() - start.len();
    if let Some(raw) = start.strip_prefix('r').filter(|_| prefix <= 1) {
        let quoted = raw.trim_start_matches('#');
        let end = format!("\"{}", "#".repeat(raw.len() - quoted.len()));
        if let Some(body) = quoted.strip_prefix('"') {
            return Some(text.len() - body.len() + body.find(&end)? + end.len());
        }
    }
    let quote = start
        .chars()
        .next()
        .filter(|sign| prefix <= 1 && "\"'".contains(*sign))?;
    let body = &start[1..];
    if quote == '\'' && !body.starts_with('\\') {
        // A lifetime has no second quote.
        let length = body.chars().next()?.len_utf8();
        return body[length..]
            .starts_with('\'')
            .then_some(prefix + length + 2);
    }
    let mut escaped = false;
    let end = body.char_indices().find(|(_, sign)| {
        let ends = *sign == quote && !escaped;
        escaped = *sign == '\\' && !escaped;
        ends
    });
    Some(prefix + 2 + end?.0)
}

pub(crate) fn parse(text: &str) -> File {
    let tokens = tokens(text);
    let mut file = File::default();
    let mut at = 0;
    while at < tokens.len() {
        if is_test(&tokens[at..]) {
            at = skip_item(&tokens, at, &mut file);
        } else if tokens[at] == Token::Name("use".to_owned()) {
            at = use_tree(&tokens, at + 1, &Vec::new(), &mut file);
        } else if let Token::Name(_) = &tokens[at] {
            let mut path = Vec::new();
            while let Some(Token::Name(name)) = tokens.get(at) {
                path.push(name.clone());
                at += 1;
                match (tokens.get(at), tokens.get(at + 1)) {
                    (Some(Token::Sign("::")), Some(Token::Name(_))) => at += 1,
                    _ => break,
                }
            }
            if path.len() > 1 {
                file.paths.insert(path);
            }
        } else {
            at += 1;
        }
    }
    file
}

fn is_test(tokens: &[Token]) -> bool {
    let name = |name: &str| Token::Name(name.to_owned());
    let sign = Token::Sign;
    let attribute = [
        sign("#"),
        sign("["),
        name("cfg"),
        sign("("),
        name("test"),
        sign(")"),
        sign("]"),
    ];
    tokens.starts_with(&attribute)
}

/// The place behind an item; a module in a file of its own is noted.
fn skip_item(tokens: &[Token], mut at: usize, file: &mut File) -> usize {
    let mut depth = 0;
    // Behind the attribute's own brackets.
    at += 7;
    let begin = at;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            Token::Sign("{") => depth += 1,
            Token::Sign("}") => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            Token::Sign(";") if depth == 0 => {
                if let [.., Token::Name(word), Token::Name(name), _] = &tokens[begin..at]
                    && word == "mod"
                {
                    file.tests.insert(name.clone());
                }
                return at;
            }
            _ => {}
        }
    }
    at
}

/// Reads one tree of a `use`; the place behind it.
fn use_tree(tokens: &[Token], mut at: usize, before: &Module, file: &mut File) -> usize {
    let mut path = before.clone();
    let mut alias = None;
    loop {
        match tokens.get(at) {
            Some(Token::Name(name)) if name == "as" => {
                at += 1;
                if let Some(Token::Name(name)) = tokens.get(at) {
                    alias = Some(name.clone());
                }
            }
            Some(Token::Name(name)) => path.push(name.clone()),
            Some(Token::Sign("{")) => {
                loop {
                    at = use_tree(tokens, at + 1, &path, file);
                    if tokens.get(at) != Some(&Token::Sign(",")) {
                        break;
                    }
                }
                return at + 1;
            }
            Some(Token::Sign("::" | "*")) => {}
            _ => break,
        }
        at += 1;
    }
    if path.len() > before.len() {
        if path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = alias.or_else(|| path.last().cloned()) {
            file.names.insert(name, path.clone());
        }
        file.paths.insert(path);
    }
    at
}
