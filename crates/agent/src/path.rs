//! Checks of paths between hosts that are used as they are: the responder, the probes, the device stack.

mod checksums;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wirecost_audit::Neighbour;
use wirecost_check::{
    EgressRoute, LossLocation, OneSidedReport, PathReport, ReachabilityHint, RequiredMtu, Stream,
};
use wirecost_pmtu::{Config, FAR_AWAY, RateLimit, SurveyRequest, likely_sizes};
use wirecost_probe::message::Secret;
use wirecost_probe::{
    Endpoints, ProbeError, Responder, StreamPath, StreamServer, Streamed, device_mtu, locate_on,
    one_sided, stream, survey,
};
use wirecost_sys::socket::vrf_of;

use crate::error::{AgentError, Result, Step};
use crate::protocol::{
    Limits, LocateOrder, OneSidedOrder, PathReply, PathRequest, Reply, Responding, SurveyOrder,
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
    /// Wrong checksums until the responder was started.
    bad_before: WrongChecksums,
    /// The sockets of the last survey,
    flows: Vec<UdpSocket>,
    /// and what it found of the path's pace: how long an answer may take, and bytes per second.
    pace: (Duration, f64),
    gathering: Option<JoinHandle<Result<String>>>,
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
            PathRequest::BadChecksums => {
                let (now, before) = (WrongChecksums::count(), self.bad_before);
                PathReply::BadChecksums {
                    udp: now.udp.saturating_sub(before.udp),
                    tcp: now.tcp.saturating_sub(before.tcp),
                }
            }
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
                let (wait, carried) = self.pace;
                let path = StreamPath {
                    size,
                    bytes_per_second: bytes_per_second.min(carried).max(1.0),
                    wait,
                };
                let streamed = stream(way.from.address, way.target(), &path, &way.secret);
                PathReply::Streamed(said(streamed?))
            }
            PathRequest::Locate(order) => PathReply::Located(self.located(&order)?),
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

    fn respond(&mut self, address: SocketAddr, secret: Secret) -> Result<Responding> {
        self.responder = None;
        self.bad_before = WrongChecksums::count();
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
    let route = leaving.and_then(|way| way.mtu).filter(|&mtu| mtu < device);
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
        Ok(SurveyedPath {
            report: PathReport::new(ends, way.port, wanted, result, &surveyed.ports),
            pace: (result.wait, result.bytes_per_second),
            sockets: surveyed.sockets,
        })
    };
    let mut surveyed = survey()?;
    if surveyed.report.is_dead() {
        match wait_for_neighbour(way.from.address, way.to.address) {
            NeighbourWait::Found => {
                surveyed = survey()?;
                surveyed.report.late = true;
            }
            NeighbourWait::Missing(next) => {
                surveyed.report.hint = Some(ReachabilityHint::NoNeighbour(next));
            }
            NeighbourWait::Known => {}
        }
    }
    surveyed.report.leaving = leaving;
    Ok(surveyed)
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

/// What came of the search for the neighbour that packets go to first.
enum NeighbourWait {
    /// It was not being searched for.
    Known,
    /// It answered at last.
    Found,
    /// Nobody answers for this address.
    Missing(IpAddr),
}

/// Waits for the end of a search for the neighbour: the kernel asks three times, a second apart
/// (`net.ipv4.neigh.default.retrans_time_ms`), and holds the probes meanwhile.
fn wait_for_neighbour(from: IpAddr, to: IpAddr) -> NeighbourWait {
    const MOST: Duration = Duration::from_secs(4);
    const OFTEN: Duration = Duration::from_millis(20);
    let began = Instant::now();
    let mut found = NeighbourWait::Known;
    while let Ok(Some((next, state))) = wirecost_audit::neighbour(from, to) {
        match state {
            Neighbour::Fine => break,
            Neighbour::Missing => return NeighbourWait::Missing(next),
            Neighbour::Sought if began.elapsed() > MOST => {
                return NeighbourWait::Missing(next);
            }
            Neighbour::Sought => found = NeighbourWait::Found,
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
            NeighbourWait::Found => result = ask()?,
            NeighbourWait::Missing(next) => hint = Some(ReachabilityHint::NoNeighbour(next)),
            NeighbourWait::Known => {}
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let mut report = OneSidedReport::new(ends, wanted, &result, seconds);
    report.path.hint = hint;
    report.path.leaving = leaving;
    Ok(report)
}
