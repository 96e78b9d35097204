//! What a path's answers mean.

use wirecost_audit::{Finding, Severity};
use wirecost_pmtu::{Share, flows_to_meet_one};

use crate::finding::PATH_FINDINGS;
use crate::report::{FlowReport, Hint, Kind, PathReport, Stream, Stretch, Wanted};

/// Every finding about paths, the worst first. `paths` holds both directions where both were probed.
pub fn judge(paths: &[PathReport]) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in paths {
        silence(path, &mut found);
        sizes(path, &mut found);
        segments(path, &mut found);
    }
    directions(paths, &mut found);
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    found
}

pub(crate) fn add(
    found: &mut Vec<Finding>,
    id: &'static str,
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
        device: None,
        evidence,
        fix,
    });
}

pub(crate) fn ends(path: &PathReport) -> String {
    format!(
        "{} ({}) to {} ({})",
        path.from.host, path.from.address, path.to.host, path.to.address
    )
}

/// Ports as a reader wants them: at most eight, then how many more.
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

fn silence(path: &PathReport, found: &mut Vec<Finding>) {
    let dead: Vec<_> = of_kind(path, |kind| kind == Kind::Dead);
    let undecided: Vec<_> = of_kind(path, |kind| kind == Kind::Undecided);
    if !dead.is_empty() {
        let (evidence, fix) = death(path, &dead);
        add(found, "path-dead", path, evidence, fix);
    }
    if !undecided.is_empty() {
        let least = undecided.iter().filter_map(|flow| flow.mtu).min();
        let passes = least.map_or_else(String::new, |mtu| format!("; {mtu} bytes pass"));
        add(
            found,
            "path-undecided",
            path,
            format!(
                "{}: on {} of {} flows too much is lost, or the limit on time or datagrams was reached{passes}: source \
                 ports {}",
                ends(path),
                undecided.len(),
                path.flows.len(),
                ports(&undecided)
            ),
            vec![
                "# look for random loss first: ip -s link, and the counters of the switches".into(),
            ],
        );
    }
}

/// What it means that flows get no answer, and where to look.
fn death(path: &PathReport, dead: &[&FlowReport]) -> (String, Vec<String>) {
    let (ends, port) = (ends(path), path.port);
    let route = format!(
        "ip route get {} from {}",
        path.to.address, path.from.address
    );
    let rules = "nft list ruleset".to_owned();
    let others = "# and what filters between the hosts: security groups, a distributed firewall, network policies"
        .to_owned();
    if dead.len() < path.flows.len() {
        let evidence = format!(
            "{ends}: {} of {} flows get no answer, not even to small packets: source ports {}",
            dead.len(),
            path.flows.len(),
            ports(dead)
        );
        let look = "# one of several equal paths is dead: look at each link or member".to_owned();
        return (evidence, vec![look, rules]);
    }
    match path.hint {
        Some(Hint::NoRoute) => (
            format!("{ends}: the sender has no route to {}", path.to.address),
            vec![route, "# then the missing route or address".to_owned()],
        ),
        Some(Hint::OtherPort(other)) => (
            format!(
                "{ends}: no answer on UDP port {port}, not even to small packets, while port {other} is answered: \
                 something drops UDP to port {port}"
            ),
            vec![rules, others],
        ),
        Some(Hint::Echo) => (
            format!(
                "{ends}: no answer to UDP, not even to small packets, while echo requests (ICMP) are answered: something \
                 drops UDP"
            ),
            vec![rules, others],
        ),
        None => (
            format!("{ends}: no answer, not even to small packets, nor to echo requests (ICMP)"),
            vec![route, rules, others],
        ),
    }
}

fn of_kind(path: &PathReport, wanted: impl Fn(Kind) -> bool) -> Vec<&FlowReport> {
    path.flows.iter().filter(|flow| wanted(flow.kind)).collect()
}

fn place(stretch: Option<&Stretch>) -> String {
    let Some(Stretch { after, before }) = stretch else {
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

/// What stands before a command that helps as long as the path is as it is.
pub(crate) const UNTIL: &str = "# until it does, here and likewise on the other host: ";

/// Has this host send less to that destination, by the way that packets take already.
pub(crate) fn lower(path: &PathReport, mtu: u32) -> Option<String> {
    let leaving = path.leaving.as_ref()?;
    let six = if path.to.address.is_ipv6() { "-6 " } else { "" };
    let via = leaving
        .router
        .map_or_else(String::new, |router| format!("via {router} "));
    Some(format!(
        "{UNTIL}ip {six}route replace {} {via}dev {} mtu {mtu}",
        path.to.address, leaving.device
    ))
}

/// The device that packets leave through, for a command.
fn device_of(path: &PathReport) -> &str {
    let leaving = path.leaving.as_ref();
    leaving.map_or("DEV", |leaving| &leaving.device)
}

fn sizes(path: &PathReport, found: &mut Vec<Finding>) {
    let failing: Vec<&FlowReport> = path.failing().collect();
    let told = path.flows.iter().filter(|flow| flow.kind.is_told()).count();
    let Some(first) = failing.first() else {
        return;
    };
    let wanted = path.wanted.bytes();
    let carries = first
        .mtu
        .map_or_else(|| "less".to_owned(), |mtu| format!("{mtu} bytes"));
    let lower = first.mtu.and_then(|mtu| lower(path, mtu));
    let raise = format!(
        "# every switch and router on that way to {wanted} or more (Ethernet: often 9216): see docs/check.md"
    );
    let fix: Vec<String> = [raise].into_iter().chain(lower).collect();
    if path.bad_checksums >= BAD_CHECKSUMS && first.kind == Kind::Silent {
        checksums(path, &carries, found);
        return;
    }
    if failing.len() < told {
        several(path, &failing, told as u32, found);
        return;
    }
    match first.kind {
        Kind::Silent => {
            let evidence = format!(
                "{}: {carries} pass and no more, {wanted} vanish without a message{}",
                ends(path),
                place(path.stretch.as_ref())
            );
            add(found, "path-drops-silently", path, evidence, fix);
        }
        Kind::Signalled { by, mtu } if Some(mtu) != first.mtu => {
            add(
                found,
                "signal-names-wrong-size",
                path,
                format!(
                    "{}: {carries} pass and no more, {by} says {mtu}: {}",
                    ends(path),
                    if Some(mtu) > first.mtu {
                        "whoever believes it goes on to lose packets"
                    } else {
                        "whoever believes it sends more packets than needed"
                    }
                ),
                vec![format!("# the device of {by} that sends it, or what it forwards to")],
            );
        }
        Kind::Signalled { by, mtu } => {
            let evidence = format!(
                "{}: {carries} pass, and {by} says so ({mtu}): it works while that message arrives",
                ends(path)
            );
            add(found, "path-signals", path, evidence, fix.clone());
            expected(path, &carries, fix, found);
        }
        Kind::Fragmented { largest } => add(
            found,
            "path-fragments",
            path,
            format!(
                "{}: {carries} arrive whole, larger ones in fragments of at most {largest}, although they forbid it",
                ends(path)
            ),
            vec![
                "# the router or tunnel end that clears DF (`df_default=false`, `clear-df`, an `ip frag-off set 0` rule)"
                    .into(),
            ],
        ),
        _ => expected(path, &carries, fix, found),
    }
}

/// So many wrong checksums are the path's: others' packets have one now and then, and a size is called lost after
/// seven copies at least.
const BAD_CHECKSUMS: u64 = 7;

fn checksums(path: &PathReport, carries: &str, found: &mut Vec<Finding>) {
    add(
        found,
        "bad-checksums",
        path,
        format!(
            "{}: {carries} pass and no more; larger ones arrive with a wrong UDP checksum, {} of them, and are dropped by \
             the receiving host",
            ends(path),
            path.bad_checksums
        ),
        offloads_off(path),
    );
}

fn offloads_off(path: &PathReport) -> Vec<String> {
    let device = device_of(path);
    vec![
        "# a card, its driver or a virtual switch on the way computes it wrongly: switch its offload off, one by one, and \
         check again"
            .into(),
        format!(
            "ethtool -K {device} tx-checksum-ip-generic off tx-checksum-ipv4 off tx-checksum-ipv6 off"
        ),
        format!("ethtool -K {device} tx-tcp-segmentation off tx-tcp6-segmentation off"),
        format!(
            "ethtool -K {device} tx-udp_tnl-csum-segmentation off tx-udp_tnl-segmentation off"
        ),
        "# at the receiving host: nstat -az UdpInCsumErrors Udp6InCsumErrors TcpInCsumErrors".into(),
    ]
}

/// So many segments with a wrong checksum are the stream's own; one or two may be others'.
const BAD_SEGMENTS: u64 = 3;

/// A stream that only stalls proves nothing: loss does that too.
fn segments(path: &PathReport, found: &mut Vec<Finding>) {
    let changed = path.stream == Some(Stream::Changed);
    if path.bad_segments < BAD_SEGMENTS && !changed {
        return;
    }
    let what = if changed {
        "what a TCP stream carries arrives changed".to_owned()
    } else {
        format!(
            "datagrams of {} bytes pass, and of a TCP stream {} segments arrive with a wrong checksum and are dropped by the \
             receiving host",
            path.wanted.bytes(),
            path.bad_segments
        )
    };
    let evidence = format!("{}: {what}", ends(path));
    add(found, "bad-checksums", path, evidence, offloads_off(path));
}

/// What the user expects is an error to miss, whoever is the reason.
fn expected(path: &PathReport, carries: &str, fix: Vec<String>, found: &mut Vec<Finding>) {
    let Wanted::Expected(wanted) = path.wanted else {
        return;
    };
    let device = path.failing().find_map(|flow| match flow.kind {
        Kind::Device { mtu } => Some(mtu),
        _ => None,
    });
    let (why, fix) = match device {
        Some(mtu) => (
            format!(": this host's own device takes {mtu}"),
            vec![format!("ip link set dev {} mtu {wanted}", device_of(path))],
        ),
        None => (String::new(), fix),
    };
    add(
        found,
        "expected-size-fails",
        path,
        format!(
            "{}: {wanted} bytes were expected, {carries} pass{why}",
            ends(path)
        ),
        fix,
    );
}

fn several(path: &PathReport, failing: &[&FlowReport], told: u32, found: &mut Vec<Finding>) {
    let Some(share) = Share::new(failing.len() as u32, told) else {
        return;
    };
    let narrow = failing.iter().filter_map(|flow| flow.mtu).min();
    let carries = narrow.map_or_else(|| "less".to_owned(), |mtu| format!("{mtu}"));
    let members = match share.one_in {
        Some(n) if n > 1 => format!("one bad member of about {n}"),
        _ => "more than half of the members are bad".to_owned(),
    };
    add(
        found,
        "one-path-of-several",
        path,
        format!(
            "{}: {} of {} flows carry {carries}, the others {}: {members} ({:.0} % of the flows, 95 % interval {:.0} to \
             {:.0}). Source ports {}{}",
            ends(path),
            share.failing,
            share.of,
            path.wanted.bytes(),
            share.share * 100.0,
            share.between.0 * 100.0,
            share.between.1 * 100.0,
            ports(failing),
            place(path.stretch.as_ref())
        ),
        vec![
            "# the one link or member of a bundle that is narrower: look at each, as `cat /proc/net/bonding/bond0` or \
             the switch's `show port-channel`"
                .into(),
        ],
    );
    let needed = share.one_in.map_or(0, |n| flows_to_meet_one(n, 0.99));
    if needed > told {
        add(
            found,
            "few-flows",
            path,
            format!(
                "{}: {told} flows meet each of {} equal paths at 99 %; other members may be bad without having been met",
                ends(path),
                path.paths_met.1
            ),
            vec![format!("# ask again with --flows {needed} or more")],
        );
    }
}

/// What a device takes beyond its MTU when it receives, for a VLAN tag (net/core/dev.c, `__is_skb_forwardable`).
const TAG_BYTES: u32 = 4;

fn directions(paths: &[PathReport], found: &mut Vec<Finding>) {
    for (at, there) in paths.iter().enumerate() {
        let back = paths[at + 1..]
            .iter()
            .find(|back| back.from == there.to && back.to == there.from);
        let sizes = back.and_then(|back| Some((there.mtu()?, back.mtu()?)));
        if let Some((one, other)) = sizes.filter(|(one, other)| one.abs_diff(*other) > TAG_BYTES) {
            add(
                found,
                "directions-differ",
                there,
                format!("{}: {one} bytes there, {other} back", ends(there)),
                vec!["# the ports that only one direction goes through: their MTU at ingress and egress".into()],
            );
        }
    }
}
