//! Builds the document of a check from the agents' answers.

use std::time::Duration;

use wirecost_check::{
    CheckParameters, Checklist, DirectionReport, Document, EncapsulationReport, FORMAT, HostReport,
    ONE_SIDED_LIMITS, PathFlowReport, PathReport, Stream, TcpPortReport, UnreadReport, assess,
    checklist, recommend, tcp_notes,
};

use super::session::CheckResults;
use super::{Check, CheckTarget};

pub(super) fn document(
    asked: &Check,
    mut results: CheckResults,
    started: String,
    took: Duration,
) -> Document {
    let findings = assess(
        &results.paths,
        results.one_sided.as_ref(),
        results.tcp.as_ref(),
        &mut results.hosts,
    );
    let one_sided = results.one_sided.as_ref();
    let every: Vec<&PathReport> = results
        .paths
        .iter()
        .chain(one_sided.map(|report| &report.path))
        .chain(results.tcp.as_ref().map(|report| &report.path))
        .collect();
    // The MTU that every flow carries in both directions: unknown where the MTU of one direction is.
    let back = |path: &PathReport| {
        let mut others = every.iter().copied();
        others.find(|back| back.from == path.to && back.to == path.from)
    };
    let carries: Option<Vec<u32>> = every.iter().map(|path| path.advised(back(path))).collect();
    let carries = carries.and_then(|mtus| mtus.into_iter().min());
    let wanted = every.iter().map(|path| path.required.bytes()).max();
    let wanted = asked.expect.or(wanted).unwrap_or(0);
    let stack = asked.encapsulation.as_ref();
    let mut notes = notes(asked, &results);
    let encapsulation = stack.and_then(|stack| {
        let address = results.ends[0].0.address;
        EncapsulationReport::new(stack, address, carries, wanted)
            .map_err(|error| notes.push(error.to_string()))
            .ok()
    });
    let guests = match (stack, &encapsulation) {
        (Some(stack), Some(_)) => {
            wirecost_check::guests_of(stack, results.ends[0].0.address, wanted)
        }
        _ => Some(wanted),
    };
    let checklists = guests.map_or_else(Vec::new, |guest_mtu| {
        let wanted = checklist::Requirements {
            guest_mtu,
            underlay_mtu: wanted,
            proven: carries,
        };
        let of_host = |host: &wirecost_check::AuditedHost| Checklist {
            host: host.stack.host.clone(),
            items: checklist::checklist(&host.stack, wanted),
        };
        results.hosts.iter().map(of_host).collect()
    });
    let unread = results.hosts.iter().flat_map(|host| {
        host.stack.unread.iter().map(|unread| UnreadReport {
            host: host.stack.host.clone(),
            what: unread.what.clone(),
            why: unread.why.clone(),
        })
    });
    Document {
        format: FORMAT,
        program_version: env!("CARGO_PKG_VERSION"),
        started,
        seconds: took.as_secs_f64(),
        asked: CheckParameters {
            expect: asked.expect,
            flows: asked.flows,
            port: asked.port,
            datagrams_per_s: asked.datagrams_per_s,
            bytes_per_s: asked.bytes_per_s,
        },
        hosts: hosts(asked, &results),
        paths: every
            .iter()
            .flat_map(|path| PathFlowReport::of(path))
            .collect(),
        directions: results
            .paths
            .iter()
            .map(DirectionReport::of)
            .chain(one_sided.map(DirectionReport::from_one_side))
            .chain(
                results
                    .tcp
                    .as_ref()
                    .map(|report| DirectionReport::of(&report.path)),
            )
            .collect(),
        encapsulation,
        recommendation: asked
            .recommend
            .then(|| recommend(&every, &results.hosts, stack))
            .flatten(),
        tcp: results
            .tcp
            .iter()
            .map(|report| TcpPortReport::new(&report.path, &report.shown))
            .collect(),
        traces: results.traces,
        findings,
        simulations: results.simulations,
        checklist: checklists,
        unread: unread.collect(),
        notes,
    }
}

fn hosts(asked: &Check, results: &CheckResults) -> Vec<HostReport> {
    let ends = results.ends.iter().zip(devices(asked));
    ends.map(|((end, agent), device)| HostReport {
        device,
        host: end.host.clone(),
        address: end.address,
        agent: *agent,
    })
    .collect()
}

/// The devices of link-local addresses, by end.
fn devices(asked: &Check) -> [Option<String>; 2] {
    match &asked.to {
        CheckTarget::Host(to) => [asked.from.device.clone(), to.device.clone()],
        CheckTarget::Address(_) => [None, None],
        CheckTarget::OnLink(_, device) => {
            let own = asked.from.device.as_ref().unwrap_or(device);
            [Some(own.clone()), None]
        }
    }
}

fn notes(asked: &Check, results: &CheckResults) -> Vec<String> {
    let mut notes = Vec::new();
    if results.one_sided.is_some() {
        notes.push(ONE_SIDED_LIMITS.to_owned());
    }
    notes.extend(results.tcp.iter().flat_map(tcp_notes));
    let port = asked.port.unwrap_or(0);
    if !results.tapped.is_empty() {
        notes.push(format!(
            "port {port} is in use on {}, by a tunnel or a program: probes were captured with a packet socket, before that host's own \
             filters",
            results.tapped.join(" and ")
        ));
    }
    for path in &results.paths {
        if let Some(mapped) = path.mapped {
            notes.push(format!(
                "{} is behind address translation (NAT): {} sees {} as {mapped}; the way back was probed through that mapping",
                path.from.host, path.to.host, path.from.address
            ));
        }
        notes.extend(wirecost_check::loss_note(path));
        let stalled = matches!(
            path.stream,
            Some(Stream::SmallStalled | Stream::FullStalled)
        );
        let told = path
            .segments
            .is_some_and(|segments| segments.fails.is_some());
        if stalled && path.bad_segments == 0 && !told {
            notes.push(format!(
                "{} to {}: datagrams pass, and a short TCP stream did not end in time, with no wrong checksum: loss, \
                 or a filter",
                path.from.host, path.to.host
            ));
        }
    }
    for (host, why) in &results.untestable {
        notes.push(format!(
            "port {port} is in use on {host}, and probes went to another port there, so that a filter on {port} was not \
             tested: {why}"
        ));
    }
    notes
}
