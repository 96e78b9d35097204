//! Records to what people read: a run directory is [`read`], worked out into one [`Document`]
//! (the `--json` contract), and printed in a [`Format`]. Two runs are compared by [`compare`].
//!
//! The record is the only source: an old run renders again, and nothing here depends on how a run
//! is made. What a verdict follows from is room `stats`; here it gets its words.

mod answer;
mod bencher;
mod columns;
pub mod compare;
mod core_distance;
mod csv;
mod digits;
mod document;
mod effects;
mod evaluate;
mod flows;
mod format;
mod formats;
mod gathered;
mod html;
mod json;
mod loads;
mod markdown;
mod memory;
mod moves;
mod notes;
mod openmetrics;
mod published;
mod read;
mod rules;
mod self_test;
mod skipped;
mod steered;
mod terminal;
mod thinned;
mod trust;
mod until;
mod validity;
mod values;
mod visible;
mod wakeups;
mod warnings;
mod words;

pub use csv::{CsvError, csv};
pub use document::{
    CellLoad, CellResult, CellRules, CellWakeups, CoreDistanceResult, DatagramsResult, Document,
    EffectResult, Ending, HostWakeups, Intervals, InvalidSample, LatencyResult, MarkCount,
    MetricSelfTest, NoRatio, OtherRules, PublishedNote, PublishedRatio, PublishedResult,
    SelfTestResult, Trust, TrustLevel, UntilResult, WakeupsResult, WindowCpu,
};
pub use evaluate::document;
pub use format::{Detail, Format, FormatError, Formatted, RunResult, Terminal};
pub use html::{HtmlError, html};
pub use json::Json;
pub use markdown::{comparison_markdown, markdown};
pub use read::{ReadError, Reading, read};
pub use terminal::{Text, comparison_terminal, rules, terminal};
pub use trust::DISTURBED;
