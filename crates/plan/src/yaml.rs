//! Parses YAML text into a tree of nodes with byte positions. The only module that uses the YAML parser.
//!
//! A plan is one document of mappings, lists and scalars. Scalars remain text: each key decides
//! what its value means, so that `1500` and `"1500"` are the same level and `on` is no surprise.
//! Anchors, aliases and tags are refused.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use crate::error::Fault;
use crate::node::{Node, Span, Value};
use crate::read::Reader;

/// Maximum depth of nesting; a plan needs five levels.
const MAX_DEPTH: usize = 16;

/// Parses the one document of `text`; `None` after a fault that leaves no tree.
pub(crate) fn parse(text: &str, reader: &mut Reader) -> Option<Node> {
    let mut builder = Builder {
        text,
        offsets: text.char_indices().map(|(offset, _)| offset).collect(),
        open: Vec::new(),
        root: None,
        reader,
    };
    for event in Parser::new_from_str(text) {
        let step = match event {
            Ok((event, span)) => {
                let span = builder.byte(span.start.index())..builder.byte(span.end.index());
                builder.event(event, span)
            }
            Err(error) => Err(builder.syntax(&error)),
        };
        if let Err(fault) = step {
            builder.reader.faults.push(fault);
            return None;
        }
    }
    let root = builder
        .root
        .filter(|root| root.value != Value::Null || !root.span.is_empty());
    if root.is_none() {
        reader.fault(
            0..0,
            "",
            "the plan is empty",
            "nothing here",
            "a plan needs at least a name: write `name: my-plan`",
        );
    }
    root
}

/// A collection whose end has not been parsed yet.
struct Open {
    start: usize,
    /// End of the last child so far.
    end: usize,
    /// Whether it is written with brackets or braces, whose end is the collection's.
    flow: bool,
    kind: Kind,
}

enum Kind {
    List(Vec<Node>),
    Map {
        pairs: Vec<(Node, Node)>,
        key: Option<Node>,
    },
}

struct Builder<'a> {
    text: &'a str,
    /// Byte offset of every character: the parser counts characters.
    offsets: Vec<usize>,
    open: Vec<Open>,
    root: Option<Node>,
    reader: &'a mut Reader,
}

impl Builder<'_> {
    fn byte(&self, character: usize) -> usize {
        self.offsets
            .get(character)
            .copied()
            .unwrap_or(self.text.len())
    }

    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                return Err(fault(
                    span,
                    "a second document begins here",
                    "second document",
                    "keep one plan per file",
                ));
            }
            Event::Scalar(text, style, anchor, tag) => {
                let null = style == ScalarStyle::Plain
                    && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let value = if anchor != 0 || tag.is_some() {
                    self.refuse(&span)
                } else if null {
                    Value::Null
                } else {
                    Value::Scalar(text.into_owned())
                };
                self.put(Node { span, value });
            }
            Event::Alias(_) => {
                let value = self.refuse(&span);
                self.put(Node { span, value });
            }
            Event::SequenceStart(anchor, tag) => {
                if anchor != 0 || tag.is_some() {
                    self.refuse(&span);
                }
                self.open(span, Kind::List(Vec::new()))?;
            }
            Event::MappingStart(anchor, tag) => {
                if anchor != 0 || tag.is_some() {
                    self.refuse(&span);
                }
                let pairs = Vec::new();
                self.open(span, Kind::Map { pairs, key: None })?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&span),
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, span: Span, kind: Kind) -> Result<(), Fault> {
        if self.open.len() == MAX_DEPTH {
            return Err(fault(
                span,
                "lists and mappings are nested too deeply",
                "too deep",
                "a plan needs no more than five levels: check the indentation and the brackets",
            ));
        }
        let flow = self.text[span.start..].starts_with(['[', '{']);
        if !flow {
            self.indented(span.start)?;
        }
        self.open.push(Open {
            flow,
            start: span.start,
            end: span.end,
            kind,
        });
        Ok(())
    }

    /// Refuses a tab before the first entry of a block collection. YAML is indented with spaces
    /// (YAML 1.2, rule 63); the parser accepts a tab before the first key of a line.
    fn indented(&self, entry: usize) -> Result<(), Fault> {
        let before = &self.text[..entry];
        let blank = before.trim_end_matches([' ', '\t']).len();
        let Some(tab) = before[blank..].find('\t') else {
            return Ok(());
        };
        let tab = blank + tab;
        let message = "this is not YAML: a tab indents this line";
        let help = "indent with spaces: YAML allows no tabs there";
        Err(fault(tab..tab + 1, message, "a tab", help))
    }

    fn close(&mut self, span: &Span) {
        let Some(open) = self.open.pop() else { return };
        let end = if open.flow { span.end } else { open.end };
        let value = match open.kind {
            Kind::List(items) => Value::List(items),
            Kind::Map { pairs, .. } => Value::Map(pairs),
        };
        self.put(Node {
            span: open.start..end.max(open.start),
            value,
        });
    }

    fn put(&mut self, node: Node) {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        open.end = open.end.max(node.span.end);
        match &mut open.kind {
            Kind::List(items) => items.push(node),
            Kind::Map { pairs, key } => match key.take() {
                None => *key = Some(node),
                Some(name) => {
                    if let Some(fault) = key_fault(self.text, pairs, &name) {
                        self.reader.faults.push(fault);
                    } else {
                        pairs.push((name, node));
                    }
                }
            },
        }
    }

    fn refuse(&mut self, span: &Span) -> Value {
        self.reader.fault(
            span.clone(),
            "",
            "a plan has no anchors (`&`), aliases (`*`) or tags (`!`)",
            "not used in plans",
            "write the value out; put text that begins with one of these signs in quotes",
        );
        Value::Refused
    }

    fn syntax(&self, error: &ScanError) -> Fault {
        let at = self.byte(error.marker().index());
        let start = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = self.text[start..].lines().next().unwrap_or_default();
        let indentation = &line[..line.len() - line.trim_start().len()];
        let help = if self.text[..at].ends_with(":\t") {
            "write a space behind the colon, not a tab"
        } else if indentation.contains('\t') {
            "indent with spaces: YAML allows no tabs there"
        } else {
            "check the indentation of this line and the one above, and that every bracket, brace \
             and quote is closed"
        };
        let width = self.text[at..].chars().next().map_or(0, char::len_utf8);
        let message = format!("this is not YAML: {}", error.info());
        fault(at..at + width, &message, "here", help)
    }
}

/// The fault of a key that is to be added to `pairs`, if it has one.
fn key_fault(text: &str, pairs: &[(Node, Node)], name: &Node) -> Option<Fault> {
    let Some(key) = name.text() else {
        return (name.value != Value::Refused).then(|| {
            fault(
                name.span.clone(),
                "a key is missing, or is not plain text",
                "not a key",
                "write `key: value`",
            )
        });
    };
    let (first, _) = pairs.iter().find(|(known, _)| known.text() == Some(key))?;
    let line = text[..first.span.start].matches('\n').count() + 1;
    Some(Fault {
        path: key.to_owned(),
        ..fault(
            name.span.clone(),
            &format!("the key `{key}` stands twice"),
            "second time",
            &format!("keep one of them; the first is in line {line}"),
        )
    })
}

fn fault(span: Span, message: &str, label: &str, help: &str) -> Fault {
    Fault {
        span,
        path: String::new(),
        message: message.to_owned(),
        label: label.to_owned(),
        help: help.to_owned(),
    }
}
