//! A path probed from one side only, and its findings.

use serde::{Deserialize, Serialize};
use wirecost_audit::Finding;
use wirecost_pmtu::{ForwardMtu, Limit, OneSidedResult};

use crate::judge::{add, ends, judge, refusal, route_mtu_workaround, too_big_dropped_here};
use crate::report::{
    FlowKind, FlowReport, PathEnd, PathReport, ReachabilityHint, RequiredMtu, kind_of,
};

/// The direction with the smaller path MTU, where larger echo replies do not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NarrowDirection {
    /// Neither: every required size came back, or this host sends no larger packets.
    Neither,
    /// The way back: the way there carries at least this size, bytes.
    Back(u32),
    /// Unknown, since no echo reply comes back at all; the way there carries this size, bytes.
    #[serde(rename = "NotTold")]
    NoReply(u32),
    /// The way there; of the way back only the sizes that came back are known.
    There,
    /// One of the two directions, unknown which.
    CannotTell,
}

impl NarrowDirection {
    /// Name of the direction in JSON documents.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Neither => "neither",
            Self::Back(_) => "back",
            Self::There => "there",
            Self::NoReply(_) | Self::CannotTell => "cannot-tell",
        }
    }
}

/// A path probed from one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneSidedReport {
    /// The echo requests and replies, as one flow.
    pub path: PathReport,
    /// The direction with the smaller path MTU.
    pub narrow: NarrowDirection,
}

impl OneSidedReport {
    /// The report on a result that took `seconds`.
    pub fn new(
        ends: (PathEnd, PathEnd),
        required: RequiredMtu,
        result: &OneSidedResult,
        seconds: f64,
    ) -> Self {
        let flow = FlowReport {
            port: 0,
            mtu: result.both_ways.mtu(),
            kind: kind_of(&result.both_ways),
            probes: result.probes,
            seconds,
        };
        Self {
            path: PathReport {
                seconds,
                probes: result.probes,
                paths_met: (1, 1),
                ..PathReport::of(ends, 0, required, vec![flow])
            },
            narrow: match result.forward {
                ForwardMtu::NotAsked => NarrowDirection::Neither,
                ForwardMtu::AtLeast(mtu) if result.is_dead() => NarrowDirection::NoReply(mtu),
                ForwardMtu::AtLeast(mtu) => NarrowDirection::Back(mtu),
                ForwardMtu::SameAsEcho => NarrowDirection::There,
                ForwardMtu::CannotTell => NarrowDirection::CannotTell,
            },
        }
    }
}

impl OneSidedReport {
    /// The report of a sender that has no route to the other end.
    pub fn without_route(ends: (PathEnd, PathEnd), required: RequiredMtu) -> Self {
        Self {
            path: PathReport::without_route(ends, 0, required, 1),
            narrow: NarrowDirection::CannotTell,
        }
    }
}

/// Note on what probes from one side cannot measure.
pub const ONE_SIDED_LIMITS: &str = "from one side: an echo request and its reply cross both directions, so the MTU of each \
     direction alone, other equal paths, UDP ports and the far host's devices are unknown; an agent at the far end (ssh:HOST) \
     measures them";

/// Every finding about a path from one side, the worst first.
pub fn judge_one_sided(report: &OneSidedReport) -> Vec<Finding> {
    let path = &report.path;
    let Some(flow) = path.flows.first() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let ask_both = format!(
        "# an agent at the far end measures each direction: wirecost check {}={} ssh:HOST={}",
        path.from.host, path.from.address, path.to.address
    );
    match flow.kind {
        // Except where nothing leaves this host, which is known from one side as well.
        FlowKind::Dead
            if !matches!(
                path.hint,
                Some(ReachabilityHint::NoRoute | ReachabilityHint::NoNeighbour(_))
            ) =>
        {
            mute(report, ask_both, &mut found);
        }
        FlowKind::BLACK_HOLE if path.failing().next().is_some() => {
            let mtu = flow.mtu.unwrap_or(0);
            let required = path.required.bytes();
            if too_big_dropped_here(path, &format!("{mtu} bytes"), &mut found) {
                return found;
            }
            let which = match report.narrow {
                NarrowDirection::Back(there) => format!(
                    "packets of {there} bytes arrive (a closed port answers them), so the way back is the narrow one"
                ),
                NarrowDirection::There => {
                    "a closed port answers small packets, but not packets that are one byte larger, so the way there \
                     carries no more; the way back may be as narrow"
                        .to_owned()
                }
                NarrowDirection::Neither | NarrowDirection::NoReply(_) | NarrowDirection::CannotTell => {
                    "closed ports answer too seldom to determine which direction is the narrow one"
                        .to_owned()
                }
            };
            let evidence = format!(
                "{}: echoes of {mtu} bytes come back, larger ones are lost without ICMP, and {required} are required: {which}",
                ends(path)
            );
            let raise = format!(
                "# every switch and router on that way to {required} or more (Ethernet: often 9216): see share/doc/wirecost/check.md"
            );
            let mut fix = vec![raise];
            fix.extend(route_mtu_workaround(path, mtu));
            fix.push(ask_both);
            add(&mut found, "path-drops-silently", path, evidence, fix);
        }
        FlowKind::Known(Limit::Fragmented { largest }) if path.failing().next().is_some() => {
            let there = match report.narrow {
                NarrowDirection::Back(there) => there,
                _ => flow.mtu.unwrap_or(0) + 1,
            };
            let evidence = format!(
                "{}: packets of {there} bytes and more arrive at the other end, and their echoes come back in fragments of at most \
                 {largest}: echo replies may be fragmented, so the return path has the smaller MTU. TCP from there gets \
                 ICMP too-big from that router, or stalls",
                ends(path)
            );
            let raise = format!(
                "# every switch and router on the way back to {} or more (Ethernet: often 9216): see share/doc/wirecost/check.md",
                path.required.bytes()
            );
            add(
                &mut found,
                "directions-differ",
                path,
                evidence,
                vec![raise, ask_both],
            );
        }
        _ => found = judge(std::slice::from_ref(path)),
    }
    found
}

/// The finding when no echo came back.
fn mute(report: &OneSidedReport, ask_both: String, found: &mut Vec<Finding>) {
    let path = &report.path;
    let ends = ends(path);
    let required = path.required.bytes();
    if let Some(unreachable) = &path.observations.unreachable {
        let (evidence, fix) = refusal(path, unreachable);
        add(found, "path-dead", path, evidence, fix);
        return;
    }
    match report.narrow {
        NarrowDirection::There => {
            let evidence = format!(
                "{ends}: echo requests are not answered; a closed port answers small packets and none of {required} bytes: the \
                 way there carries less"
            );
            let raise = format!(
                "# every switch and router on that way to {required} or more (Ethernet: often 9216): see share/doc/wirecost/check.md"
            );
            add(
                found,
                "path-drops-silently",
                path,
                evidence,
                vec![raise, ask_both],
            );
        }
        NarrowDirection::NoReply(there) => {
            let evidence = format!(
                "{ends}: echo requests are not answered; a closed port answers packets of {there} bytes, so that the way \
                 there carries as much. The way back cannot be measured from one side without echo replies"
            );
            add(found, "path-undecided", path, evidence, vec![ask_both]);
        }
        NarrowDirection::Neither | NarrowDirection::Back(_) | NarrowDirection::CannotTell => {
            let evidence = format!(
                "{ends}: no answer to echo requests, not even to small ones, nor from closed ports: the host is down, or ICMP \
                 is filtered; one side cannot distinguish these"
            );
            let fix = vec![path.route_command(), ask_both];
            add(found, "path-undecided", path, evidence, fix);
        }
    }
}
