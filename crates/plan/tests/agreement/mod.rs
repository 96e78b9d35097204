//! Holds the schema against the parser: whatever the parser takes, the schema takes; whatever the
//! parser refuses, the schema refuses, or every reason is one of those listed in `BEYOND_SCHEMA`.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;
use wirecost_plan::{PlanError, load, schema};

/// The schema, as a validator.
pub(crate) static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let document = serde_json::to_value(schema()).expect("JSON");
    jsonschema::draft202012::new(&document).expect("a schema")
});

/// What an editor hands to its validator: the text as YAML 1.2 with the core schema reads it.
pub(crate) fn instance(text: &str) -> Option<Value> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).ok()
}

/// Who took a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcceptedBy {
    ByBoth,
    ByNeither,
    BySchemaOnly,
    /// The other reader of YAML sees no value that a schema could be held against.
    NoInstance,
}

/// Fails the test where schema and parser disagree on what a schema can say.
#[track_caller]
pub(crate) fn agree(text: &str) -> AcceptedBy {
    let parsed = load("plan.yaml", text);
    let Some(instance) = instance(text) else {
        return AcceptedBy::NoInstance;
    };
    match (parsed, SCHEMA.is_valid(&instance)) {
        (Ok(_), true) => AcceptedBy::ByBoth,
        (Err(_), false) => AcceptedBy::ByNeither,
        (Ok(_), false) => {
            let errors: Vec<String> = SCHEMA
                .iter_errors(&instance)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            panic!("the schema refuses what the parser takes: {errors:#?}\n{text}");
        }
        (Err(errors), true) => {
            for error in errors.errors() {
                assert!(
                    is_beyond_schema(error, text),
                    "the schema takes what the parser refuses: {error:#?}\n{text}"
                );
            }
            AcceptedBy::BySchemaOnly
        }
    }
}

/// Whether an error is of a kind that `BEYOND_SCHEMA` lists.
fn is_beyond_schema(error: &PlanError, text: &str) -> bool {
    let says = |parts: &[&str]| parts.iter().any(|part| error.message.contains(part));
    let written = &text[error.span.clone()];
    // Options of a load that exclude each other.
    if error.label == "no load can have this" {
        return true;
    }
    // Rules of several keys, and levels written in two ways.
    says(&[
        "does not fit",
        "two loads are called",
        "beside it has none",
        "applies to a line, and no cell has one",
        "divides a line into links, and a cell has no line",
        "is a list of something else than `none` and a load",
        "nothing runs where",
        "cannot be a factor",
        "is a mix within a mix",
        "names a load beside its mix",
        "the guest MTU `max` is",
        "is too small for",
        "cannot run over",
        "cannot cross a router",
        "cannot be divided evenly",
        "cannot be built by",
        "`auto` cannot be used with",
        "changes nothing",
        "are both",
        "which is more than 4096",
        "drops every cell",
        "has no level",
        "stands twice",
        "switches the same things as",
        "cannot be used with",
        "is above `repeat.max_rounds`",
        // Whose hosts they are.
        "is for a network that is built, not for `network: existing`",
        "which changes no settings of the hosts themselves",
        "`network: tunnel` builds tunnels",
        "attaches a program to the device of each host",
        "is for a lab: between hosts",
        "but sets no MTU of an existing network",
        "changes settings of existing hosts",
        "which existing hosts do not have",
        "is for existing hosts, and",
        "makes its own",
        "for a pair",
        "cannot name a host",
        "is in no pair",
        "is a place in a pair",
        "of an existing host's device",
        // Factors are the plan's own, too, and what they set is held against each other.
        "is not a factor",
        "cannot name a factor",
        "changes the same things as",
        "changes nothing: the level has",
        "is never undone",
        "undoes nothing",
        "both set",
        "sets a tunnel",
        "would change nothing",
        // Comparisons are of cells.
        "is not of exactly one cell",
        "no load of both cells has",
        "has more than one of its published figures",
        "is the machine's",
        "is ethtool's short name",
        "is not the name of a sysctl",
    ])
    || ["not a host", "not a device"].contains(&error.label.as_str())
    // How long lists may be.
    || ["not a range of ports", "not a multiple of 4"].contains(&error.label.as_str())
    || ["too many", "not several"].contains(&error.label.as_str())
    // Amounts as text.
    || (is_text(written)
        && (["below", "above", "not above", "not a size", "not such a name"])
            .iter()
            .any(|start| error.label.starts_with(start)))
    || (error.label == "not a mask" && written.chars().all(|c| c.is_ascii_digit()))
    || ["not 1 to 60 characters", "begins or ends with a space", "more than one line"].contains(&&*error.label)
    || is_unusual_number(written)
    // YAML that plans do not have.
    || says(&["anchors", "second document", "nested too deeply", "this is not YAML"])
}

fn is_text(written: &str) -> bool {
    matches!(instance(written), Some(Value::String(_)))
}

/// A number, but not the digits, at most one sign and one point with digits behind it that
/// people write; or one that says `1500.0` for 1500.
fn is_unusual_number(written: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = match written.split_once('.') {
        None => digits(written.strip_prefix('-').unwrap_or(written)) && written != "-0",
        Some((whole, part)) => {
            digits(whole.strip_prefix('-').unwrap_or(whole))
                && digits(part)
                && part.bytes().any(|byte| byte != b'0')
        }
    };
    matches!(instance(written), Some(Value::Number(_))) && !plain
}
