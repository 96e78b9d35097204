//! What it all comes to: whether the main job can be done here, in one sentence.

use crate::check::{Check, Status};
use crate::evidence::{Evidence, Outcome, Trial, Tried};
use crate::judge::feature::{EACCES, EPERM, FEATURES, is_essential};

pub(super) struct Verdict {
    pub(super) sentence: String,
    pub(super) can_run_labs: bool,
    pub(super) as_root: Option<bool>,
    pub(super) as_plain_user: bool,
}

pub(super) fn verdict(evidence: &Evidence, checks: &[Check]) -> Verdict {
    let own = evidence.caller.may_make_namespaces && can(&evidence.own, evidence);
    let plain = can(&evidence.plain, evidence);
    // A run falls back to a user namespace where it may make none of its own
    // (`become_host` of the agent), and only then.
    let falls_back = matches!(
        evidence.own.outcomes.get(&Trial::Namespaces),
        Some(Outcome::Refused {
            code: Some(EPERM | EACCES),
            ..
        })
    );
    let can_run_labs = own || (falls_back && plain);
    let as_root = evidence.caller.may_make_namespaces.then_some(own);
    let sentence = match (can_run_labs, as_root, plain) {
        (true, Some(true), true) => {
            "This machine can run the built-in plan, as root and without.".into()
        }
        (true, Some(true), false) => format!(
            "This machine can run the built-in plan as root; a plain user cannot, for want of {}.",
            missing(&evidence.plain, evidence)
        ),
        (true, ..) => "This machine can run the built-in plan without root.".into(),
        (false, Some(_), _) => cannot(&evidence.own, evidence, checks),
        (false, None, _) => cannot(&evidence.plain, evidence, checks),
    };
    Verdict {
        sentence,
        can_run_labs,
        as_root,
        as_plain_user: plain,
    }
}

/// Whether everything that a lab needs worked in one probe.
fn can(tried: &Tried, evidence: &Evidence) -> bool {
    lacks(tried, evidence).next().is_none()
}

/// What a lab needs and this probe did not get, by trial and title.
fn lacks<'a>(
    tried: &'a Tried,
    evidence: &'a Evidence,
) -> impl Iterator<Item = (Trial, &'static str)> + 'a {
    let features = FEATURES
        .iter()
        .filter(|feature| is_essential(feature, &evidence.machine))
        .map(|feature| (feature.trial, feature.title));
    [(Trial::Namespaces, "namespaces")]
        .into_iter()
        .chain(features)
        .filter(|(trial, _)| !tried.outcomes.get(trial).is_some_and(Outcome::works))
}

fn missing(tried: &Tried, evidence: &Evidence) -> String {
    let mut lacks = lacks(tried, evidence);
    match lacks.next() {
        // Without a namespace nothing else was tried.
        Some((Trial::Namespaces, title)) => title.to_owned(),
        first => first
            .into_iter()
            .chain(lacks)
            .map(|(_, title)| title)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// Names what is missing and what to do about the first of it.
fn cannot(tried: &Tried, evidence: &Evidence, checks: &[Check]) -> String {
    let what = missing(tried, evidence);
    let to_do = checks
        .iter()
        .filter(|check| check.essential && check.status != Status::Yes)
        // As root has its own advice; to a plain user it only says to become root.
        .filter(|check| check.status != Status::Unknown || checks_silent(tried))
        .find_map(|check| check.advice.as_deref());
    match to_do {
        Some(to_do) => {
            format!(
                "This machine cannot run the built-in plan, for want of {what}. What to do: {to_do}."
            )
        }
        None => format!("This machine cannot run the built-in plan, for want of {what}."),
    }
}

fn checks_silent(tried: &Tried) -> bool {
    tried.cut_short.is_some()
}
