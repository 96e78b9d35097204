//! The decoder's tools: they open mappings by the table of keys, read values or lists of levels,
//! and collect all faults. A fault never stops the reading of anything else.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::error::Fault;
use crate::keys::{ANY_NAME, Key, Presence, keys};
use crate::node::{Node, Span, Value};
use crate::suggest::{listed, nearest};

/// Collects the faults of a plan.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    pub(crate) faults: Vec<Fault>,
}

impl Reader {
    pub(crate) fn fault(
        &mut self,
        span: Span,
        path: &str,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.faults.push(Fault {
            span,
            path: path.to_owned(),
            message: message.into(),
            label: label.into(),
            help: help.into(),
        });
    }

    /// Whether a fault was reported within `span`.
    pub(crate) fn has_fault_in(&self, span: &Span) -> bool {
        let within = |fault: &Fault| span.start <= fault.span.start && fault.span.end <= span.end;
        self.faults.iter().any(within)
    }

    /// Reports a value that its key does not take.
    pub(crate) fn wrong(&mut self, entry: &Entry<'_>, label: impl Into<String>) {
        let value = &entry.node.value;
        if *value == Value::Refused {
            return;
        }
        let mut help = entry.advice();
        if let Value::Scalar(text) = value
            && let Some(word) = nearest(text, entry.key.words.iter().copied())
        {
            help = format!("did you mean `{word}`? {help}");
        }
        let message = match value {
            Value::Null => format!("`{}` has no value", entry.path),
            _ => format!("`{}` cannot be {}", entry.path, describe(value)),
        };
        self.fault(entry.node.span.clone(), &entry.path, message, label, help);
    }
}

/// A value in words, for use in a sentence.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Null | Value::Refused => "empty".to_owned(),
        Value::Scalar(text) => quoted(text),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "a mapping".to_owned(),
    }
}

/// Quotes text of the plan for a message: in one line, shortened.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(40).collect();
    let more = if short.len() < text.len() { "..." } else { "" };
    format!("`{}{more}`", short.escape_debug())
}

/// The value of a key, or its default.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'static Key,
    /// The key's path with the indices of list items: `published.figures[0].gbps`.
    pub(crate) path: String,
    pub(crate) node: Cow<'a, Node>,
    /// Whether the plan writes the value; `false` for a default.
    pub(crate) written: bool,
}

impl<'a> Entry<'a> {
    /// A value that the plan writes at `node`.
    pub(crate) fn at(key: &'static Key, path: impl Into<String>, node: &'a Node) -> Self {
        Self {
            key,
            path: path.into(),
            node: Cow::Borrowed(node),
            written: true,
        }
    }

    /// The default of a key, placed at `at`; `None` if the key has none.
    pub(crate) fn default(key: &'static Key, at: &Span) -> Option<Self> {
        let (Presence::Default(text) | Presence::Adaptive(text)) = key.presence else {
            return None;
        };
        Some(Self {
            key,
            path: key.path.to_owned(),
            node: Cow::Owned(Node {
                span: at.clone(),
                value: Value::Scalar(text.to_owned()),
            }),
            written: false,
        })
    }

    /// What to write for the key.
    pub(crate) fn advice(&self) -> String {
        let Key { example, .. } = self.key;
        let expects = self.key.expects();
        if self.key.kind == crate::keys::Kind::Word {
            format!("write {expects}")
        } else {
            format!("write {expects}, such as `{example}`")
        }
    }

    /// The items of a list, each with its own path. Any other value is its own single item; an empty list is a fault.
    pub(crate) fn items<'s>(&'s self, reader: &mut Reader) -> Vec<Entry<'s>> {
        let Value::List(items) = &self.node.value else {
            return vec![Entry {
                node: Cow::Borrowed(&self.node),
                ..self.clone()
            }];
        };
        if items.is_empty() {
            let help = format!("{}, or leave the key out", self.advice());
            let message = format!("`{}` is an empty list", self.path);
            reader.fault(self.node.span.clone(), &self.path, message, "empty", help);
        }
        let item = |(index, node)| Entry::at(self.key, format!("{}[{index}]", self.path), node);
        items.iter().enumerate().map(item).collect()
    }

    /// The levels of a factor: one value or a list of values. A level that occurs twice is a fault.
    pub(crate) fn levels<T>(
        &self,
        reader: &mut Reader,
        read: fn(&mut Reader, &Entry<'_>) -> Option<T>,
        label: fn(&T) -> String,
    ) -> Levels<T> {
        let mut levels = Vec::new();
        let mut known = BTreeSet::new();
        let items = self.items(reader);
        let mut all_read = !items.is_empty();
        for entry in items {
            let Some(value) = read(reader, &entry) else {
                all_read = false;
                continue;
            };
            let label = label(&value);
            if !known.insert(label.clone()) {
                let message = format!("the level `{label}` of `{}` stands twice", self.path);
                let help = "remove one of them: a level is one side of a comparison";
                let span = entry.node.span.clone();
                reader.fault(span, &entry.path, message, "second time", help);
                continue;
            }
            levels.push(Level {
                value,
                label,
                span: entry.node.span.clone(),
                path: entry.path.clone(),
                written: entry.written,
            });
        }
        Levels { levels, all_read }
    }
}

/// One level of a factor, with its place in the plan.
#[derive(Debug, Clone)]
pub(crate) struct Level<T> {
    pub(crate) value: T,
    pub(crate) label: String,
    pub(crate) span: Span,
    pub(crate) path: String,
    pub(crate) written: bool,
}

/// The levels of a factor, without those that could not be read.
#[derive(Debug, Clone)]
pub(crate) struct Levels<T> {
    pub(crate) levels: Vec<Level<T>>,
    /// Whether every level that the plan wrote could be read.
    pub(crate) all_read: bool,
}

impl<T> Levels<T> {
    /// The level of that number.
    pub(crate) fn get(&self, index: usize) -> Option<&Level<T>> {
        self.levels.get(index)
    }
}

impl<T: Clone> Levels<T> {
    /// The values of the levels.
    pub(crate) fn values(&self) -> Vec<T> {
        self.levels
            .iter()
            .map(|level| level.value.clone())
            .collect()
    }
}

/// A mapping whose keys are in the table.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    /// Path of the mapping as written, with indices of list items.
    path: String,
    /// Place that a fault about a missing key points at.
    at: Span,
    pairs: &'a [(Node, Node)],
    /// Known keys for which an unknown one was most likely meant.
    meant: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Opens the mapping at `node`, whose keys are those below `parent` in the table. Unknown keys
    /// are faults. `None` if `node` is not a mapping, which the caller reports.
    pub(crate) fn open(
        reader: &mut Reader,
        parent: &str,
        path: &str,
        node: &'a Node,
    ) -> Option<Self> {
        let Value::Map(pairs) = &node.value else {
            return None;
        };
        let at = node.span.clone();
        let path = path.to_owned();
        let known: Vec<&'static str> = keys()
            .iter()
            .filter(|key| key.parent() == parent)
            .map(|key| key.name())
            .collect();
        let takes_others = known.contains(&ANY_NAME);
        let mut meant = Vec::new();
        for (key, _) in pairs {
            if let Some(name) = key.text()
                && !takes_others
                && !known.contains(&name)
            {
                let near = nearest(name, known.iter().copied());
                unknown_key(reader, (&path, parent), &known, near, (name, &key.span));
                meant.extend(near);
            }
        }
        Some(Self {
            path,
            at,
            pairs,
            meant,
        })
    }

    /// An absent mapping: every key has its default.
    pub(crate) const fn absent() -> Self {
        Self {
            path: String::new(),
            at: 0..0,
            pairs: &[],
            meant: Vec::new(),
        }
    }

    /// Whether the plan writes this key here.
    pub(crate) fn names(&self, key: &Key) -> bool {
        let mut names = self.pairs.iter().map(|(name, _)| name.text());
        names.any(|name| name == Some(key.name()))
    }

    /// The entries under names of the user's own, each with its name and as a value of `key`.
    pub(crate) fn others(&self, key: &'static Key) -> Vec<(&'a Node, Entry<'a>)> {
        let is_known = |name: &str| {
            let mut known = keys().iter().filter(|known| known.parent() == key.parent());
            known.any(|known| known.name() == name && name != ANY_NAME)
        };
        let others = self.pairs.iter().filter_map(|(name, node)| {
            let text = name.text().filter(|text| !is_known(text))?;
            Some((name, Entry::at(key, join(&self.path, text), node)))
        });
        others.collect()
    }

    /// The value of `key`, its default, or `None`. A missing required key is a fault.
    pub(crate) fn get(&self, reader: &mut Reader, key: &'static Key) -> Option<Entry<'a>> {
        let path = join(&self.path, key.name());
        let written = |(name, _): &&(Node, Node)| name.text() == Some(key.name());
        if let Some((name, node)) = self.pairs.iter().find(written) {
            let mut entry = Entry::at(key, path, node);
            if node.value == Value::Null {
                // An empty value has no place: point at the key.
                entry.node.to_mut().span = name.span.clone();
            }
            return Some(entry);
        }
        if key.presence == Presence::Required && !self.meant.contains(&key.name()) {
            let message = format!("`{path}` is missing");
            let label = format!("no `{}` here", key.name());
            let help = format!(
                "write `{}: ...`: {}, such as `{}`",
                key.name(),
                key.expects(),
                key.example
            );
            reader.fault(self.at.clone(), &path, message, label, help);
        }
        Entry::default(key, &self.at)
    }

    /// The mapping that is the value of `key`; `None` where the plan has none. Any other value is a fault.
    pub(crate) fn section(&self, reader: &mut Reader, key: &'static Key) -> Option<Entry<'a>> {
        let entry = self.get(reader, key)?;
        if matches!(entry.node.value, Value::Map(_)) {
            return Some(entry);
        }
        reader.wrong(&entry, "not a mapping");
        None
    }
}

/// Reports an unknown key. `path` is that of the mapping as written, `parent` that in the table.
fn unknown_key(
    reader: &mut Reader,
    (path, parent): (&str, &str),
    known: &[&str],
    near: Option<&str>,
    (name, span): (&str, &Span),
) {
    let place = if path.is_empty() {
        "a plan".to_owned()
    } else {
        format!("`{path}`")
    };
    let elsewhere = keys()
        .iter()
        .find(|key| key.name() == name && key.parent() != parent);
    let hint = match (elsewhere.map(|key| key.parent()), near) {
        (Some(""), _) => format!("`{name}` stands outside of `{parent}`. "),
        (Some(other), _) => format!("`{name}` stands under `{other}`. "),
        (None, Some(word)) => format!("did you mean `{word}`? "),
        (None, None) => String::new(),
    };
    let help = format!(
        "{hint}{place} may have {}",
        listed(known.iter().copied(), "and")
    );
    let message = format!("{place} has no key {}", quoted(name));
    let path = join(path, name);
    reader.fault(span.clone(), &path, message, "unknown key", help);
}

/// Reads the value of `key` with `read`; `None` without the key.
pub(crate) fn value<T>(
    reader: &mut Reader,
    fields: &Fields<'_>,
    key: &'static Key,
    read: fn(&mut Reader, &Entry<'_>) -> Option<T>,
) -> Option<T> {
    let entry = fields.get(reader, key)?;
    read(reader, &entry)
}

/// Appends a key to a path.
pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
