//! The parts of JSON Schema that a plan needs, in the order in which people read them.

use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

/// A JSON Schema, draft 2020-12; its serialisation is the document.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schema {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub(super) dialect: Option<&'static str>,
    #[serde(rename = "$comment", skip_serializing_if = "Option::is_none")]
    pub(super) comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    pub(super) reference: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) types: Option<TypeNames>,
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub(super) values: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) minimum: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exclusive_minimum: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) maximum: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_length: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pattern: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) any_of: Vec<Self>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) items: Option<Box<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_items: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_items: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unique_items: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) default: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) examples: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) required: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) property_names: Option<Box<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_properties: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_properties: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) additional_properties: Option<AdditionalProperties>,
    #[serde(skip_serializing_if = "NamedSchemas::is_empty")]
    pub(super) properties: NamedSchemas,
    #[serde(rename = "$defs", skip_serializing_if = "NamedSchemas::is_empty")]
    pub(super) definitions: NamedSchemas,
}

/// One type name, or several.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum TypeNames {
    One(&'static str),
    Several(&'static [&'static str]),
}

/// `additionalProperties`: whether there may be any, or the schema of each.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum AdditionalProperties {
    Allowed(bool),
    Each(Box<Schema>),
}

/// Schemas by name, in the order of the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct NamedSchemas(pub(super) Vec<(&'static str, Schema)>);

impl NamedSchemas {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for NamedSchemas {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, schema)| (name, schema)))
    }
}

impl Schema {
    pub(super) fn of_type(name: &'static str) -> Self {
        Self {
            types: Some(TypeNames::One(name)),
            ..Self::default()
        }
    }

    /// A string that matches a pattern.
    pub(super) fn text(pattern: impl Into<String>) -> Self {
        Self {
            pattern: Some(pattern.into()),
            ..Self::of_type("string")
        }
    }

    /// A reference to the definition of that name in `$defs`.
    pub(super) fn defined(name: &str) -> Self {
        Self {
            reference: Some(format!("#/$defs/{name}")),
            ..Self::default()
        }
    }

    /// A list of one or more values that match `item`.
    pub(super) fn list(item: Self) -> Self {
        Self {
            items: Some(Box::new(item)),
            min_items: Some(1),
            ..Self::of_type("array")
        }
    }

    /// A value that matches one of the alternatives.
    pub(super) fn any(mut alternatives: Vec<Self>) -> Self {
        if alternatives.len() == 1 {
            return alternatives.remove(0);
        }
        Self {
            any_of: alternatives,
            ..Self::default()
        }
    }
}
