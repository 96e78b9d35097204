//! The result for people.

use std::fmt::Write as _;

use crate::case::{Case, Kind};
use crate::run::Outcome;

/// What can be chosen: why, what has to be so, and the plan.
pub(crate) fn list(cases: &[&Case]) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for case in cases {
        let _ = writeln!(text, "{} {}: {}", case.kind.word(), case.name, case.why);
        for claim in case.claims {
            let _ = writeln!(text, "  {}: {}", of(claim), claim.expectation.words());
        }
        for line in case.plan.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

fn of(claim: &crate::case::Claim) -> String {
    let mut words = vec![claim.factor.to_owned()];
    words.extend(claim.at.iter().map(|(key, level)| format!("{key} {level}")));
    words.extend(claim.metrics.iter().map(|metric| {
        let name = serde_json::to_value(metric).unwrap_or_default();
        name.as_str().unwrap_or_default().to_owned()
    }));
    words.retain(|word| !word.is_empty());
    if words.is_empty() {
        "every figure".into()
    } else {
        words.join(", ")
    }
}

/// One case, each effect in a line.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    let mut text = String::new();
    let word = if outcome.holds { "holds" } else { "FAILS" };
    let _ = writeln!(
        text,
        "{word} {} {} ({:.0} s)",
        outcome.kind, outcome.name, outcome.seconds
    );
    for finding in &outcome.findings {
        let sign = if finding.holds { ' ' } else { '!' };
        let _ = writeln!(text, "  {sign} {}: {}", finding.what, finding.found);
        if !finding.holds {
            let _ = writeln!(text, "      expected: {}", finding.expected);
        }
    }
    text
}

/// How many of each kind.
pub(crate) fn counts(outcomes: &[Outcome]) -> String {
    let of = |kind: Kind| {
        let mine = || {
            outcomes
                .iter()
                .filter(|outcome| outcome.kind == kind.word())
        };
        (
            mine().filter(|outcome| outcome.holds).count(),
            mine().count(),
        )
    };
    let [(silent, artefacts), (found, effects)] = [Kind::Artefact, Kind::Effect].map(of);
    format!(
        "{silent} of {artefacts} planted artefacts without a false verdict\n\
         {found} of {effects} true effects found\n"
    )
}
