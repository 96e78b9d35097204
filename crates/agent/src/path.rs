//! Checks of paths between hosts that are used as they are: the responder, the probes, the device stack.

mod beside;
mod checksums;
mod fragments;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wirecost_audit::Neighbour;
use wirecost_check::{
    DropRule, EgressRoute, FlowKind, LossLocation, OneSidedReport, PathReport, ReachabilityHint,
    Refused, RequiredMtu, Segments, Stream,
};
use wirecost_pmtu::{Config, FAR_AWAY, Limit, RateLimit, SurveyRequest, likely_sizes};
use wirecost_probe::message::Secret;
use wirecost_probe::{
    Endpoints, Listener, ProbeError, Responder, StreamPath, StreamServer, Streamed, Surveyed,
    device_mtu, locate_on, one_sided, segments, stream, survey, survey_mapped,
};
use wirecost_sys::socket::vrf_of;

use crate::error::{AgentError, Result, Step};
use crate::protocol::{
    Limits, LocateOrder, NeighbourSearch, OneSidedOrder, PathDirection, PathReply, PathRequest,
    Reply, Responding, SurveyOrder,
};
use crate::prove::smallest;

use self::checksums::WrongChecksums;

/// How long an answer is waited for at least while the place of a loss is looked for: routers answer when they have time.
const HOP_WAIT: Duration = Duration::from_millis(50);

/// What a check has on this host.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    responder: Option<Responder>,
    server: Option<StreamServer>,
    /// What arrives for it, before this host's filter.
    listener: Option<Listener>,
    /// Wrong checksums until the first responder was started.
    bad_before: Option<WrongChecksums>,
    /// The sockets of the last survey,
    flows: Vec<UdpSocket>,
    /// and what it found of the path's pace: how long an answer may take, and bytes per second.
    pace: (Duration, f64),
    gathering: Option<JoinHandle<Result<String>>>,
}

/// The largest packet that a host sends from one address to another, bytes.
fn sends(from: IpAddr, to: IpAddr) -> Result<u32> {
    let leaving = leaving(from, to);
    let (wanted, _) = wanted(None, (from, SocketAddr::new(to, 9)), leaving.as_ref())?;
    Ok(wanted.bytes())
}

impl Paths {
    pub(crate) fn execute(&mut self, request: PathRequest) -> Result<Reply> {
        let reply = match request {
            PathRequest::Respond { address, secret } => {
                PathReply::Responding(self.respond(address, secret)?)
            }
            PathRequest::Survey(order) => {
                let mut surveyed = survey_path(&order)?;
                note_vrf(&mut surveyed.report);
                // The place of a loss is looked for on the flows that were searched.
                if !order.count {
                    (self.flows, self.pace) = (surveyed.sockets, surveyed.pace);
                }
                PathReply::Path(surveyed.report)
            }
            PathRequest::AwaitNeighbour { from, to } => {
                PathReply::Neighbour(wait_for_neighbour(from, to))
            }
            PathRequest::BadChecksums => self.bad_checksums(),
            PathRequest::Listen { address, secret } => {
                let server = StreamServer::start(address, secret)?;
                let address = server.address();
                self.server = Some(server);
                PathReply::Listening(address)
            }
            PathRequest::Stream {
                way,
                size,
                bytes_per_second,
            } => {
                let path = self.stream_path(size, bytes_per_second);
                let streamed = stream(way.from.address, way.target(), &path, &way.secret);
                PathReply::Streamed(said(streamed?))
            }
            PathRequest::Segments {
                way,
                size,
                smaller,
                bytes_per_second,
            } => {
                let path = self.stream_path(size, bytes_per_second);
                let low = smaller.then(|| smallest(way.to.address));
                let found = segments(way.from.address, way.target(), &path, low, &way.secret);
                let found = found?;
                PathReply::Segments(Segments {
                    passes: found.passes,
                    fails: found.fails,
                })
            }
            PathRequest::Arrivals => {
                let arrivals = self.listener.as_ref().map(Listener::read);
                let sources = arrivals.as_ref().map(|it| it.sources.clone());
                PathReply::Arrivals {
                    probes: arrivals.map(|arrivals| arrivals.probes),
                    sources: sources.unwrap_or_default().into_values().collect(),
                }
            }
            PathRequest::AnswerOnFlows { secret } => {
                let flows: io::Result<Vec<UdpSocket>> =
                    self.flows.iter().map(UdpSocket::try_clone).collect();
                let responder = Responder::over(flows?, secret);
                self.responder = Some(responder?);
                return Ok(Reply::Done);
            }
            PathRequest::SurveyMapped { way, to, limits } => {
                (self.responder, self.listener) = (None, None);
                PathReply::Path(mapped(&way, &to, &limits)?)
            }
            PathRequest::Rules => PathReply::Rules(rules()),
            PathRequest::Locate(order) => PathReply::Located(self.located(&order)?),
            PathRequest::OnLink { device, address } => {
                PathReply::OnLink(crate::address::on_link(&device, address)?)
            }
            PathRequest::Sends { from, to } => PathReply::Sends(sends(from, to)?),
            PathRequest::Trace(order) => {
                PathReply::Traced(beside::trace_path(&order, &self.flows, self.pace)?)
            }
            PathRequest::Tcp(order) => PathReply::Tcp(beside::tcp(&order)?),
            PathRequest::OneSided(order) => {
                let mut report = from_one_side(&order)?;
                note_vrf(&mut report.path);
                PathReply::OneSided(report)
            }
            PathRequest::Gather { host } => {
                let gathering = thread::Builder::new()
                    .name("gather".into())
                    .spawn(move || gather(&host));
                self.gathering = Some(gathering?);
                return Ok(Reply::Done);
            }
            PathRequest::Gathered => {
                let gathering = self
                    .gathering
                    .take()
                    .ok_or(AgentError::NotReady("nothing is being read"))?;
                let read = gathering.join();
                PathReply::Stack(read.map_err(|_| AgentError::Thread)??)
            }
        };
        Ok(Reply::Path(Box::new(reply)))
    }

    /// Wrong checksums since the first responder was started.
    fn bad_checksums(&self) -> PathReply {
        let (now, before) = (WrongChecksums::count(), self.bad_before.unwrap_or_default());
        PathReply::BadChecksums {
            udp: now.udp.saturating_sub(before.udp),
            tcp: now.tcp.saturating_sub(before.tcp),
        }
    }

    /// As fast as the last survey went, or as is allowed.
    fn stream_path(&self, size: u32, bytes_per_second: f64) -> StreamPath {
        let (wait, carried) = self.pace;
        StreamPath {
            size,
            bytes_per_second: bytes_per_second.min(carried).max(1.0),
            wait,
        }
    }

    fn respond(&mut self, address: SocketAddr, secret: Secret) -> Result<Responding> {
        (self.responder, self.listener) = (None, None);
        self.bad_before.get_or_insert_with(WrongChecksums::count);
        let (responder, tapped) = match Responder::start(address, secret) {
            Ok(responder) => (responder, false),
            Err(ProbeError::Responder { source, .. })
                if source.kind() == io::ErrorKind::AddrInUse =>
            {
                match Responder::start_tapped(address, secret) {
                    Ok(responder) => (responder, true),
                    Err(error) => return Ok(Responding::Taken(error.to_string())),
                }
            }
            Err(error) => return Err(error.into()),
        };
        let answers = responder.addresses().first().copied().unwrap_or(address);
        self.responder = Some(responder);
        // Without the privilege less is known.
        self.listener = Listener::open(answers, secret).ok();
        Ok(if tapped {
            Responding::Tapped(answers)
        } else {
            Responding::At(answers)
        })
    }
}

impl Paths {
    fn located(&self, order: &LocateOrder) -> Result<Result<LossLocation, String>> {
        let socket = self.flows.get(order.flow as usize);
        let socket = socket.ok_or_else(|| format!("there is no flow {}", order.flow))?;
        let way = &order.way;
        let (wait, carried) = self.pace;
        let pace = (wait.max(HOP_WAIT), carried);
        let located = locate_on(socket, way.target(), order.failing, pace, &way.secret);
        Ok(located?
            .map(|located| LossLocation::from(&located))
            .map_err(|why| why.to_string()))
    }
}

const fn said(streamed: Streamed) -> Stream {
    match streamed {
        Streamed::NotConnected => Stream::NotConnected,
        Streamed::Refused => Stream::Refused,
        Streamed::Passed => Stream::Passed,
        Streamed::SmallFails { changed: true } | Streamed::FullFails { changed: true } => {
            Stream::Changed
        }
        Streamed::SmallFails { changed: false } => Stream::SmallStalled,
        Streamed::FullFails { changed: false } => Stream::FullStalled,
    }
}

fn gather(host: &str) -> Result<String> {
    let stack = wirecost_audit::gather(host).step(format!("listing the devices of {host}"))?;
    serde_json::to_string(&stack).step("writing the device stack")
}

fn config(limits: &Limits) -> Config {
    let near = Config::default();
    Config {
        patience: if limits.far { FAR_AWAY } else { near.patience },
        ..near
    }
}

fn pace(limits: &Limits) -> RateLimit {
    RateLimit {
        datagrams_per_second: limits.datagrams_per_second,
        bytes_per_second: limits.bytes_per_second,
        max_time: limits.most,
        ..RateLimit::default()
    }
}

/// What is wanted of a path, and up to which size it is searched: one byte more than this host's device takes shows
/// that it is the device that takes no more. Where the route takes less, this host sends no more than that.
fn wanted(
    expect: Option<u32>,
    (from, to): (IpAddr, SocketAddr),
    leaving: Option<&EgressRoute>,
) -> Result<(RequiredMtu, u32), ProbeError> {
    const LONGEST: u32 = 65_535;
    let device = device_mtu(from, to)?;
    let route = leaving.and_then(EgressRoute::sends_at_most);
    let route = route.filter(|&mtu| mtu < device);
    Ok(match (expect, route) {
        (Some(expect), _) => (RequiredMtu::Expected(expect), expect),
        (None, Some(route)) => (RequiredMtu::Route(route), route),
        (None, None) => (RequiredMtu::Device(device), (device + 1).min(LONGEST)),
    })
}

/// What came of a survey.
struct SurveyedPath {
    report: PathReport,
    sockets: Vec<UdpSocket>,
    pace: (Duration, f64),
}

fn survey_path(order: &SurveyOrder) -> Result<SurveyedPath, ProbeError> {
    let way = &order.way;
    let ends = (way.from.clone(), way.to.clone());
    let leaving = leaving(way.from.address, way.to.address);
    let between = (way.from.address, way.target());
    let (wanted, high) = match wanted(order.expect, between, leaving.as_ref()) {
        Err(ProbeError::Flow { source, .. }) if is_without_route(&source) => {
            let wanted = RequiredMtu::Expected(order.expect.unwrap_or(0));
            return Ok(SurveyedPath {
                report: PathReport::without_route(ends, way.port, wanted, order.flows),
                sockets: Vec::new(),
                pace: (Duration::ZERO, order.limits.bytes_per_second),
            });
        }
        wanted => wanted?,
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
    let survey = || -> Result<_, ProbeError> {
        let surveyed = match survey(endpoints, question.clone(), &way.secret) {
            // Somebody else has one of them; the kernel knows which are free.
            Err(ProbeError::Flow { source, .. })
                if first_port != 0 && source.kind() == io::ErrorKind::AddrInUse =>
            {
                let endpoints = Endpoints {
                    first_port: 0,
                    ..endpoints
                };
                survey(endpoints, question.clone(), &way.secret)?
            }
            surveyed => surveyed?,
        };
        let (ends, result) = (ends.clone(), &surveyed.result);
        let mut report = PathReport::new(ends, way.port, wanted, result, &surveyed.ports);
        see(&mut report, &surveyed);
        Ok(SurveyedPath {
            report,
            pace: (result.wait, result.bytes_per_second),
            sockets: surveyed.sockets,
        })
    };
    let mut surveyed = survey()?;
    if let (Some(mtu), Some(socket)) = (surveyed.report.mtu(), surveyed.sockets.first()) {
        let sizes = (smallest(way.to.address), mtu);
        surveyed.report.cut = fragments::cut(socket, sizes, way.to.address, before, &way.secret);
    }
    surveyed.report.leaving = leaving;
    Ok(surveyed)
}

/// What ICMP messages and a packet socket told.
fn see(report: &mut PathReport, surveyed: &Surveyed) {
    let watched = surveyed.watched.as_ref();
    let refused = surveyed.refusal.or(watched.and_then(|it| it.refusal));
    report.seen.refused = refused.map(|refused| Refused {
        by: refused.by,
        code: refused.code,
    });
    report.seen.acknowledged = watched.map(|watched| watched.acknowledgements);
    let too_big = watched.map(|watched| &watched.too_big);
    report.seen.too_big = too_big
        .and_then(|all| all.iter().min_by_key(|(_, mtu)| **mtu))
        .map(|(by, mtu)| (*by, *mtu));
    for flow in &mut report.flows {
        // With `ip_no_pmtu_disc` the kernel does not tell the size (net/ipv4/icmp.c, `icmp_unreach`).
        if let FlowKind::Told(Limit::Signalled { by, mtu: told @ 0 }) = &mut flow.kind
            && let Some(mtu) = too_big.and_then(|all| all.get(by))
        {
            *told = *mtu;
        }
    }
}

/// The way back to a host behind address translation.
fn mapped(
    way: &PathDirection,
    to: &[SocketAddr],
    limits: &Limits,
) -> Result<PathReport, ProbeError> {
    let from = SocketAddr::new(way.from.address, way.port);
    let first = to.first().copied().unwrap_or(from);
    let leaving = leaving(way.from.address, first.ip());
    let (wanted, high) = wanted(None, (way.from.address, first), leaving.as_ref())?;
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
    let mut report = PathReport::new(ends, first.port(), wanted, result, &surveyed.ports);
    see(&mut report, &surveyed);
    report.leaving = leaving;
    report.through_mapping = true;
    Ok(report)
}

fn rules() -> Vec<DropRule> {
    let rules = wirecost_audit::dropping().into_iter();
    rules
        .map(|rule| DropRule {
            rule: rule.rule,
            hook: rule.hook,
            protocols: rule.protocols,
            packets: rule.packets,
            undo: rule.undo,
        })
        .collect()
}

/// The first source port and the number of flows: those of the tunnel that has the destination port where it has a range
/// of its own, each time others of them; 0: the kernel picks of what it picks from for tunnels.
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

/// Waits for the end of a search for the neighbour: the kernel asks three times, a second apart
/// (`net.ipv4.neigh.default.retrans_time_ms`), and holds the probes meanwhile.
fn wait_for_neighbour(from: IpAddr, to: IpAddr) -> NeighbourSearch {
    const MOST: Duration = Duration::from_secs(4);
    const OFTEN: Duration = Duration::from_millis(20);
    let began = Instant::now();
    let mut found = NeighbourSearch::Known;
    while let Ok(Some((next, state))) = wirecost_audit::neighbour(from, to) {
        match state {
            Neighbour::Fine => break,
            Neighbour::Missing => return NeighbourSearch::Missing(next),
            Neighbour::Sought if began.elapsed() > MOST => {
                return NeighbourSearch::Missing(next);
            }
            Neighbour::Sought => found = NeighbourSearch::Found,
        }
        thread::sleep(OFTEN);
    }
    found
}

/// Where a path is dead, its route is to be looked at: in the table of which VRF?
fn note_vrf(report: &mut PathReport) {
    if report.is_dead() {
        report.vrf = vrf_of(report.from.address).ok().flatten();
    }
}

/// How packets leave this host; not known is no reason to fail.
fn leaving(from: IpAddr, to: IpAddr) -> Option<EgressRoute> {
    wirecost_audit::egress_route(from, to).ok().flatten()
}

fn is_without_route(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable
    )
}

fn from_one_side(order: &OneSidedOrder) -> Result<OneSidedReport, ProbeError> {
    let (from, to) = (order.from.address, order.to.address);
    let leaving = leaving(from, to);
    // The port that discards (RFC 863): it is only named.
    let between = (from, SocketAddr::new(to, 9));
    let ends = (order.from.clone(), order.to.clone());
    let (wanted, high) = match wanted(order.expect, between, leaving.as_ref()) {
        Err(ProbeError::Flow { source, .. }) if is_without_route(&source) => {
            let wanted = RequiredMtu::Expected(order.expect.unwrap_or(0));
            return Ok(OneSidedReport::without_route(ends, wanted));
        }
        wanted => wanted?,
    };
    let low = smallest(to).min(high);
    let began = Instant::now();
    let (config, pace) = (config(&order.limits), pace(&order.limits));
    let ask = || one_sided(from, to, (low, high), config, pace);
    let mut result = ask()?;
    let mut hint = None;
    if result.is_dead() {
        match wait_for_neighbour(from, to) {
            NeighbourSearch::Found => result = ask()?,
            NeighbourSearch::Missing(next) => hint = Some(ReachabilityHint::NoNeighbour(next)),
            NeighbourSearch::Known => {}
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut report = OneSidedReport::new(ends, wanted, &result, seconds);
    report.path.hint = hint;
    report.path.leaving = leaving;
    Ok(report)
}
