//! The text of a check's result: a line for each path and direction, then the findings with the commands that fix them.

use std::fmt::Write as _;

use wirecost_check::{DirectionReport, Document, EncapsulationReport, Finding, PathFlowReport};

use super::{details, simulate};
use crate::screen::wrap;

/// Flows of a direction with the same result.
struct Group<'a> {
    path: &'a PathFlowReport,
    flows: u32,
}

/// The result as text, in lines of `width` columns; `with_list` adds the checklist for large frames.
pub(super) fn text(document: &Document, with_list: bool, width: usize) -> String {
    let mut text = String::new();
    paths(&mut text, document, width);
    if let Some(encapsulation) = &document.encapsulation {
        let _ = write!(text, "\n{}", wrap(&guests(encapsulation), "  ", width));
    }
    for note in &document.notes {
        let _ = write!(text, "\n{}", wrap(&format!("note: {note}"), "  ", width));
    }
    for unread in &document.unread {
        let line = format!(
            "not read on {}: {}: {}",
            unread.host, unread.what, unread.why
        );
        let _ = write!(text, "\n{}", wrap(&line, "  ", width));
    }
    if document.findings.iter().all(|it| it.elsewhere) {
        text.push_str("\n\nnothing was found");
    }
    let mut elsewhere = document
        .findings
        .iter()
        .filter(|it| it.elsewhere)
        .peekable();
    for finding in document.findings.iter().filter(|it| !it.elsewhere) {
        let _ = write!(text, "\n\n{}", found(finding, width));
    }
    if elsewhere.peek().is_some() {
        text.push_str("\n\nelsewhere on these hosts, not on the path between the two:");
    }
    for finding in elsewhere {
        let _ = write!(text, "\n\n{}", found(finding, width));
    }
    text.push_str(&details::traces(document, width));
    text.push_str(&details::recommended(document, width));
    text.push_str(&simulate::text(&document.simulations, width));
    if with_list {
        list(&mut text, document, width);
    }
    text
}

fn paths(text: &mut String, document: &Document, width: usize) {
    let mut lines: Vec<[String; 3]> = Vec::new();
    for direction in &document.directions {
        for group in groups(document, direction) {
            let of = if group.flows == direction.flows {
                String::new()
            } else {
                format!(" on {} of {} flows", group.flows, direction.flows)
            };
            let mtu = group.path.mtu.map_or("-".to_owned(), |mtu| mtu.to_string());
            lines.push([
                format!(
                    "{} to {}",
                    end(document, &direction.from),
                    end(document, &direction.to)
                ),
                mtu,
                format!("{}{of}", words(document, group.path, direction)),
            ]);
        }
    }
    let widest = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let [first, second, third] = [0, 1, 2].map(|column| widest(column).unwrap_or(0));
    // Where the lines are too long, the path MTUs are printed below the pair of hosts.
    let fits = first + 2 + second + 2 + third <= width;
    for (index, [ends, mtu, words]) in lines.iter().enumerate() {
        let start = if index > 0 { "\n" } else { "" };
        let below = wrap(
            &format!("  {mtu:>second$}  {words}"),
            &" ".repeat(second + 4),
            width,
        );
        let _ = if fits {
            write!(text, "{start}{ends:first$}{below}")
        } else {
            write!(text, "{start}{}\n{below}", wrap(ends, "  ", width))
        };
    }
    let _ = write!(text, "\n{}", wrap(&effort(document), "  ", width));
}

/// A host as given, with its data-plane address.
fn end(document: &Document, name: &str) -> String {
    let host = document.hosts.iter().find(|host| host.host == name);
    match host {
        Some(host) if host.agent => {
            let device = host.device.as_ref();
            let device = device.map_or_else(String::new, |device| format!("%{device}"));
            format!("{name} ({}{device})", host.address)
        }
        _ => name.to_owned(),
    }
}

/// The flows of a direction, grouped by path MTU and its cause, the smallest path MTU first.
fn groups<'a>(document: &'a Document, direction: &DirectionReport) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let flows = document
        .paths
        .iter()
        .filter(|path| path.from == direction.from && path.to == direction.to);
    for path in flows {
        let same = groups.iter_mut().find(|group| {
            (group.path.mtu, group.path.kind, group.path.limit) == (path.mtu, path.kind, path.limit)
        });
        match same {
            Some(group) => group.flows += 1,
            None => groups.push(Group { path, flows: 1 }),
        }
    }
    groups.sort_by_key(|group| group.path.mtu);
    groups
}

/// Why no larger packet passes.
fn words(document: &Document, path: &PathFlowReport, direction: &DirectionReport) -> String {
    let expect = document.asked.expect;
    let to = document.hosts.iter().find(|host| host.host == path.to);
    match (path.kind, path.signalled_by, path.limit) {
        ("ok", ..) if expect.is_none() => "the MTU of the sender's route".to_owned(),
        ("ok", ..) => "as much as expected".to_owned(),
        ("device", ..) if path.mtu >= Some(direction.wanted) => {
            "the MTU of the sender's device".to_owned()
        }
        ("device", _, Some(mtu)) => format!("the sender's device sends no more than {mtu}"),
        ("signalled", Some(by), Some(mtu)) if to.is_some_and(|to| to.address == by) => {
            format!("a tunnel on the path reports an MTU of {mtu}")
        }
        ("signalled", Some(by), Some(mtu)) => {
            format!("{by} reports an MTU of {mtu}")
        }
        ("fragmented", _, Some(largest)) if direction.narrow.is_some() => {
            format!(
                "the way back is narrower: larger echoes come back in fragments of at most {largest}"
            )
        }
        ("fragmented", _, Some(largest)) => {
            format!("larger packets arrive in fragments of at most {largest}")
        }
        ("silent", ..) => "PMTU black hole: larger packets are dropped without ICMP".to_owned(),
        ("dead", ..) if !document.tcp.is_empty() => "no connection".to_owned(),
        ("dead", ..) => "no answer, not even to small packets".to_owned(),
        ("undecided", ..) => {
            "passes; the probes could not tell whether larger packets pass".to_owned()
        }
        (other, ..) => other.to_owned(),
    }
}

fn effort(document: &Document) -> String {
    let probes: u32 = document.directions.iter().map(|way| way.probes).sum();
    let met = document.directions.iter().map(|way| way.paths_met_95).min();
    let flows = document.directions.iter().map(|way| way.flows).max();
    if let ([tcp, ..], 0) = (&document.tcp[..], probes) {
        return format!("over TCP to port {} in {:.2} s", tcp.port, document.seconds);
    }
    let mut text = format!("{probes} datagrams in {:.2} s", document.seconds);
    let agents = document.hosts.iter().all(|host| host.agent);
    if let (Some(met @ 1..), Some(flows), true) = (met, flows, agents) {
        let _ = write!(
            text,
            "; {flows} flow{} each way: with 95 % probability they cover every one of up to {met} equal path{}",
            if flows == 1 { "" } else { "s" },
            if met == 1 { "" } else { "s" }
        );
    }
    text
}

fn guests(said: &EncapsulationReport) -> String {
    let EncapsulationReport {
        format,
        guest_mtu,
        underlay_mtu,
        guests,
        ..
    } = said;
    let fits = guest_mtu.map_or_else(
        || "no guest MTU fits".to_owned(),
        |mtu| format!("guests can have an MTU of {mtu}"),
    );
    let needs = underlay_mtu.map_or_else(String::new, |mtu| {
        format!("; guests of {guests} would need {mtu} here")
    });
    format!("behind {format} {fits}{needs}")
}

fn found(finding: &Finding, width: usize) -> String {
    let device = finding
        .device
        .as_ref()
        .map_or_else(String::new, |device| format!(", {device}"));
    let mut text = format!(
        "{}: {} on {}{device}",
        finding.severity.word(),
        finding.id,
        finding.host
    );
    let evidence = wrap(&format!("  {}", finding.evidence), "  ", width);
    let _ = write!(text, "\n{evidence}");
    for line in &finding.fix {
        // Commands are not wrapped, so that they can be copied.
        let line = if line.starts_with('#') {
            wrap(&format!("    {line}"), "    # ", width)
        } else {
            format!("    {line}")
        };
        let _ = write!(text, "\n{line}");
    }
    text
}

fn list(text: &mut String, document: &Document, width: usize) {
    for of_host in &document.checklist {
        let _ = write!(text, "\n\nfor large frames, {}", of_host.host);
        for item in &of_host.items {
            let line = format!(
                "  {:10}  {}: {}",
                item.state.words(),
                item.what,
                item.evidence
            );
            let _ = write!(text, "\n{}", wrap(&line, "              ", width));
        }
    }
}
