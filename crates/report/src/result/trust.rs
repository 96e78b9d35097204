//! Whether a run's verdicts can be relied on; printed before the verdicts.

use wirecost_model::sample::{GENERATOR_BOUND_ADVICE, Mark};

use crate::result::document::{Document, Ending, Trust, TrustLevel};
use wirecost_answer::names as words;

/// Share of disturbed samples, 0 to 1, above which a run is doubtful: the machine is then part of what was measured.
pub const DISTURBED: f64 = 0.2;

/// Judges whether a run can be relied on.
pub(crate) fn of(doc: &Document) -> Trust {
    let disturbed = doc.gathered.disturbed;
    let stopped = stopped(doc).map(|(label, why)| {
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

/// Counts of the marks for disturbances from outside of the plan: `steal 5, cores moved 4`.
pub(crate) fn kinds(doc: &Document) -> String {
    counts(doc, |kind| !Mark::OF_THE_LOAD.contains(&kind))
}

fn counts(doc: &Document, is_wanted: impl Fn(&str) -> bool) -> String {
    let marks = doc.marks.iter();
    let kinds: Vec<String> = marks
        .filter(|mark| is_wanted(&mark.kind))
        .map(|mark| format!("{} {}", mark.kind.replace('-', " "), mark.samples))
        .collect();
    kinds.join(", ")
}

/// What disturbed too many samples of a run; `None` where few were disturbed.
pub(crate) fn disturbed(doc: &Document) -> Option<String> {
    too_many(doc, doc.trust.disturbed)
}

/// How many samples are marked, and for what: disturbances, and limits of the load itself.
pub(crate) fn marked(doc: &Document) -> Option<String> {
    if doc.marks.is_empty() {
        return None;
    }
    let marked: u32 = doc.measured().map(|cell| cell.marked).sum();
    let bound = Mark::OF_THE_LOAD[1];
    let advice = if doc.marks.iter().any(|mark| mark.kind == bound) {
        format!(" Where it was generator bound, {GENERATOR_BOUND_ADVICE}.")
    } else {
        String::new()
    };
    Some(format!(
        "{marked} of {} marked; they count: {}.{advice}",
        words::count(doc.samples as usize, "sample"),
        counts(doc, |_| true)
    ))
}

/// After how many rounds the run stopped early, and why; `None` where it came to its end.
pub(crate) fn stopped(doc: &Document) -> Option<(String, String)> {
    let how = match doc.outcome {
        Ending::Complete => return None,
        Ending::Interrupted => "interrupted",
        Ending::Failed => "failed",
        Ending::NoEnd => {
            "the record has no end: the run was killed, could not write its end, or is still running"
        }
    };
    let reason = doc
        .reason
        .as_ref()
        .filter(|reason| *reason != how)
        .map_or_else(String::new, |reason| format!(" ({reason})"));
    let label = format!(
        "Stopped after {} of {}{}:",
        doc.rounds_done,
        if doc.until.is_some() { "at most " } else { "" },
        words::count(doc.rounds_planned as usize, "round")
    );
    Some((label, format!("{how}{reason}.")))
}
