//! Findings about paths, from the probes' reports.

mod checksums;
mod directions;
mod loss;
mod members;
mod no_answer;
mod sizes;
mod tcp;
mod too_big;
mod workaround;

use wirecost_audit::{Finding, Severity};

use crate::finding::PATH_FINDINGS;
use crate::report::{FlowReport, LossLocation, PathEnd, PathReport};

pub(crate) use crate::observations::TAG_BYTES;
pub use loss::loss_note;
pub(crate) use no_answer::refusal;
pub(crate) use too_big::too_big_dropped_here;
pub(crate) use workaround::route_mtu_workaround;

/// Every finding about paths, the worst first. `paths` holds both directions where both were probed.
pub fn judge(paths: &[PathReport]) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in paths {
        let back = opposite(paths, path);
        no_answer::judge(path, back, &mut found);
        sizes::judge(path, back, &mut found);
        checksums::segments(path, &mut found);
        tcp::judge(path, back, &mut found);
        too_big::sender_fragmentation(path, &mut found);
        loss::judge(path, &mut found);
    }
    directions::judge(paths, &mut found);
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

/// The report on the opposite direction, where it was probed.
pub(crate) fn opposite<'a>(paths: &'a [PathReport], path: &PathReport) -> Option<&'a PathReport> {
    paths
        .iter()
        .find(|back| back.from == path.to && back.to == path.from)
}

/// Adds a finding about the sender of a path.
pub(crate) fn add(
    found: &mut Vec<Finding>,
    id: &'static str,
    path: &PathReport,
    evidence: String,
    fix: Vec<String>,
) {
    add_on(found, (id, None), path, evidence, fix);
}

/// Adds a finding about a device of the sender of a path.
fn add_on(
    found: &mut Vec<Finding>,
    (id, device): (&'static str, Option<String>),
    path: &PathReport,
    evidence: String,
    fix: Vec<String>,
) {
    let kind = PATH_FINDINGS.iter().find(|kind| kind.id == id);
    debug_assert!(kind.is_some(), "{id} is not in the catalogue");
    found.push(Finding {
        id,
        severity: kind.map_or(Severity::Warning, |kind| kind.severity),
        host: path.from.host.clone(),
        device,
        evidence,
        fix,
        elsewhere: false,
    });
}

pub(crate) fn ends(path: &PathReport) -> String {
    let end = |end: &PathEnd| {
        let address = end.address.to_string();
        if end.host == address {
            address
        } else {
            format!("{} ({address})", end.host)
        }
    };
    format!("{} to {}", end(&path.from), end(&path.to))
}

/// The source ports of flows for a message: at most eight, then how many more.
fn ports(flows: &[&FlowReport]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = flows
        .iter()
        .take(SHOWN)
        .map(|flow| flow.port.to_string())
        .collect();
    let more = flows.len().saturating_sub(SHOWN);
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{rest}", shown.join(", "))
}

/// A sentence to append: between which two hops packets are lost. Empty where that is unknown.
pub(crate) fn place(loss_location: Option<&LossLocation>) -> String {
    let Some(LossLocation { after, before }) = loss_location else {
        return String::new();
    };
    let after = after.map_or_else(
        || "this host".to_owned(),
        |(ttl, address)| format!("{address} (hop {ttl})"),
    );
    let before = before.map_or_else(
        || "the destination".to_owned(),
        |(ttl, address)| format!("{address} (hop {ttl})"),
    );
    format!(". They are lost between {after} and {before}")
}

/// The device that packets leave through, for a command; `DEV` where it is unknown.
fn device_of(path: &PathReport) -> &str {
    let leaving = path.leaving.as_ref();
    leaving.map_or("DEV", |leaving| &leaving.device)
}
