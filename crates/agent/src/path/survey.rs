//! Surveys of one direction of a path, and their reports.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use wirecost_check::{
    EgressRoute, FlowKind, PathReport, ReachabilityHint, RequiredMtu, Unreachable,
};
use wirecost_pmtu::{Config, FAR_PATIENCE, Limit, RateLimit, SurveyRequest, likely_sizes};
use wirecost_probe::{
    CapturedMessages, Endpoints, ProbeError, Refusal, SurveyOutcome, device_mtu, survey_mapped,
    survey_unless,
};

use super::echo::Echo;
use super::fragments;
use crate::protocol::{Limits, PathDirection, SurveyOrder};
use crate::prove::smallest;

/// How long to wait for the first answer: most hosts answer within this time. Those that do not are asked again, with a
/// longer wait.
const NEAR_PATIENCE: Duration = Duration::from_millis(200);

pub(super) fn config(limits: &Limits) -> Config {
    Config {
        patience: if limits.far {
            FAR_PATIENCE
        } else {
            NEAR_PATIENCE
        },
        ..Config::default()
    }
}

pub(super) fn pace(limits: &Limits) -> RateLimit {
    RateLimit {
        datagrams_per_second: limits.datagrams_per_second,
        bytes_per_second: limits.bytes_per_second,
        max_time: limits.most,
        ..RateLimit::default()
    }
}

/// The MTU that is required of a path, and the largest size to search, bytes. One byte more than the device's MTU shows
/// that the device is the limit. Where the route's MTU is smaller, this host sends nothing larger.
pub(super) fn required_mtu(
    expect: Option<u32>,
    (from, to): (IpAddr, SocketAddr),
    leaving: Option<&EgressRoute>,
) -> Result<(RequiredMtu, u32), ProbeError> {
    const MAX_IP_BYTES: u32 = 65_535;
    let device = device_mtu(from, to)?;
    let route = leaving.and_then(EgressRoute::sends_at_most);
    let route = route.filter(|&mtu| mtu < device);
    Ok(match (expect, route) {
        (Some(expect), _) => (RequiredMtu::Expected(expect), expect),
        (None, Some(route)) => (RequiredMtu::Route(route), route),
        (None, None) => (RequiredMtu::Device(device), (device + 1).min(MAX_IP_BYTES)),
    })
}

/// Result of a survey: the report, the sockets of the flows, and the pace (wait for an answer, bytes per second).
pub(super) struct SurveyedPath {
    pub(super) report: PathReport,
    pub(super) sockets: Vec<UdpSocket>,
    pub(super) pace: (Duration, f64),
}

pub(super) fn survey_path(order: &SurveyOrder) -> Result<SurveyedPath, ProbeError> {
    let way = &order.way;
    let ends = (way.from.clone(), way.to.clone());
    let leaving = leaving(way.from.address, way.to.address);
    let between = (way.from.address, way.target());
    let (required, high) = match required_mtu(order.expect, between, leaving.as_ref()) {
        Err(ProbeError::Flow { source, .. }) if is_without_route(&source) => {
            let required = RequiredMtu::Expected(order.expect.unwrap_or(0));
            return Ok(SurveyedPath {
                report: PathReport::without_route(ends, way.port, required, order.flows),
                sockets: Vec::new(),
                pace: (Duration::ZERO, order.limits.bytes_per_second),
            });
        }
        required => required?,
    };
    let (first_port, flows) = source_ports(way.port, order.flows);
    let question = SurveyRequest {
        low: smallest(way.to.address).min(high),
        high,
        expect: order.expect,
        likely_sizes: likely_sizes(),
        flows,
        config: config(&order.limits),
        pace: pace(&order.limits),
        count: order.count,
    };
    let endpoints = Endpoints {
        from: way.from.address,
        first_port,
        to: way.target(),
    };
    let before = fragments::made();
    let echo = (order.limits.far && !order.count).then(|| Echo::ask(way));
    let given_up = |now: Duration| echo.as_ref().is_some_and(|echo| echo.is_overdue(now));
    let ask = |endpoints| survey_unless(endpoints, question.clone(), &way.secret, &given_up);
    let survey = || -> Result<_, ProbeError> {
        let surveyed = match ask(endpoints) {
            // One of the ports is in use; the kernel picks free ones.
            Err(ProbeError::Flow { source, .. })
                if first_port != 0 && source.kind() == io::ErrorKind::AddrInUse =>
            {
                let endpoints = Endpoints {
                    first_port: 0,
                    ..endpoints
                };
                ask(endpoints)?
            }
            surveyed => surveyed?,
        };
        let (ends, result) = (ends.clone(), &surveyed.result);
        let mut report = PathReport::new(ends, way.port, required, result, &surveyed.ports);
        add_observations(&mut report, &surveyed);
        if report.is_dead() && echo.as_ref().is_some_and(Echo::is_answered) {
            report.hint = Some(ReachabilityHint::Echo);
        }
        Ok(SurveyedPath {
            report,
            pace: (result.wait, result.bytes_per_second),
            sockets: surveyed.sockets,
        })
    };
    let mut surveyed = survey()?;
    if let (Some(mtu), Some(socket)) = (surveyed.report.mtu(), surveyed.sockets.first()) {
        let sizes = (smallest(way.to.address), mtu);
        let before = (before, surveyed.pace.0);
        surveyed.report.sender_fragmentation =
            fragments::sender_fragmentation(socket, sizes, way.to.address, before, &way.secret);
    }
    surveyed.report.leaving = leaving;
    Ok(surveyed)
}

/// Adds what ICMP messages and a packet socket showed to a report.
fn add_observations(report: &mut PathReport, surveyed: &SurveyOutcome) {
    add_captured(report, surveyed.refusal, surveyed.captured.as_ref());
}

/// Adds the refusal that a survey received, and what its packet socket recorded, to a report. ICMP errors of this host
/// itself are left out.
pub(super) fn add_captured(
    report: &mut PathReport,
    refusal: Option<Refusal>,
    captured: Option<&CapturedMessages>,
) {
    // This host's own ICMP errors, for a neighbour that does not answer, are found by other means.
    let is_anothers = |it: &Refusal| it.by != report.from.address;
    let unreachable = refusal.filter(is_anothers);
    let unreachable = unreachable.or(captured.and_then(|it| it.refusal.filter(is_anothers)));
    report.observations.unreachable = unreachable.map(|unreachable| Unreachable {
        by: unreachable.by,
        code: unreachable.code,
    });
    report.observations.acknowledged = captured.map(|captured| captured.acknowledgements);
    let too_big = captured.map(|captured| &captured.too_big);
    report.observations.too_big = too_big
        .and_then(|all| all.iter().min_by_key(|(_, mtu)| **mtu))
        .map(|(by, mtu)| (*by, *mtu));
    for flow in &mut report.flows {
        // With `ip_no_pmtu_disc` the kernel does not pass on the MTU (net/ipv4/icmp.c, `icmp_unreach`).
        if let FlowKind::Known(Limit::Signalled { by, mtu: told @ 0 }) = &mut flow.kind
            && let Some(mtu) = too_big.and_then(|all| all.get(by))
        {
            *told = *mtu;
        }
    }
}

/// Surveys the path back to a host behind address translation; `to` are its flows' translated addresses.
pub(super) fn mapped(
    way: &PathDirection,
    to: &[SocketAddr],
    limits: &Limits,
) -> Result<PathReport, ProbeError> {
    let from = SocketAddr::new(way.from.address, way.port);
    let first = to.first().copied().unwrap_or(from);
    let leaving = leaving(way.from.address, first.ip());
    let (required, high) = required_mtu(None, (way.from.address, first), leaving.as_ref())?;
    let question = SurveyRequest {
        low: smallest(first.ip()).min(high),
        high,
        expect: None,
        likely_sizes: likely_sizes(),
        flows: to.len() as u32,
        config: config(limits),
        pace: pace(limits),
        count: false,
    };
    let surveyed = survey_mapped(from, to, question, &way.secret)?;
    let ends = (way.from.clone(), way.to.clone());
    let result = &surveyed.result;
    let mut report = PathReport::new(ends, first.port(), required, result, &surveyed.ports);
    add_observations(&mut report, &surveyed);
    report.leaving = leaving;
    report.through_mapping = Some(first.ip());
    Ok(report)
}

/// The first source port and the number of flows. Where the tunnel with the destination port has a port range of its
/// own, they are from that range, at a random place each time; else the port is 0, and the kernel picks as it does for
/// tunnels.
fn source_ports(port: u16, flows: u32) -> (u16, u32) {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let Ok(Some((first, last))) = wirecost_audit::source_ports(port) else {
        return (0, flows);
    };
    let there = u32::from(last - first) + 1;
    let flows = flows.min(there);
    let spare = u64::from(there - flows) + 1;
    let skipped = RandomState::new().build_hasher().finish() % spare;
    (first + skipped as u16, flows)
}

pub(super) fn is_without_route(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable
    )
}

/// The route of packets to an address; `None` also where it cannot be read.
pub(super) fn leaving(from: IpAddr, to: IpAddr) -> Option<EgressRoute> {
    wirecost_audit::egress_route(from, to).ok().flatten()
}
