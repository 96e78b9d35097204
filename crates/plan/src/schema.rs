//! The table of keys as a JSON Schema, for editors and for programs that write plans.
//!
//! The schema never refuses a plan that the program accepts. What it cannot express, and so
//! accepts, is listed in [`BEYOND_SCHEMA`]; tests check that the two agree.

mod document;

use std::ops::Bound::{Excluded, Included, Unbounded};

use serde_json::{Number, Value};
use wirecost_model::units::{DURATION_UNITS, RATE_UNITS, SHARE_UNITS, SIZE_UNITS, Unit};

pub use document::Schema;
use document::{AdditionalProperties, NamedSchemas, TypeNames};

use crate::keys::{
    self, ANY_NAME, CONGESTION_MAX, Key, Kind, LABEL_MAX, LOAD_NAME_MAX, NAME_MAX, Presence, keys,
};
use crate::read::Reader;
use crate::{node, yaml};

/// Rules that the schema cannot express and the program checks.
pub const BEYOND_SCHEMA: &[&str] = &[
    "rules that take several keys, such as a guest MTU that does not fit its underlay and encapsulation, a router \
     where nothing tunnels, a `datapath` that can build none of the encapsulations, streams that do not divide \
     among the guests, two guest MTUs that are the same size, more than 4096 cells, `exclude` dropping every cell, \
     `rounds` with a key of an adaptive run, a `max_rounds` below `min_rounds`, and levels in `exclude` and `where` \
     that the factor does not have, or factors that the plan does not have",
    "which keys belong to a lab, to existing hosts and to tunnels between them, that `network: existing` takes one \
     level of `guest_mtu`, that a change needs `allow_host_changes`, how a host is written, and which hosts `pairs` \
     are of",
    "of `vary`: `before` without `after`, an `on` without sysctls and commands, names that are taken, levels that \
     are the same, a setting that two factors change, a tunnel's features in a cell without one, sysctls and \
     features that would change nothing, labels that are too long",
    "that a mask of `steering.rps` is written in hexadecimal",
    "where a range of ports begins and ends, and that bytes of Geneve options are a multiple of 4",
    "that a `ttl` of GRE and IP in IP excludes a `df` that is not `set`",
    "of loads: two with the same name, options that exclude each other, datagrams of `segmentation_offload` that do \
     not fit the guests' MTU, a mix within a mix or beside a load, a mix of which some have a `limit` and some have \
     none, a list within a mix that is not `none` and a load, a mix in which no load would run, a load with such a \
     list that has the name of a factor",
    "of `published`: that each side of a comparison is of exactly one cell, that a load of both has the figure, and \
     that one figure was published of it",
    "how many hops and paths a list may hold",
    "one level written in two ways, such as `10gbit` and `10000mbit`",
    "the range of a number that has a unit or is in quotes, and whether such a size is whole bytes",
    "how a number is written: `0x10`, `1e3`, `1500.0`, `-0`",
    "what YAML allows and a plan does not: anchors, aliases, tags, several documents, more than sixteen levels",
];

/// Regular expression of a decimal number, as the units take it.
const DECIMAL: &str = r"([0-9]+\.?[0-9]*|\.[0-9]+)";

/// The JSON Schema (draft 2020-12) of a plan.
pub fn schema() -> Schema {
    let comment = format!(
        "Made by `wirecost schema` of version {}.",
        env!("CARGO_PKG_VERSION")
    );
    let factors = keys()
        .iter()
        .filter(|key| !key.is_option())
        .filter_map(|key| Some((key.factor_name()?, level(key))));
    Schema {
        dialect: Some("https://json-schema.org/draft/2020-12/schema"),
        comment: Some(comment),
        title: Some("Wirecost plan".to_owned()),
        description: Some(
            "What to vary, what to load, how often, how long. A list makes its key a factor; the \
             cells are the combinations of all factors, less what `exclude` drops."
                .to_owned(),
        ),
        definitions: NamedSchemas(factors.collect()),
        ..mapping("")
    }
}

/// The schema of a mapping with the keys below `parent`.
fn mapping(parent: &str) -> Schema {
    let below = || keys().iter().filter(|key| key.parent() == parent);
    let others = below().find(|key| key.name() == ANY_NAME);
    let below = || below().filter(|key| key.name() != ANY_NAME);
    let required = below().filter(|key| key.presence == Presence::Required);
    Schema {
        required: required.map(|key| key.name()).collect(),
        property_names: others.map(|_| Box::new(host_name())),
        additional_properties: Some(others.map_or(AdditionalProperties::Allowed(false), |key| {
            AdditionalProperties::Each(Box::new(property(key)))
        })),
        properties: NamedSchemas(below().map(|key| (key.name(), property(key))).collect()),
        ..Schema::of_type("object")
    }
}

/// The schema of a key: what it takes, its description, default and example.
fn property(key: &Key) -> Schema {
    let takes = match key.factor_name() {
        Some(name) => {
            // Options of several loads share a name, and differ in range.
            let one = || {
                if key.is_option() {
                    level(key)
                } else {
                    Schema::defined(name)
                }
            };
            let levels = Schema {
                unique_items: Some(true),
                ..Schema::list(one())
            };
            Schema::any(vec![one(), levels])
        }
        None => level(key),
    };
    let default = match key.presence {
        Presence::Default(text) => Some(resolved(text)),
        Presence::Required | Presence::Optional | Presence::Adaptive(_) => None,
    };
    Schema {
        title: Some(key.path.to_owned()),
        description: Some(description(key)),
        default,
        examples: example(key).into_iter().collect(),
        ..takes
    }
}

fn description(key: &Key) -> String {
    let without = match key.presence {
        Presence::Required => " Required.".to_owned(),
        Presence::Optional => String::new(),
        Presence::Default(text) => format!(" Default: `{text}`."),
        Presence::Adaptive(text) => format!(" Default in an adaptive run: `{text}`."),
    };
    let factor = if key.factor {
        " A list of levels makes it a factor."
    } else {
        ""
    };
    format!("{} Takes {}.{without}{factor}", key.doc, key.expects())
}

/// The schema of one value of a key.
fn level(key: &Key) -> Schema {
    let mut alternatives = Vec::new();
    if !key.words.is_empty() {
        alternatives.push(words(key));
    }
    if is_switch(key) {
        // Quoted, or read by YAML 1.1.
        alternatives.push(Schema::text("^([Tt]rue|TRUE|[Ff]alse|FALSE)$"));
    }
    alternatives.extend(values(key));
    Schema::any(alternatives)
}

/// The schema of a key's words; words that YAML reads as numbers in both forms.
fn words(key: &Key) -> Schema {
    let mut values: Vec<Value> = key.words.iter().copied().map(Value::from).collect();
    let others = key.words.iter().map(|word| resolved(word));
    values.extend(others.filter(|value| !value.is_string()));
    if is_switch(key) {
        values.extend([true, false].map(Value::from));
    }
    Schema {
        values,
        ..Schema::default()
    }
}

fn is_switch(key: &Key) -> bool {
    key.words == ["on", "off"]
}

/// The schemas of what a key takes other than its words.
fn values(key: &Key) -> Vec<Schema> {
    match key.kind {
        Kind::Word => vec![],
        Kind::Text | Kind::Command => vec![scalar(r"\S", None)],
        Kind::Name => vec![scalar(r"^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$", Some(NAME_MAX))],
        Kind::Congestion => vec![Schema {
            max_length: Some(CONGESTION_MAX),
            ..Schema::text("^[A-Za-z][A-Za-z0-9_-]*$")
        }],
        Kind::Target => vec![Schema::text(r"^(nbd(\+unix)?:/)?/")],
        Kind::Path => vec![Schema::text("^/")],
        Kind::Whole => vec![number(key, "integer"), Schema::text("^[+-]?[0-9]+$")],
        Kind::Size => vec![number(key, "integer"), quantity(SIZE_UNITS)],
        Kind::Rate => vec![rate()],
        Kind::Seconds => vec![number(key, "number"), quantity(DURATION_UNITS)],
        Kind::Share => vec![number(key, "number"), quantity(SHARE_UNITS)],
        Kind::Gbps | Kind::PerSecond | Kind::Number => bare(key),
        Kind::Pair => vec![Schema {
            min_items: Some(2),
            max_items: Some(2),
            ..Schema::list(Schema::any(bare(key)))
        }],
        Kind::Names => vec![Schema {
            unique_items: Some(true),
            min_items: Some(2),
            max_items: Some(2),
            ..Schema::list(host_name())
        }],
        Kind::Map => vec![mapping(key.path)],
        Kind::Choice => vec![Schema {
            min_properties: Some(1),
            max_properties: Some(1),
            ..mapping(key.path)
        }],
        Kind::Maps => vec![Schema::list(mapping(key.path))],
        Kind::Choices => vec![Schema::list(Schema {
            min_properties: Some(1),
            max_properties: Some(1),
            ..mapping(key.path)
        })],
        Kind::Members => vec![
            number(key, "integer"),
            Schema::text("^[+-]?[0-9]+$"),
            Schema::list(mapping(key.path)),
        ],
        Kind::Levels => vec![selection(|factor| Schema::any(selected(factor)), label())],
        Kind::LevelSets => vec![Schema::list(selection(
            |factor| {
                let mut alternatives = selected(factor);
                alternatives.push(Schema::list(Schema::any(selected(factor))));
                Schema::any(alternatives)
            },
            Schema::any(vec![label(), Schema::list(label())]),
        ))],
        Kind::Mix => vec![Schema {
            min_properties: Some(2),
            ..names(
                Schema {
                    max_length: Some(LOAD_NAME_MAX),
                    ..Schema::text("^[A-Za-z0-9][A-Za-z0-9_-]*$")
                },
                with_or_without(),
            )
        }],
        Kind::Named => vec![names(label_text(), each_named(key))],
        // Without quotes, YAML reads a mask as a number.
        Kind::Mask => vec![
            Schema::text("^0x[0-9A-Fa-f]+$"),
            Schema {
                minimum: Some(1.into()),
                ..Schema::of_type("integer")
            },
        ],
        Kind::Ports => vec![Schema::text("^[0-9]{1,5}-[0-9]{1,5}$")],
        Kind::Label => vec![label()],
        Kind::Sysctls => vec![names(
            Schema::text("^[A-Za-z0-9_:@-]+([./][A-Za-z0-9_:@-]+)+$"),
            scalar(r"\S", None),
        )],
        Kind::Features => vec![names(
            Schema {
                max_length: Some(31),
                ..Schema::text("^[A-Za-z0-9_-]+$")
            },
            switch(),
        )],
    }
}

/// A number without a unit.
fn bare(key: &Key) -> Vec<Schema> {
    vec![
        number(key, "number"),
        Schema::text(format!("^[+-]?{DECIMAL}([eE][+-]?[0-9]+)?$")),
    ]
}

/// A load of a mix, or a list of `none` and a load.
fn with_or_without() -> Schema {
    let load = || Schema::defined(keys::LOAD.path);
    let none = Schema {
        values: vec!["none".into()],
        ..Schema::default()
    };
    Schema::any(vec![
        load(),
        Schema {
            unique_items: Some(true),
            ..Schema::list(Schema::any(vec![none, load()]))
        },
    ])
}

/// A mapping of names of the user's own to values.
fn names(name: Schema, each: Schema) -> Schema {
    Schema {
        property_names: Some(Box::new(name)),
        additional_properties: Some(AdditionalProperties::Each(Box::new(each))),
        min_properties: Some(1),
        ..Schema::of_type("object")
    }
}

/// The value for each name in a mapping of names of the user's own.
fn each_named(key: &Key) -> Schema {
    let path = format!("{}.*", key.path);
    let each = keys().iter().find(|key| key.path == path);
    each.map_or_else(Schema::default, |key| property(key))
}

fn host_name() -> Schema {
    Schema {
        max_length: Some(LOAD_NAME_MAX),
        ..Schema::text("^[A-Za-z0-9][A-Za-z0-9_-]*$")
    }
}

fn label() -> Schema {
    scalar(r"\S", None)
}

fn label_text() -> Schema {
    Schema {
        max_length: Some(LABEL_MAX),
        ..Schema::text(r"^\S")
    }
}

/// `on` or `off`, also as booleans of YAML.
fn switch() -> Schema {
    Schema::any(vec![
        Schema {
            values: [Value::from("on"), "off".into(), true.into(), false.into()].into(),
            ..Schema::default()
        },
        Schema::text("^([Tt]rue|TRUE|[Ff]alse|FALSE)$"),
    ])
}

/// Text; YAML's numbers and booleans count as text too.
fn scalar(pattern: &str, max_length: Option<usize>) -> Schema {
    Schema {
        types: Some(TypeNames::Several(&["string", "number", "boolean"])),
        pattern: Some(pattern.to_owned()),
        max_length,
        ..Schema::default()
    }
}

/// A number without a unit in the key's range.
fn number(key: &Key, name: &'static str) -> Schema {
    let (low, high) = key.range;
    let mut schema = Schema::of_type(name);
    match low {
        Included(low) => schema.minimum = Some(json_number(low)),
        Excluded(low) => schema.exclusive_minimum = Some(json_number(low)),
        Unbounded => {}
    }
    schema.maximum = match high {
        Included(high) => Some(json_number(high)),
        _ if name == "integer" => Some(u64::MAX.into()),
        _ => None,
    };
    schema
}

/// A JSON number; whole numbers have no decimal point, as integers require.
fn json_number(number: f64) -> Number {
    if number.fract() == 0.0 {
        if number < 0.0 {
            return Number::from(number as i64);
        }
        return Number::from(number as u64);
    }
    Number::from_f64(number).unwrap_or_else(|| Number::from(0))
}

/// A number in quotes, with or without a unit.
fn quantity(units: &[Unit]) -> Schema {
    let names: Vec<&str> = units.iter().map(|unit| unit.name).collect();
    Schema::text(format!(r"^{DECIMAL}(\s*({}))?$", names.join("|")))
}

/// A rate: its unit is required, in any case.
fn rate() -> Schema {
    let any_case = |unit: &Unit| -> String {
        let letters = unit.name.chars();
        letters
            .flat_map(|letter| ['[', letter, letter.to_ascii_uppercase(), ']'])
            .collect()
    };
    let names: Vec<String> = RATE_UNITS.iter().map(any_case).collect();
    Schema::text(format!(r"^{DECIMAL}\s*({})(/[sS])?$", names.join("|")))
}

/// A mapping of at least one factor to levels. The plan's own factors take `of_the_plan`.
fn selection(of: impl Fn(&Key) -> Schema, of_the_plan: Schema) -> Schema {
    let factor = |key: &&'static Key| {
        // An option's factor may carry its load's name as a prefix.
        let name = key.factor_name().filter(|_| !key.is_option())?;
        let schema = Schema {
            description: Some(format!("Of the levels of `{}`. {}", key.path, key.doc)),
            ..of(key)
        };
        Some((name, schema))
    };
    Schema {
        min_properties: Some(1),
        additional_properties: Some(AdditionalProperties::Each(Box::new(of_the_plan))),
        properties: NamedSchemas(keys().iter().filter_map(factor).collect()),
        ..Schema::of_type("object")
    }
}

/// A level in a selection: as the factor takes it, or by its label in records.
fn selected(factor: &Key) -> Vec<Schema> {
    let mut alternatives: Vec<Schema> = factor
        .factor_name()
        .map(Schema::defined)
        .into_iter()
        .collect();
    if factor.path == keys::LOAD.path {
        alternatives.push(Schema::text("^[A-Za-z0-9_-]+([+][A-Za-z0-9_-]+)+$"));
    } else if factor.kind == Kind::Names {
        let name = "[A-Za-z0-9][A-Za-z0-9_-]*";
        alternatives.push(Schema::text(format!("^{name} and {name}$")));
    } else if matches!(factor.kind, Kind::Map | Kind::Choice) {
        let words = factor.words.join("|");
        alternatives.push(Schema::text(format!("^({words})( [a-z_]+=[^ ]+)+$")));
    }
    alternatives
}

/// The example of a key as JSON.
fn example(key: &Key) -> Option<Value> {
    yaml::parse(key.example, &mut Reader::default()).map(|node| json(&node))
}

fn json(node: &node::Node) -> Value {
    match &node.value {
        node::Value::Null | node::Value::Refused => Value::Null,
        node::Value::Scalar(text) => resolved(text),
        node::Value::List(items) => items.iter().map(json).collect(),
        node::Value::Map(pairs) => pairs
            .iter()
            .filter_map(|(key, value)| Some((key.text()?.to_owned(), json(value))))
            .collect(),
    }
}

/// A plain scalar of the table as YAML 1.2's core schema reads it.
fn resolved(text: &str) -> Value {
    if let Ok(whole) = text.parse::<u64>() {
        return whole.into();
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => number.into(),
        _ => text.into(),
    }
}
