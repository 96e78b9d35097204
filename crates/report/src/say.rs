//! Words and forms: the document's figures and verdicts as text for a terminal, a page, Markdown, or another program.

mod answer;
mod bencher;
mod column;
mod columns;
mod comparison;
pub(crate) mod csv;
mod digits;
mod effects;
pub(crate) mod format;
mod formats;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod junit;
mod loads;
pub(crate) mod markdown;
mod notes;
mod openmetrics;
mod rules;
mod self_test;
mod skipped;
pub(crate) mod terminal;
mod trust;
mod until;
mod validity;
mod visible;
mod wakeups;
mod words;
