//! Errors of a plan, each with its place and what to write instead.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// An error without the text around it, as the decoder collects it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) label: String,
    pub(crate) help: String,
}

/// One error in a plan. It renders on its own, with its line of the text and a caret.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct PlanError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
    /// The text next to the caret.
    pub label: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The place in the text as a range of bytes, within one line.
    pub span: Range<usize>,
    /// The key's path, such as `repeat.rounds` or `guest_mtu[1]`; empty for the text as a whole.
    pub path: String,
    shown: SourceExcerpt,
}

/// The part of the text with which an error is shown.
#[derive(Debug, Clone)]
struct SourceExcerpt {
    source_code: Arc<NamedSource<String>>,
    span: Range<usize>,
    /// Whether it is a part of its line only, so that its columns differ from the text's.
    is_part: bool,
}

/// Length of the longest line that is shown completely, bytes; a YAML file has longer ones only by mistake.
const LONGEST_LINE: usize = 300;
/// Bytes shown of a longer line: before the start of the error, and from there on.
const AROUND: (usize, usize) = (40, 80);
/// Length of the longest message, characters; a message may quote text of any length.
const LONGEST_MESSAGE: usize = 500;

impl SourceExcerpt {
    /// The part of a long line around an error. The line keeps its number.
    fn window(name: &str, text: &str, line_start: usize, line: usize, span: &Range<usize>) -> Self {
        let rest = &text[span.start..];
        let line_end = span.start + rest.find('\n').unwrap_or(rest.len());
        let first = text.ceil_char_boundary(line_start.max(span.start.saturating_sub(AROUND.0)));
        let last = text.floor_char_boundary(line_end.min(span.start + AROUND.1));
        let mut shown = "\n".repeat(line - 1);
        if first > line_start {
            shown.push_str("...");
        }
        let start = shown.len() + span.start - first;
        shown.push_str(&text[first..last]);
        if last < line_end {
            shown.push_str("...");
        }
        Self {
            source_code: Arc::new(NamedSource::new(name, shown)),
            span: start..start + span.end.min(last) - span.start,
            is_part: true,
        }
    }
}

/// Shortens a text to about [`LONGEST_MESSAGE`] characters.
fn clipped(text: String) -> String {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        None => text,
        Some((end, _)) => {
            // The end is kept too: what is said about a quoted value follows it.
            let tail: Vec<char> = text.chars().rev().take(LONGEST_MESSAGE / 3).collect();
            let tail: String = tail.into_iter().rev().collect();
            let head = text.floor_char_boundary(end * 2 / 3);
            format!("{}...{tail}", &text[..head])
        }
    }
}

/// Every error in a plan, in the order of their places; never empty.
#[derive(Debug, Clone)]
pub struct PlanErrors {
    source_name: String,
    errors: Vec<PlanError>,
}

impl PlanErrors {
    pub(crate) fn new(source_name: &str, text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| fault.span.start);
        let source_code = Arc::new(NamedSource::new(source_name, text.to_owned()));
        let errors = faults
            .into_iter()
            .map(|fault| PlanError::new(fault, text, &source_code))
            .collect();
        Self {
            source_name: source_name.to_owned(),
            errors,
        }
    }

    /// The errors in the order of their places.
    pub fn errors(&self) -> &[PlanError] {
        &self.errors
    }
}

impl PlanError {
    fn new(fault: Fault, text: &str, source_code: &Arc<NamedSource<String>>) -> Self {
        let span = within_line(text, fault.span);
        let before = &text[..span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (line, column) = (
            before.matches('\n').count() + 1,
            before[line_start..].chars().count() + 1,
        );
        let rest = &text[span.start..];
        let line_length = span.start - line_start + rest.find('\n').unwrap_or(rest.len());
        let shown = (line_length > LONGEST_LINE)
            .then(|| SourceExcerpt::window(source_code.name(), text, line_start, line, &span));
        Self {
            message: clipped(fault.message),
            help: clipped(fault.help),
            label: clipped(fault.label),
            line,
            column,
            shown: shown.unwrap_or_else(|| SourceExcerpt {
                source_code: Arc::clone(source_code),
                span: span.clone(),
                is_part: false,
            }),
            span,
            path: fault.path,
        }
    }
}

/// Cuts a span to its first line, so that a caret never spans several lines.
fn within_line(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(span.start);
    let end = text.floor_char_boundary(span.end).max(start);
    let first = text[start..end].lines().next().unwrap_or_default();
    start..start + first.trim_end().len()
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.source_name;
        match self.errors.len() {
            1 => write!(f, "1 error in {name}"),
            count => write!(f, "{count} errors in {name}"),
        }
    }
}

impl std::error::Error for PlanErrors {}

impl Diagnostic for PlanError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.shown.source_code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = if self.shown.is_part {
            format!("{} (column {})", self.label, self.column)
        } else {
            self.label.clone()
        };
        let label = LabeledSpan::new_with_span(Some(label), self.shown.span.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

impl Diagnostic for PlanErrors {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(
            self.errors.iter().map(|error| error as &dyn Diagnostic),
        ))
    }
}
