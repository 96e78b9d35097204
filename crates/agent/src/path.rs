//! Checks of paths between hosts that are used as they are: responders, probes, and reading the device stack.

mod checksums;
mod echo;
mod fragments;
mod other_probes;
mod survey;

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wirecost_audit::Neighbour;
use wirecost_check::{LossLocation, PathReport, Segments, Stream};
use wirecost_probe::message::Secret;
use wirecost_probe::{
    ArrivalCapture, ProbeError, Responder, StreamOutcome, StreamPath, StreamServer, locate_on,
    segments, stream,
};
use wirecost_sys::socket::vrf_of;

use crate::error::{AgentError, Context, Result};
use crate::protocol::{LocateOrder, NeighbourSearch, PathReply, PathRequest, Reply, Responding};
use crate::prove::smallest;

use self::checksums::WrongChecksums;
use self::survey::{leaving, mapped, required_mtu, survey_path};

/// Lower bound on the wait for an answer while a loss is located: routers answer with low priority.
const HOP_WAIT: Duration = Duration::from_millis(200);

/// State of a check on this host.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    responder: Option<Responder>,
    server: Option<StreamServer>,
    /// Captures what arrives for the responder, before the host's firewall.
    listener: Option<ArrivalCapture>,
    /// Checksum errors counted when the first responder was started.
    bad_before: Option<WrongChecksums>,
    /// The sockets of the last survey's flows.
    flows: Vec<UdpSocket>,
    /// Pace that the last survey found: how long to wait for an answer, and bytes per second.
    pace: (Duration, f64),
    gathering: Option<JoinHandle<Result<String>>>,
}

/// The largest packet that this host sends from one address to another, bytes.
fn sends(from: IpAddr, to: IpAddr) -> Result<u32> {
    let leaving = leaving(from, to);
    let (required, _) = required_mtu(None, (from, SocketAddr::new(to, 9)), leaving.as_ref())?;
    Ok(required.bytes())
}

impl Paths {
    pub(crate) fn execute(&mut self, request: PathRequest) -> Result<Reply> {
        let reply = match request {
            PathRequest::Respond { address, secret } => {
                PathReply::Responding(self.respond(address, secret)?)
            }
            PathRequest::Survey(order) => {
                // The sockets of the last survey may have the source ports that this one wants.
                if !order.count {
                    self.flows.clear();
                }
                let mut surveyed = survey_path(&order)?;
                note_vrf(&mut surveyed.report);
                // Losses are located on the flows that the survey used.
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
                PathReply::Streamed(stream_report(streamed?))
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
                let arrivals = self.listener.as_ref().map(ArrivalCapture::read);
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
            PathRequest::Rules => PathReply::Rules(wirecost_audit::firewall_drops()),
            PathRequest::Locate(order) => PathReply::Located(self.located(&order)?),
            PathRequest::OnLink { device, address } => {
                PathReply::OnLink(crate::address::on_link(&device, address)?)
            }
            PathRequest::Sends { from, to } => PathReply::Sends(sends(from, to)?),
            PathRequest::Trace(order) => {
                PathReply::Traced(other_probes::trace_path(&order, &self.flows, self.pace)?)
            }
            PathRequest::Tcp(order) => PathReply::Tcp(other_probes::tcp(&order)?),
            PathRequest::OneSided(order) => {
                let mut report = other_probes::from_one_side(&order)?;
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

    /// Checksum errors since the first responder was started.
    fn bad_checksums(&self) -> PathReply {
        let (now, before) = (WrongChecksums::count(), self.bad_before.unwrap_or_default());
        PathReply::BadChecksums {
            udp: now.udp.saturating_sub(before.udp),
            tcp: now.tcp.saturating_sub(before.tcp),
        }
    }

    /// A stream at the pace of the last survey, or at `bytes_per_second` where that is less.
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
        // Without CAP_NET_RAW arrivals are not counted.
        self.listener = ArrivalCapture::open(answers, secret).ok();
        Ok(if tapped {
            Responding::Tapped(answers)
        } else {
            Responding::At(answers)
        })
    }
}

impl Paths {
    /// The place of a loss; `None` where it was not found.
    fn located(&self, order: &LocateOrder) -> Result<Option<LossLocation>> {
        let socket = self.flows.get(order.flow as usize);
        let socket = socket.ok_or_else(|| format!("there is no flow {}", order.flow))?;
        let way = &order.way;
        let (wait, carried) = self.pace;
        let pace = (wait.max(HOP_WAIT), carried);
        let located = locate_on(socket, way.target(), order.failing, pace, &way.secret);
        Ok(located?.ok().map(|located| LossLocation::from(&located)))
    }
}

const fn stream_report(streamed: StreamOutcome) -> Stream {
    match streamed {
        StreamOutcome::NotConnected => Stream::NotConnected,
        StreamOutcome::Refused => Stream::Refused,
        StreamOutcome::Passed => Stream::Passed,
        StreamOutcome::SmallFails { changed: true }
        | StreamOutcome::FullFails { changed: true } => Stream::Changed,
        StreamOutcome::SmallFails { changed: false } => Stream::SmallStalled,
        StreamOutcome::FullFails { changed: false } => Stream::FullStalled,
    }
}

fn gather(host: &str) -> Result<String> {
    let stack = wirecost_audit::gather(host).context(format!("listing the devices of {host}"))?;
    serde_json::to_string(&stack).context("writing the device stack")
}

/// Waits until the kernel's search for the neighbour has ended: the kernel asks three times, a second apart
/// (`net.ipv4.neigh.default.retrans_time_ms`), and queues the probes meanwhile.
fn wait_for_neighbour(from: IpAddr, to: IpAddr) -> NeighbourSearch {
    const TIMEOUT: Duration = Duration::from_secs(4);
    const INTERVAL: Duration = Duration::from_millis(20);
    let began = Instant::now();
    let mut found = NeighbourSearch::Known;
    while let Ok(Some((next, state))) = wirecost_audit::neighbour(from, to) {
        match state {
            Neighbour::Fine => break,
            Neighbour::Missing => return NeighbourSearch::Missing(next),
            Neighbour::Sought if began.elapsed() > TIMEOUT => {
                return NeighbourSearch::Missing(next);
            }
            Neighbour::Sought => found = NeighbourSearch::Found,
        }
        thread::sleep(INTERVAL);
    }
    found
}

/// Records the VRF of a path that carries nothing: its routes are to be looked up in the VRF's table.
fn note_vrf(report: &mut PathReport) {
    if report.is_dead() {
        report.vrf = vrf_of(report.from.address).ok().flatten();
    }
}
