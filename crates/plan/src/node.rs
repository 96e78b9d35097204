//! The tree of a plan's text: nodes with their byte positions.

use std::ops::Range;

/// A place in the text, a range of bytes.
pub(crate) type Span = Range<usize>;

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) value: Value,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Nothing: an empty value, `~` or `null` (YAML 1.2, section 10.3.2).
    Null,
    /// A scalar's text, quotes and escapes resolved.
    Scalar(String),
    List(Vec<Node>),
    /// Keys (scalars or refused) and values, in the order of the text, no key twice.
    Map(Vec<(Node, Node)>),
    /// A value that is reported as a fault already.
    Refused,
}

impl Node {
    /// The text of a scalar; `None` for anything else.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(text) => Some(text),
            _ => None,
        }
    }
}
