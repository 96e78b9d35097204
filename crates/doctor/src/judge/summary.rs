//! The summary: whether this machine can run the built-in plan, in one sentence.

use crate::check::Check;
use crate::evidence::{Evidence, Outcome, ProbeResults, Trial};
use crate::judge::kernel_feature::{EACCES, EPERM, FEATURES, is_essential};
use crate::judge::namespaces;

pub(super) struct Verdict {
    pub(super) sentence: String,
    pub(super) can_run_labs: bool,
    pub(super) as_root: Option<bool>,
    pub(super) as_plain_user: bool,
}

pub(super) fn verdict(evidence: &Evidence, checks: &[Check]) -> Verdict {
    let own = evidence.caller.may_make_namespaces && can(&evidence.own, evidence);
    let plain = can(&evidence.plain, evidence);
    // A run falls back to a user namespace only where the kernel does not permit it to make namespaces
    // without one (`become_host` of the agent).
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
            "This machine can run the built-in plan as root; a plain user cannot, because of missing {}.",
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
fn can(tried: &ProbeResults, evidence: &Evidence) -> bool {
    lacks(tried, evidence).next().is_none()
}

/// Id and title of each check that a lab needs and that did not work in this probe.
fn lacks<'a>(
    tried: &'a ProbeResults,
    evidence: &'a Evidence,
) -> impl Iterator<Item = (&'static str, &'static str)> + 'a {
    let caller = evidence.caller;
    let namespaces = if caller.may_make_namespaces || caller.uid == 0 {
        namespaces::AS_ROOT
    } else {
        namespaces::AS_USER
    };
    let features = FEATURES
        .iter()
        .filter(|feature| is_essential(feature, &evidence.machine))
        .map(|feature| (feature.trial, feature.id, feature.title));
    [(Trial::Namespaces, namespaces, "namespaces")]
        .into_iter()
        .chain(features)
        .filter(|(trial, ..)| !tried.outcomes.get(trial).is_some_and(Outcome::works))
        .map(|(_, id, title)| (id, title))
}

fn missing(tried: &ProbeResults, evidence: &Evidence) -> String {
    let titles: Vec<_> = lacks(tried, evidence).map(|(_, title)| title).collect();
    // Without a namespace nothing else was tried.
    match titles.first() {
        Some(&first @ "namespaces") => first.to_owned(),
        _ => titles.join(", "),
    }
}

/// A sentence that names what is missing, and the advice for the first of it.
fn cannot(tried: &ProbeResults, evidence: &Evidence, checks: &[Check]) -> String {
    let what = missing(tried, evidence);
    let sentence = format!("This machine cannot run the built-in plan, because it lacks {what}.");
    let first = lacks(tried, evidence).next();
    let check = first.and_then(|(id, _)| checks.iter().find(|check| check.id == id));
    match check.and_then(|check| check.advice.as_deref()) {
        Some(advice) => format!("{sentence} What to do: {advice}."),
        None => sentence,
    }
}
