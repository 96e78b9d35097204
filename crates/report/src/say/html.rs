//! A result as one HTML file that needs nothing else: no network, no other file, and no script to
//! be complete. Charts are SVG made here; the script only adds read-outs, highlighting, sorting.

mod cells;
mod chart;
mod cpu;
mod drift;
mod forest;
mod latency;
mod legend;
mod overview;
mod page;
mod panel;
mod ratios;
mod scale;
mod shown;
mod strip;
mod study;
mod svg;
mod verdicts;
mod window;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use sha2::{Digest, Sha256};
use std::io::Write;

use self::chart::Limits;
use crate::result::document::Document;
use crate::result::read::Reading;
use crate::result::run::RunResult;
use crate::say::format::{Format, FormatError, Terminal, put};

const TEMPLATE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// Bytes that a page has at most: what opens at once, and what a mail server takes.
const MOST: usize = 1_000_000;

/// HTML.
#[derive(Debug)]
pub(crate) struct Html;

impl Format<RunResult> for Html {
    fn option(&self) -> &'static str {
        "html"
    }

    fn help(&self) -> &'static str {
        "One HTML file with charts, which needs no network"
    }

    fn write(
        &self,
        result: &RunResult,
        _: Terminal,
        to: &mut dyn Write,
    ) -> Result<(), FormatError> {
        put(
            to,
            &html(&result.reading, &result.document).map_err(FormatError::of)?,
        )
    }
}

/// The page could not be put together: a mistake in this program, not in the record.
#[derive(Debug, thiserror::Error)]
#[error("the report's template: {0}")]
pub struct HtmlError(#[from] minijinja::Error);

/// Prints a result as one HTML document, from the record as it was read and the document that was
/// worked out of it.
///
/// Every text of the record is escaped, and the document's own policy (Content Security Policy,
/// level 3) lets nothing be fetched and nothing run but the one script that belongs to it.
///
/// Of a large run fewer samples, cells and effects are drawn, and tables have fewer rows, each of which says so: a page is
/// 1 MB at most, unless its names are thousands of letters long.
///
/// # Errors
/// A template that does not fit this program, which its tests rule out.
pub fn html(reading: &Reading, doc: &Document) -> Result<String, HtmlError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => {
            let mut escaped = String::with_capacity(text.len());
            svg::escape(&mut escaped, text);
            out.write_str(&escaped).map_err(minijinja::Error::from)
        }
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment.add_template("page", TEMPLATE)?;
    let template = environment.get_template("page")?;
    let mut text = String::new();
    for limits in Limits::all() {
        let page = page::page(reading, doc, limits);
        let context = context! {
            style => Value::from_safe_string(STYLE.into()),
            style_hash => hash(STYLE),
            script => Value::from_safe_string(SCRIPT.into()),
            script_hash => hash(SCRIPT),
            ..Value::from(Serde(&page))
        };
        // The last line end of a template is not part of what it makes.
        text = template.render(context)? + "\n";
        if text.len() <= MOST {
            break;
        }
    }
    Ok(text)
}

/// A source's hash as a policy names it.
fn hash(source: &str) -> Value {
    let hash = STANDARD.encode(Sha256::digest(source));
    Value::from_safe_string(format!("sha256-{hash}"))
}
