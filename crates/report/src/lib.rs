//! Turns a run's record into results: a run directory is [`read`], evaluated into one [`Document`]
//! (the `--json` contract), and printed in a [`Format`]. Two runs are compared by [`compare`].
//!
//! The record is the only source: an old run renders again, and nothing here depends on how a run
//! is made. Crate `stats` computes effects and verdicts. `result` computes the document, `say` words and draws it;
//! `result` never imports `say`.

mod result;
mod say;

pub use result::compare;
pub use result::document::{
    BarsOf, CellLoad, CellResult, CellRules, CellWakeups, ChartBar, ChartGroup, ChartResult,
    ComparisonResult, CoreDistanceResult, DatagramsResult, Document, EffectResult, Ending,
    HostWakeups, Intervals, InvalidSample, LatencyResult, MarkCount, MetricSelfTest, NetworkChange,
    NetworkShare, NoRatio, OtherRules, PublishedNote, PublishedRatio, PublishedResult,
    SelfTestResult, Trust, TrustLevel, UntilResult, WakeupsResult, WindowCpu,
};
pub use result::evaluate::document;
pub use result::read::{ReadError, Reading, read};
pub use result::run::RunResult;
pub use result::trust::DISTURBED;
pub use say::csv::csv;
pub use say::format::{Detail, Format, FormatError, Formatted, Terminal};
pub use say::html::{HtmlError, html};
pub use say::json::Json;
pub use say::junit::{JunitError, comparison_junit};
pub use say::markdown::{comparison_markdown, markdown};
pub use say::terminal::{Text, comparison_terminal, rules, terminal};
