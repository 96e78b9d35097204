//! Records to what people read: a run directory is [`read`], worked out into one [`Document`]
//! (the `--json` contract), and printed for the [`terminal`], as [`html`], as [`markdown`], or sample by
//! sample as [`csv`]. Two runs are put beside each other by [`compare`].
//!
//! The record is the only source: an old run renders again, and nothing here depends on how a run
//! is made. What a verdict follows from is room `stats`; here it gets its words.

mod apart;
mod beside;
pub mod compare;
mod cpu;
mod csv;
mod document;
mod flows;
mod html;
mod loads;
mod markdown;
mod notes;
mod published;
mod read;
mod rules;
mod self_test;
mod short;
mod skipped;
mod steered;
mod terminal;
mod trust;
mod until;
mod validity;
mod visible;
mod wakeups;
mod warnings;
mod words;

pub use apart::CoresApartResult;
pub use beside::{EffectResult, NoRatio};
pub use csv::{CsvError, csv};
pub use document::{
    CellResult, Document, Ending, InvalidSample, MarkCount, PublishedResult, document,
};
pub use html::{HtmlError, html};
pub use markdown::{comparison_markdown, markdown};
pub use published::{PublishedNote, PublishedRatio};
pub use read::{ReadError, Reading, read};
pub use rules::{CellRules, OtherRules};
pub use self_test::{MetricSelfTest, SelfTestResult};
pub use terminal::{Terminal, comparison_terminal, rules, terminal};
pub use trust::{DISTURBED, Trust, TrustLevel};
pub use until::{Intervals, UntilResult};
pub use wakeups::{CellWakeups, HostWakeups, WakeupsResult, WindowCpu};
