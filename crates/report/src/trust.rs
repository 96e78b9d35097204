//! Whether a run's verdicts can be relied on; printed before them.

use wirecost_model::sample::Mark;

use crate::document::{Document, Ending, Trust, TrustLevel};
use crate::{notes, skipped, words};

/// More than this share of the samples disturbed, and the machine is part of what was measured.
pub const DISTURBED: f64 = 0.2;

/// Judges a run.
pub(crate) fn of(doc: &Document) -> Trust {
    let disturbed = doc.gathered.disturbed;
    let stopped = notes::stopped(doc).map(|(label, why)| {
        let label = label[..1].to_lowercase() + &label[1..];
        format!("{label} {}", why.trim_end_matches('.'))
    });
    let reasons: Vec<String> = stopped
        .into_iter()
        .chain(too_many(doc, disturbed))
        .collect();
    Trust {
        level: if reasons.is_empty() {
            TrustLevel::Sound
        } else {
            TrustLevel::Doubtful
        },
        reasons,
        disturbed,
    }
}

fn too_many(doc: &Document, disturbed: u32) -> Option<String> {
    (f64::from(disturbed) > f64::from(doc.samples) * DISTURBED).then(|| {
        format!(
            "{disturbed} of {} may have been disturbed ({})",
            words::count(doc.samples as usize, "sample"),
            kinds(doc)
        )
    })
}

/// Marks of what is outside of the plan, counted: `steal 5, cores moved 4`.
fn kinds(doc: &Document) -> String {
    let own = [Mark::KINDS[2], Mark::KINDS[3]];
    let marks = doc.marks.iter();
    let outside = marks.filter(|mark| !own.contains(&mark.kind.as_str()));
    let kinds: Vec<String> = outside
        .map(|mark| format!("{} {}", mark.kind.replace('-', " "), mark.samples))
        .collect();
    kinds.join(", ")
}

/// Of a run that too much disturbed, what it was.
pub(crate) fn disturbed(doc: &Document) -> Option<String> {
    too_many(doc, doc.trust.disturbed)
}

/// Whether the run can be relied on, in a sentence that always stands: `Trust: complete, 80 of 80 samples valid, 4 perhaps
/// disturbed (steal 4).`
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
    let doubt = match doc.trust.level {
        TrustLevel::Sound => "",
        TrustLevel::Doubtful => " (doubtful)",
    };
    format!(
        "Trust{doubt}: {ending}, {valid} of {} valid, {disturbed}.",
        words::count(samples as usize, "sample")
    )
}

/// The first line of every format if the run is doubtful: a label, and the reasons.
pub(crate) fn line(doc: &Document) -> Option<(&'static str, String)> {
    let reasons = &doc.trust.reasons;
    (!reasons.is_empty()).then(|| ("Doubtful:", format!("{}.", reasons.join("; "))))
}
