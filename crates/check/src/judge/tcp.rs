//! Findings about paths that treat TCP and UDP differently.

use wirecost_audit::Finding;

use super::{add, ends, loss};
use crate::report::{PathReport, Stream};

pub(super) fn judge(path: &PathReport, back: Option<&PathReport>, found: &mut Vec<Finding>) {
    if path.is_dead() || loss::is_lossy(path) {
        return;
    }
    match path.stream {
        Some(Stream::NotConnected | Stream::Refused) => blocked(path, back, found),
        Some(Stream::FullStalled | Stream::SmallStalled) => segments(path, found),
        _ => {}
    }
}

/// Adds the finding that datagrams pass and no TCP connection can be opened.
fn blocked(path: &PathReport, back: Option<&PathReport>, found: &mut Vec<Finding>) {
    // Wrong checksums of segments or answers have a finding of their own.
    let spoiled = path.bad_segments > 0 || back.is_some_and(|back| back.bad_segments > 0);
    if spoiled {
        return;
    }
    let how = if path.stream == Some(Stream::Refused) {
        "are refused, by a reset or an ICMP message, though the other end listens"
    } else {
        "are not established: the SYN or the SYN-ACK is lost"
    };
    let evidence = format!(
        "{}: datagrams pass, and TCP connections {how}. A filter or a middlebox treats TCP differently",
        ends(path)
    );
    let fix = vec![
        "nft list ruleset".to_owned(),
        "# on both hosts, and on filters between them: security groups, network policies, a router's rules for TCP"
            .to_owned(),
    ];
    add(found, "tcp-blocked", path, evidence, fix);
}

/// Adds the finding that TCP segments of a size are lost where datagrams of that size pass.
fn segments(path: &PathReport, found: &mut Vec<Finding>) {
    let known = path.segments.and_then(|it| Some((it.passes?, it.fails?)));
    let (Some((passes, fails)), 0) = (known, path.bad_segments) else {
        return;
    };
    let Some(mtu) = path.mtu().filter(|&mtu| fails <= mtu) else {
        return;
    };
    let evidence = format!(
        "{}: datagrams of {mtu} bytes pass, and TCP segments in packets of {fails} bytes are lost, those of {passes} pass: \
         connections open, and hang with the first full segment",
        ends(path)
    );
    let filter = "# the filter or middlebox on the path that drops TCP by length".to_owned();
    let mut fix = vec![filter];
    fix.extend(super::route_mtu_workaround(path, passes));
    add(found, "tcp-segments-lost", path, evidence, fix);
}

/// Adds the finding that datagrams of a size are lost where TCP segments of that size pass; whether that is the case.
pub(super) fn only_datagrams(path: &PathReport, carries: &str, found: &mut Vec<Finding>) -> bool {
    let Some(mtu) = path.mtu() else { return false };
    let passes = path.segments.and_then(|segments| segments.passes);
    let Some(passes) = passes.filter(|&passes| passes > mtu + super::TAG_BYTES) else {
        return false;
    };
    let evidence = format!(
        "{}: only UDP above {mtu} bytes is filtered: datagrams of {carries} pass, and TCP segments in packets of {passes} bytes do",
        ends(path)
    );
    let fix = vec![
        "# a filter on the path drops UDP by length, for example against DNS amplification: tunnels over UDP, QUIC and large \
         DNS answers need it open"
            .to_owned(),
        "nft list ruleset".to_owned(),
    ];
    add(found, "large-udp-blocked", path, evidence, fix);
    true
}
