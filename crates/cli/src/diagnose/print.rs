//! The result of a diagnosis, as JSON document and as text.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use wirecost_answer::diagnosis::Diagnosis;

use crate::screen::wrap;

/// What is said of a path where no change helps.
const NOTHING: &str = "Nothing to gain from what was tried.";

/// The result of a diagnosis.
#[derive(Debug, Serialize)]
pub(super) struct DiagnosisResult {
    /// The hosts as given: the sender, then the receiver.
    pub(super) hosts: [String; 2],
    /// Median throughput of one TCP stream without changes, Gbit/s; `None` where full-size packets do not pass.
    pub(super) gbit_per_s: Option<f64>,
    /// What limits the path without changes.
    pub(super) now: Diagnosis,
    /// Findings of the check of the path: id and evidence.
    pub(super) findings: Vec<(String, String)>,
    /// The changes that were tried, the best first.
    pub(super) tried: Vec<TriedChange>,
    /// What was measured in the same rounds and is no change: the other direction, smaller messages.
    pub(super) compared: Vec<Compared>,
    /// Labels of the changes that there was no time for.
    pub(super) not_tried: Vec<String>,
    /// What reaching the hosts and the check of the path took, seconds.
    pub(super) check_s: f64,
    /// What all of it may take, seconds.
    pub(super) time_s: f64,
    /// Whether settings of the hosts were allowed to be tried.
    pub(super) changed: bool,
    /// Whether the run was completed, and not stopped early.
    pub(super) complete: bool,
    /// The run directory.
    pub(super) record: PathBuf,
}

/// A change and its result.
#[derive(Debug, Serialize)]
pub(super) struct TriedChange {
    pub(super) switch: String,
    pub(super) judged: ChangeVerdict,
    /// Throughput with the change divided by throughput without it; `low` and `high` are its 95 % confidence interval.
    pub(super) ratio: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// Why throughput with and without the change is not comparable, or why no sample with it is valid.
    pub(super) reason: Option<String>,
    pub(super) commands: Vec<String>,
}

/// A comparison for information: not a change to apply.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    pub(super) what: String,
    /// Its median throughput, Gbit/s; `None` without a valid sample.
    pub(super) gbit_per_s: Option<f64>,
    /// Its throughput divided by that of the path as it is; `low` and `high` are the 95 % confidence interval.
    pub(super) ratio: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    /// Why the two are not comparable, or why no sample is valid.
    pub(super) reason: Option<String>,
}

impl Compared {
    fn words(&self) -> String {
        let rate = self.gbit_per_s.map_or("not measured".to_owned(), rate);
        let times = match (self.ratio, self.low, self.high) {
            (Some(ratio), Some(low), Some(high)) => {
                format!(" ({ratio:.2} times as fast [{low:.2}, {high:.2}])")
            }
            _ => String::new(),
        };
        let reason = self.reason.as_ref().map(|why| format!(": {why}"));
        format!(
            "For comparison, {}: {rate}{times}{}",
            self.what,
            reason.unwrap_or_default()
        )
    }
}

/// What the confidence interval says about a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangeVerdict {
    /// The change gains more than the margin.
    Helps,
    /// The change helps because the kernel switches another feature off with it, whose own change helps too.
    Follows,
    /// The change loses more than the margin: the present setting is right.
    Hurts,
    /// The change makes no difference beyond the margin.
    NoDifference,
    /// The interval is too wide to tell, or the samples cannot be compared.
    NotKnown,
}

impl DiagnosisResult {
    pub(super) fn judged(&self, judged: ChangeVerdict) -> impl Iterator<Item = &TriedChange> {
        self.tried
            .iter()
            .filter(move |tried| tried.judged == judged)
    }

    fn names(&self, judged: ChangeVerdict) -> Option<String> {
        let names: Vec<&str> = self.judged(judged).map(|tried| &*tried.switch).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// A host's address as a word of a shell command.
fn shell_word(host: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@:=%.-_/".contains(c);
    if host.chars().all(is_plain) {
        host.to_owned()
    } else {
        format!("'{}'", host.replace('\'', r"'\''"))
    }
}

fn rate(gbit_per_s: f64) -> String {
    if gbit_per_s < 1.0 {
        format!("{:.1} Mbit/s", gbit_per_s * 1e3)
    } else {
        format!("{gbit_per_s:.2} Gbit/s")
    }
}

pub(super) fn text(found: &DiagnosisResult, width: usize) -> String {
    let [a, b] = &found.hosts;
    let rate = found.gbit_per_s.map_or("Not measured".to_owned(), rate);
    let mut lines = vec![wrap(
        &format!(
            "{rate} from {a} to {b} (one TCP stream). Limit: {} ({}).",
            found.now.limit.words(),
            found.now.evidence
        ),
        "",
        width,
    )];
    for (id, evidence) in &found.findings {
        lines.push(wrap(
            &format!("The check found {id}: {evidence}"),
            "  ",
            width,
        ));
    }
    if !found.findings.is_empty() {
        lines.push(format!(
            "`wirecost check {} {}` has the commands that fix this.",
            shell_word(a),
            shell_word(b)
        ));
    }
    let mut helps = found.judged(ChangeVerdict::Helps).peekable();
    if helps.peek().is_some() {
        lines.push("What helps, best first:".to_owned());
    } else if found.complete
        && !found.tried.is_empty()
        && found.judged(ChangeVerdict::NotKnown).next().is_none()
        && found.gbit_per_s.is_some()
    {
        lines.push(NOTHING.to_owned());
    }
    for tried in helps {
        let [ratio, low, high] =
            [tried.ratio, tried.low, tried.high].map(Option::unwrap_or_default);
        lines.push(format!(
            "  x{ratio:.2} [{low:.2}, {high:.2}]  {}",
            tried.switch
        ));
        lines.extend(
            tried
                .commands
                .iter()
                .map(|command| format!("      {command}")),
        );
    }
    let lists = [
        (
            ChangeVerdict::Follows,
            "Helps only because another feature is switched off with it, which is listed above",
        ),
        (
            ChangeVerdict::Hurts,
            "Right as it is; the change would cost more than 5 %",
        ),
        (ChangeVerdict::NoDifference, "Makes no difference worth 5 %"),
        (ChangeVerdict::NotKnown, "Not known after this time"),
    ];
    for (judged, head) in lists {
        lines.extend(
            found
                .names(judged)
                .map(|names| wrap(&format!("{head}: {names}."), "  ", width)),
        );
    }
    lines.extend(why_not_known(found).map(|why| wrap(&why, "  ", width)));
    let compared = found.compared.iter().map(Compared::words);
    lines.extend(compared.map(|words| wrap(&words, "  ", width)));
    lines.extend(notes(found, width));
    lines.push(format!("Record: {}", found.record.display()));
    lines.join("\n")
}

/// What was left out, and why.
fn notes(found: &DiagnosisResult, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if found.check_s >= found.time_s {
        let words = format!(
            "The check took {:.0} s, all of the time (--time): only the unchanged path was measured.",
            found.check_s
        );
        lines.push(wrap(&words, "  ", width));
    }
    if !found.not_tried.is_empty() {
        let names = found.not_tried.join(", ");
        let words = format!("Not tried in this time (--time gives more): {names}.");
        lines.push(wrap(&words, "  ", width));
    }
    if !found.changed {
        lines.push(wrap(
            "Settings of the hosts were not tried: --allow-host-changes tries the offloads, receive steering, queues and MTU of \
             the path's devices, one at a time, and undoes each.",
            "",
            width,
        ));
    }
    if !found.complete {
        lines.push("The diagnosis was stopped early.".to_owned());
    }
    lines
}

/// Why changes are not known: each reason once, with its changes; more rounds help where there is none.
fn why_not_known(found: &DiagnosisResult) -> impl Iterator<Item = String> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tried in found.judged(ChangeVerdict::NotKnown) {
        let reason = tried.reason.as_deref().unwrap_or_default();
        reasons.entry(reason).or_default().push(&tried.switch);
    }
    let words = |(reason, switches): (&str, Vec<&str>)| {
        if reason.is_empty() {
            "A longer --time gives more rounds.".to_owned()
        } else {
            format!("Why {} is not known: {reason}", switches.join(", "))
        }
    };
    reasons.into_iter().map(words)
}

#[cfg(test)]
mod tests;
