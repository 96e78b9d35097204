//! Judges one kernel feature by what the probes of both privileges reported.

use crate::check::{Check, Status};
use crate::evidence::{Evidence, Outcome, ProbeResults, Trial};
use crate::judge::advice;
use crate::judge::kernel_feature::{KernelFeature, is_essential};

pub(super) fn check(feature: &KernelFeature, evidence: &Evidence) -> Check {
    let (status, seen, refusal) = merge(feature.trial, evidence);
    let advice = match (status, refusal) {
        (Status::Yes, _) | (_, None) => None,
        (_, Some(refusal)) => Some(advice::for_feature(feature, refusal, status, evidence)),
    };
    Check {
        id: feature.id,
        title: feature.title,
        group: feature.group,
        essential: is_essential(feature, &evidence.machine),
        status,
        seen,
        needed_for: feature.needed_for,
        advice,
    }
}

/// Status and text from the outcomes of both probes, and the refusal or partial success that advice is about.
fn merge(trial: Trial, evidence: &Evidence) -> (Status, String, Option<&Outcome>) {
    let own = evidence.own.outcomes.get(&trial);
    let plain = evidence.plain.outcomes.get(&trial);
    if !evidence.caller.may_make_namespaces {
        // Both probes ran as the same user: what the first could not try for want of a namespace, the second did.
        let tried = own.filter(|own| !matches!(own, Outcome::NotTried(_)));
        return alone(tried.or(plain).or(own), &evidence.plain);
    }
    let (Some(own), Some(plain)) = (own, plain) else {
        return alone(own.or(plain), &evidence.own);
    };
    match (own, plain) {
        (Outcome::Works(seen), Outcome::Works(_)) => {
            (Status::Yes, format!("{seen}; with and without root"), None)
        }
        (Outcome::Works(seen), other) => {
            let seen = format!("as root: {seen}; as a plain user: {}", words(other));
            (Status::Limited, seen, Some(other))
        }
        (other, _) if words(other) == words(plain) => alone(Some(other), &evidence.own),
        (other, _) => {
            let (status, seen, refusal) = alone(Some(other), &evidence.own);
            let seen = format!("as root: {seen}; as a plain user: {}", words(plain));
            let status = if plain.works() {
                Status::Limited
            } else {
                status
            };
            (status, seen, refusal)
        }
    }
}

fn alone<'a>(
    outcome: Option<&'a Outcome>,
    tried: &ProbeResults,
) -> (Status, String, Option<&'a Outcome>) {
    match outcome {
        None => {
            let why = tried.cut_short.as_deref().unwrap_or("no reason is known");
            (
                Status::Unknown,
                format!("the probe reported nothing: {why}"),
                None,
            )
        }
        Some(outcome) => {
            let status = match outcome {
                Outcome::Works(_) => Status::Yes,
                Outcome::Partly(_) => Status::Limited,
                Outcome::Refused { .. } => Status::No,
                Outcome::NotTried(_) => Status::Unknown,
            };
            let telling = matches!(outcome, Outcome::Partly(_) | Outcome::Refused { .. });
            (status, words(outcome), telling.then_some(outcome))
        }
    }
}

fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Works(seen) | Outcome::Partly(seen) => seen.clone(),
        Outcome::Refused { words, .. } => words.clone(),
        Outcome::NotTried(why) => format!("not tried, {why}"),
    }
}
