//! One JSON document, for other programs. Its keys are the fields of [`Document`](crate::Document) and [`Comparison`].

use serde::Serialize;
use std::io::Write;

use crate::render::format::{Format, FormatError, Terminal, put};
use crate::result::compare::Comparison;
use crate::result::run::RunResult;

/// The JSON format.
#[derive(Debug)]
pub struct Json;

impl Format<RunResult> for Json {
    fn option(&self) -> &'static str {
        "json"
    }

    fn help(&self) -> &'static str {
        "The result as one JSON document"
    }

    fn write(
        &self,
        result: &RunResult,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        pretty(to, &result.document)
    }
}

impl Format<Comparison> for Json {
    fn option(&self) -> &'static str {
        "json"
    }

    fn help(&self) -> &'static str {
        "The comparison as one JSON document"
    }

    fn write(
        &self,
        comparison: &Comparison,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        pretty(to, comparison)
    }
}

pub(crate) fn pretty(to: &mut dyn Write, document: &impl Serialize) -> Result<(), FormatError> {
    let written = serde_json::to_writer_pretty(&mut *to, document);
    written.map_err(|error| {
        if error.is_io() {
            FormatError::Output(error.into())
        } else {
            FormatError::of(error)
        }
    })?;
    put(to, "\n")
}
