//! Turns a run's record into results: a run directory is [`read`], evaluated into one [`Document`]
//! (the `--json` contract), and printed in a [`Format`]. Two runs are compared by [`compare`].
//!
//! The record is the only source: an old run renders again, and nothing here depends on how a run
//! is made. Crate `stats` computes effects and verdicts. `result` computes the document, `render` prints it;
//! `result` never imports `render`.

mod render;
mod result;

pub use render::csv::csv;
pub use render::format::{Detail, Format, FormatError, Formatted, Terminal};
pub use render::html::{HtmlError, html};
pub use render::json::Json;
pub use render::junit::{JunitError, comparison_junit};
pub use render::markdown::{comparison_markdown, markdown};
pub use render::terminal::{Text, comparison_terminal, rules, terminal};
pub use result::cell_figures::CellFigures;
pub use result::compare;
pub use result::document::{
    AdaptiveResult, BarsOf, CellLoad, CellResult, CellRules, CellWakeups, ChartBar, ChartGroup,
    ChartResult, ComparisonResult, CoreDistanceResult, Document, EffectResult, Ending, HostWakeups,
    Intervals, InvalidSample, LatencyResult, MarkCount, MetricSelfTest, NetworkChange,
    NetworkShare, NoRatio, OtherRules, PublishedNote, PublishedRatio, PublishedResult,
    SelfTestResult, Trust, TrustLevel, WakeupsResult, WindowCpu,
};
pub use result::evaluate::document;
pub use result::load_counts::{DatagramsResult, RequestsResult};
pub use result::read::{ReadError, RecordedRun, read};
pub use result::run::RunResult;
pub use result::trust::DISTURBED;
