//! A result as one self-contained HTML file: it needs no network and no other file, and is complete
//! without its script. Charts are SVG made here; the script only adds read-outs, highlighting, sorting.

mod cells;
mod chart;
mod chart_figure;
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
use crate::render::format::{Format, FormatError, Terminal, put};
use crate::result::document::Document;
use crate::result::read::RecordedRun;
use crate::result::run::RunResult;

const TEMPLATE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// Largest page, bytes: it opens at once, and a mail server accepts it.
const MAX_PAGE_BYTES: usize = 1_000_000;

/// The HTML format.
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

/// The page could not be rendered: a bug in this program, not a fault of the record.
#[derive(Debug, thiserror::Error)]
#[error("the report's template: {0}")]
pub struct HtmlError(#[from] minijinja::Error);

/// Prints a result as one HTML document, from the record as it was read and the document that was
/// computed from it.
///
/// Every text of the record is escaped. The document's Content Security Policy (level 3) allows no
/// requests, and no script but the page's own.
///
/// For a large run, charts draw fewer samples, cells and effects, and tables have fewer rows; each says so. A page is
/// at most 1 MB, unless names are thousands of letters long.
///
/// # Errors
/// The template does not match this program, which its tests rule out.
pub fn html(reading: &RecordedRun, doc: &Document) -> Result<String, HtmlError> {
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
        // Rendering drops the template's last line end.
        text = template.render(context)? + "\n";
        if text.len() <= MAX_PAGE_BYTES {
            break;
        }
    }
    Ok(text)
}

/// The hash of a script or style sheet in the form of Content Security Policy.
fn hash(source: &str) -> Value {
    let hash = STANDARD.encode(Sha256::digest(source));
    Value::from_safe_string(format!("sha256-{hash}"))
}
