//! Whether a run's verdicts can be relied on, in words.

use super::words;
use crate::result::document::{Document, Ending, TrustLevel};
use crate::result::skipped;
use crate::result::trust::kinds;

/// Whether the run can be relied on, in a sentence that every result has: `Trust: complete, 80 of 80 samples valid, 4
/// perhaps disturbed (steal 4).`
pub(crate) fn sentence(doc: &Document) -> String {
    let ending = match doc.outcome {
        Ending::Complete => "complete",
        Ending::Interrupted => "interrupted",
        Ending::Failed => "failed",
        Ending::NoEnd => "without an end",
    };
    let valid: u32 = doc.measured().map(|cell| cell.valid).sum();
    let samples = doc.samples - skipped::samples(doc);
    let disturbed = match doc.trust.disturbed {
        0 => "none disturbed".to_owned(),
        n => format!("{n} perhaps disturbed ({})", kinds(doc)),
    };
    let qualifier = match doc.trust.level {
        TrustLevel::Sound => "",
        TrustLevel::Doubtful => " (doubtful)",
    };
    format!(
        "Trust{qualifier}: {ending}, {valid} of {} valid, {disturbed}.",
        words::count(samples as usize, "sample")
    )
}

/// The first line of a doubtful run's result, a label and the reasons; `None` for other runs.
pub(crate) fn line(doc: &Document) -> Option<(&'static str, String)> {
    let reasons = &doc.trust.reasons;
    (!reasons.is_empty()).then(|| ("Doubtful:", format!("{}.", reasons.join("; "))))
}
