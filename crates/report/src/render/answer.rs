//! What a run answers, in sentences: those of crate `answer`, and what was not measured at all.

use super::{network_share, self_test, skipped, study};
use crate::result::document::Document;

/// A sentence with its highlighted beginning.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Sentence {
    /// The highlighted beginning, such as `Jumbo frames (8900):`; may be empty.
    pub(crate) lead: String,
    /// The rest of the sentence.
    pub(crate) rest: String,
}

/// The answer's sentences; where there is no answer, why. `times` is the sign before the ratios of a self-test: `x` or
/// `×`.
pub(crate) fn sentences(doc: &Document, times: char) -> Vec<Sentence> {
    let plain = |text: String| Sentence {
        lead: String::new(),
        rest: text,
    };
    let skipped = || skipped::sentences(doc).into_iter().map(plain);
    let study = study::sentence(doc).map(|said| {
        let (lead, rest) = said.split_once(": ").unwrap_or(("", &said));
        Sentence {
            lead: format!("{lead}:"),
            rest: format!("{rest}."),
        }
    });
    let warning = self_test::warning(doc, times).map(plain);
    if doc.samples == doc.invalid.len() as u32 {
        let nothing = plain("No sample is valid: there is no result.".into());
        return [nothing].into_iter().chain(skipped()).collect();
    }
    let passed = self_test::passed(doc, times).map(plain);
    if doc.effects.is_empty() {
        let nothing = if skipped().next().is_none() {
            "Nothing was varied, or no two cells differ in one factor alone: there is nothing to compare."
        } else {
            "Of the cells that were not skipped no two differ in one factor alone: there is nothing to compare."
        };
        let test = warning.or(passed);
        let nothing = plain(nothing.into());
        return study
            .into_iter()
            .chain(test)
            .chain(skipped())
            .chain([nothing])
            .collect();
    }
    let factors = doc.answer.factors.iter().map(|factor| Sentence {
        lead: format!("{}:", factor.subject),
        rest: format!("{}.", factor.says),
    });
    let limits = doc.answer.limits.iter().cloned().map(split);
    let to_do = doc.answer.to_do.iter().cloned().map(split);
    let share = network_share::sentences(doc)
        .into_iter()
        .map(|rest| Sentence {
            lead: network_share::LEAD.into(),
            rest,
        });
    let measured = factors
        .chain(share)
        .chain(skipped())
        .chain(limits)
        .chain(to_do);
    study
        .into_iter()
        .chain(warning)
        .chain(measured)
        .chain(passed)
        .collect()
}

/// Splits advice at its beginning, which is highlighted: `Best for ping:`.
fn split(text: String) -> Sentence {
    match text.split_once(": ") {
        Some((lead, rest)) if lead.starts_with("Best") => Sentence {
            lead: format!("{lead}:"),
            rest: rest.into(),
        },
        _ => Sentence {
            lead: String::new(),
            rest: text,
        },
    }
}
