//! The declaration of a key, and what it says in words.

use std::ops::Bound::{self, Excluded, Included};
use std::ops::RangeBounds;

use wirecost_model::units::{format_bytes, format_fraction, format_rate};

use super::{LABEL_MAX, NAME_MAX};
use crate::suggest::joined;

/// One key of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Key {
    /// Path of the key: `repeat.rounds`. Keys of mappings in a list have the list's path.
    pub path: &'static str,
    /// Kind of a value other than the words.
    pub kind: Kind,
    /// Words that the key takes.
    pub words: &'static [&'static str],
    /// Smallest and largest number that the key takes, in the kind's unit.
    pub range: (Bound<f64>, Bound<f64>),
    /// What the absence of the key means.
    pub presence: Presence,
    /// Whether a list of values makes the key a factor.
    pub factor: bool,
    /// An example of a value, as YAML.
    pub example: &'static str,
    /// Meaning of the key in a sentence or more, with its unit.
    pub doc: &'static str,
}

/// Kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// One of the words only. `on` and `off` may also be written `true` and `false`.
    Word,
    /// Any text.
    Text,
    /// Letters, digits, `.`, `_` and `-`, at most 64; not dots only.
    Name,
    /// Name of a congestion control: a letter, then letters, digits, `_` and `-`, at most 15
    /// characters; neither `true` nor `false`.
    Congestion,
    /// The URI of an NBD server, or a path.
    Target,
    /// An absolute path.
    Path,
    /// A whole number.
    Whole,
    /// A size in bytes, with or without a unit.
    Size,
    /// A rate in bits per second, with a unit.
    Rate,
    /// A duration in seconds, or with a unit.
    Seconds,
    /// A share: a percentage or a fraction.
    Share,
    /// Gbit/s as a number without a unit.
    Gbps,
    /// A number without a unit.
    Number,
    /// A list of two numbers without a unit.
    Pair,
    /// A list of the names of two hosts.
    Names,
    /// A number of requests per second.
    PerSecond,
    /// A mapping of names to loads.
    Mix,
    /// A mapping of the keys below it.
    Map,
    /// A mapping with one of the keys below it, whose value is its options.
    Choice,
    /// A list of mappings of the keys below it.
    Maps,
    /// A list of mappings, each with one of the keys below it, whose value is its options.
    Choices,
    /// A whole number, or a list of as many mappings of the keys below it.
    Members,
    /// A mapping of factors to one level each.
    Levels,
    /// A list of mappings of factors to one or several levels each.
    LevelSets,
    /// A mapping of names of the user's own; the key whose path ends in `*` says what each takes.
    Named,
    /// A mask of cores in hexadecimal digits.
    Mask,
    /// A range of UDP ports.
    Ports,
    /// 1 to 60 characters in one line.
    Label,
    /// A command for a shell.
    Command,
    /// A mapping of sysctls to values.
    Sysctls,
    /// A mapping of device features to `on` or `off`.
    Features,
}

/// What the absence of a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// The key is required: an error.
    Required,
    /// The key has no default.
    Optional,
    /// The default, as it would be written.
    Default(&'static str),
    /// The default, as it would be written, if another key of an adaptive run is present; else the key has none.
    Adaptive(&'static str),
}

impl Key {
    /// The last part of the path: the key as it is written.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// The path of the mapping that the key belongs to; empty for the plan itself.
    pub fn parent(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(parent, _)| parent)
    }

    /// The name of the factor in records and selections: `underlay.mtu`, `streams`; `None` if the
    /// key is no factor. Where a plan has several loads, the load's name precedes that of an
    /// option: `ping.streams`.
    pub fn factor_name(&self) -> Option<&'static str> {
        let name = if self.is_option() {
            self.name()
        } else {
            self.path
        };
        self.factor.then_some(name)
    }

    /// Whether the key is an option of a load.
    pub fn is_option(&self) -> bool {
        self.path.starts_with("load.") && self.path.matches('.').count() == 2
    }

    /// What to write for the key, in words: ``a rate from 100mbit to 10000gbit, or `none` ``.
    pub fn expects(&self) -> String {
        let range = self.range_words();
        let quantity = match self.kind {
            Kind::Word => None,
            Kind::Text => Some("text".to_owned()),
            Kind::Name => Some(format!(
                "letters, digits, `.`, `_` and `-`, at most {NAME_MAX}"
            )),
            Kind::Congestion => Some("the kernel's name of a congestion control".to_owned()),
            Kind::Target => Some("the URI of an NBD server, or a path".to_owned()),
            Kind::Path => Some("a path".to_owned()),
            Kind::Whole => Some(format!("a whole number{range}")),
            Kind::Size => Some(format!("a size{range}")),
            Kind::Rate => Some(format!("a rate{range}")),
            Kind::Seconds => Some(format!("a duration{range}")),
            Kind::Share => Some(format!("a share{range}")),
            Kind::Gbps => Some(format!("a number of Gbit/s{range}")),
            Kind::Number => Some(format!("a number{range}")),
            Kind::Pair => Some(format!("a list of two numbers{range}")),
            Kind::Names => Some("a list of two hosts' names".to_owned()),
            Kind::PerSecond => Some(format!("a number per second{range}")),
            Kind::Mix => Some("a mapping of names to loads".to_owned()),
            Kind::Map | Kind::Choice => Some("a mapping".to_owned()),
            Kind::Maps | Kind::Choices | Kind::LevelSets => Some("a list of mappings".to_owned()),
            Kind::Members => Some(format!(
                "a whole number{range} or a list of as many mappings"
            )),
            Kind::Levels => Some("a mapping of factors to levels".to_owned()),
            Kind::Named => Some("a mapping of names to lists of levels".to_owned()),
            Kind::Mask => Some("a mask of cores in hexadecimal".to_owned()),
            Kind::Ports => Some("a range of ports, from 1 to 65535".to_owned()),
            Kind::Label => Some(format!("1 to {LABEL_MAX} characters in one line")),
            Kind::Command => Some("a command for `sh -c`".to_owned()),
            Kind::Sysctls => Some("a mapping of sysctls to values".to_owned()),
            Kind::Features => Some("a mapping of features to `on` or `off`".to_owned()),
        };
        let words = self.words.iter().map(|word| format!("`{word}`"));
        let phrases: Vec<String> = words.chain(quantity).collect();
        joined(&phrases, "or")
    }

    /// Whether a number is in the key's range.
    pub(crate) fn takes(&self, number: f64) -> bool {
        self.range.contains(&number)
    }

    /// A number in the kind's unit, for a bound of the range.
    pub(crate) fn amount(&self, number: f64) -> String {
        match self.kind {
            Kind::Size => format_bytes(number as u64),
            Kind::Rate => format_rate(number as u64),
            Kind::Seconds if number > 0.0 && number < 0.001 => {
                format!("{} us", (number * 1e6).round())
            }
            Kind::Seconds if number > 0.0 && number < 0.01 => {
                format!("{} ms", (number * 1e3).round())
            }
            Kind::Seconds => format!("{number} s"),
            Kind::Share => format_fraction(number),
            _ => number.to_string(),
        }
    }

    fn range_words(&self) -> String {
        match self.range {
            (Included(low), Included(high)) => {
                format!(" from {} to {}", self.amount(low), self.amount(high))
            }
            (Excluded(low), Included(high)) => {
                let (low, high) = (self.amount(low), self.amount(high));
                format!(" above {low} and at most {high}")
            }
            (Included(low), _) => format!(" of at least {}", self.amount(low)),
            _ => String::new(),
        }
    }
}
