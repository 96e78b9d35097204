//! One JSON document, for other programs. Its keys are the fields of [`Document`](crate::Document) and [`Comparison`].

use serde::Serialize;

use crate::result::compare::Comparison;
use crate::result::run::RunResult;
use crate::say::format::{Format, FormatError, Terminal};

/// JSON.
#[derive(Debug)]
pub struct Json;

impl Format<RunResult> for Json {
    fn option(&self) -> &'static str {
        "json"
    }

    fn help(&self) -> &'static str {
        "The result as one JSON document"
    }

    fn print(&self, result: &RunResult, _: Terminal) -> Result<String, FormatError> {
        pretty(&result.document)
    }
}

impl Format<Comparison> for Json {
    fn option(&self) -> &'static str {
        "json"
    }

    fn help(&self) -> &'static str {
        "The comparison as one JSON document"
    }

    fn print(&self, comparison: &Comparison, _: Terminal) -> Result<String, FormatError> {
        pretty(comparison)
    }
}

pub(crate) fn pretty(document: &impl Serialize) -> Result<String, FormatError> {
    let text = serde_json::to_string_pretty(document).map_err(FormatError::of)?;
    Ok(text + "\n")
}
