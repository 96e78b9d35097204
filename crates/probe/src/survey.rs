//! Drives a survey over real sockets.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use wirecost_pmtu::{Arrival, CannotTellReason, Config, Survey, SurveyRequest, SurveyResult};
use wirecost_sys::socket::poll_readable;

use crate::capture::{CapturedMessages, MessageCapture};
use crate::error::ProbeError;
use crate::flow::{self, EMSGSIZE, Refusal, SocketError};
use crate::message::{ACKNOWLEDGEMENT_BYTES, Acknowledgement, PROBE_BYTES, ProbeMessage, Secret};

/// The largest UDP payload over IPv4, bytes.
pub(crate) const LARGEST: usize = 65_507;

/// Interval at which the caller is asked whether to give up.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// How long a port may stay occupied after its socket was closed here.
const HELD: Duration = Duration::from_secs(2);

/// Source address, source ports and destination of the flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// Source address of the probes.
    pub from: IpAddr,
    /// Flow f leaves from port `first_port` + f. With 0 the kernel picks the ports.
    pub first_port: u16,
    /// Address and port of the far responder.
    pub to: SocketAddr,
}

impl Endpoints {
    pub(crate) fn check(&self, flows: u32) -> Result<(), ProbeError> {
        if self.from.is_ipv4() != self.to.is_ipv4() {
            return Err(ProbeError::Versions {
                from: self.from,
                to: self.to.ip(),
            });
        }
        let last = u32::from(self.first_port) + flows.saturating_sub(1);
        if self.first_port != 0 && last > u32::from(u16::MAX) {
            return Err(ProbeError::Ports {
                flows,
                first: self.first_port,
            });
        }
        Ok(())
    }

    pub(crate) fn source(&self, flow: u32) -> SocketAddr {
        let port = match self.first_port {
            0 => 0,
            first => first + flow as u16,
        };
        SocketAddr::new(self.from, port)
    }
}

/// The result of a survey.
#[derive(Debug)]
pub struct SurveyOutcome {
    /// The outcomes, by flow.
    pub result: SurveyResult,
    /// Source ports, by flow.
    pub ports: Vec<u16>,
    /// Time from opening the first socket to the last answer.
    pub took: Duration,
    /// The flows' sockets, for [`locate_on`](crate::locate_on).
    pub sockets: Vec<UdpSocket>,
    /// The last ICMP message that refused the probes.
    pub refusal: Option<Refusal>,
    /// What a packet socket saw of ICMP messages and acknowledgements, before this host's own filter; `None` without
    /// `CAP_NET_RAW`.
    pub captured: Option<CapturedMessages>,
}

/// Surveys every flow of the path to a [`Responder`](crate::Responder) with the same secret. The
/// request's control size is set to that of the smallest probe.
///
/// # Errors
/// A flow's socket cannot be opened. What the path does to the probes is no error.
pub fn survey(
    endpoints: Endpoints,
    question: SurveyRequest,
    secret: &Secret,
) -> Result<SurveyOutcome, ProbeError> {
    survey_unless(endpoints, question, secret, &|_| false)
}

/// Like [`survey`]; while nothing is answered, `given_up` is called regularly with the time since the beginning, and
/// ends the survey when it returns `true`.
///
/// # Errors
/// As [`survey`].
pub fn survey_unless(
    endpoints: Endpoints,
    question: SurveyRequest,
    secret: &Secret,
    given_up: &dyn Fn(Duration) -> bool,
) -> Result<SurveyOutcome, ProbeError> {
    endpoints.check(question.flows)?;
    let to = endpoints.to;
    let sockets: Vec<UdpSocket> = (0..question.flows.max(1))
        .map(|flow| flow::open(flow, endpoints.source(flow), to))
        .collect::<Result<_, _>>()?;
    survey_over(sockets, to, question, (secret, given_up))
}

/// Surveys the direction back to a host behind address translation: from the port to which its
/// flows went, to the addresses from which each flow was seen to come. The sockets of that host's
/// flows have to answer.
///
/// # Errors
/// As [`survey`].
pub fn survey_mapped(
    from: SocketAddr,
    to: &[SocketAddr],
    question: SurveyRequest,
    secret: &Secret,
) -> Result<SurveyOutcome, ProbeError> {
    let sockets = open_when_free(from, to)?;
    let first = to.first().copied().unwrap_or(from);
    let flows = to.len() as u32;
    let question = SurveyRequest { flows, ..question };
    survey_over(sockets, first, question, (secret, &|_| false))
}

/// Opens sockets on one port whose previous socket has just been closed: a process that was forked
/// meanwhile holds a copy of it until its `exec`.
fn open_when_free(from: SocketAddr, to: &[SocketAddr]) -> Result<Vec<UdpSocket>, ProbeError> {
    let until = Instant::now() + HELD;
    loop {
        let open = |(flow, to): (u32, &SocketAddr)| flow::open_shared(flow, from, *to);
        match (0..).zip(to).map(open).collect() {
            Err(ProbeError::Flow { source, .. })
                if source.kind() == io::ErrorKind::AddrInUse && Instant::now() < until =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            opened => return opened,
        }
    }
}

fn survey_over(
    sockets: Vec<UdpSocket>,
    to: SocketAddr,
    question: SurveyRequest,
    (secret, given_up): (&Secret, &dyn Fn(Duration) -> bool),
) -> Result<SurveyOutcome, ProbeError> {
    let began = Instant::now();
    let question = SurveyRequest {
        config: Config {
            control_size: flow::control_size(to.ip()),
            ..question.config
        },
        ..question
    };
    let watch = MessageCapture::open(to).ok();
    let mut driver = SurveyDriver {
        refusal: None,
        given_up,
        sockets,
        survey: Survey::new(question),
        secret,
        to,
        began,
        payload: vec![0x5a; LARGEST],
    };
    driver
        .run()
        .map_err(|source| ProbeError::Socket { to, source })?;
    let ports = driver.sockets.iter().map(|socket| {
        let address = socket.local_addr();
        address.map_or(0, |address| address.port())
    });
    Ok(SurveyOutcome {
        ports: ports.collect(),
        result: driver.survey.result().ok_or_else(|| ProbeError::Socket {
            to,
            source: io::Error::other("the survey ended without a result"),
        })?,
        took: began.elapsed(),
        sockets: driver.sockets,
        refusal: driver.refusal,
        captured: watch.map(|watch| watch.read(secret)),
    })
}

/// Sends `count` probes of `size` bytes on a flow; their answers are not read.
///
/// # Errors
/// This host does not send them.
pub fn burst(
    socket: &UdpSocket,
    to: IpAddr,
    (size, count): (u32, u32),
    secret: &Secret,
) -> io::Result<()> {
    let length = size.saturating_sub(flow::headers(to)) as usize;
    let mut payload = vec![0x5a; length.clamp(PROBE_BYTES, LARGEST)];
    for id in 0..count {
        let id = u64::MAX - u64::from(id);
        payload[..PROBE_BYTES].copy_from_slice(&ProbeMessage { flow: 0, id }.write(secret));
        socket.send(&payload)?;
    }
    Ok(())
}

struct SurveyDriver<'a> {
    refusal: Option<Refusal>,
    given_up: &'a dyn Fn(Duration) -> bool,
    sockets: Vec<UdpSocket>,
    survey: Survey,
    secret: &'a Secret,
    to: SocketAddr,
    began: Instant,
    payload: Vec<u8>,
}

impl SurveyDriver<'_> {
    fn run(&mut self) -> io::Result<()> {
        while self.survey.result().is_none() {
            while let Some(sent) = self.survey.poll_transmit(self.began.elapsed()) {
                self.send(sent.flow, sent.probe.id, sent.probe.size)?;
            }
            let Some(until) = self.survey.next_timeout() else {
                continue;
            };
            let now = self.began.elapsed();
            let mut wait = until.saturating_sub(now);
            if !self.survey.is_answered() {
                if (self.given_up)(now) {
                    self.survey.stop(CannotTellReason::NoAnswer, now);
                    continue;
                }
                wait = wait.min(ASK_EVERY);
            }
            let fds: Vec<_> = self.sockets.iter().map(AsFd::as_fd).collect();
            for flow in poll_readable(&fds, wait)? {
                self.hear(flow as u32, None)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, flow: u32, id: u64, size: u32) -> io::Result<()> {
        let head = ProbeMessage { flow, id }.write(self.secret);
        self.payload[..PROBE_BYTES].copy_from_slice(&head);
        let length = size.saturating_sub(flow::headers(self.to.ip())) as usize;
        let length = length.clamp(PROBE_BYTES, LARGEST);
        // An ICMP error of an earlier probe fails a send, once: the datagram then did not leave.
        for _ in 0..8 {
            match self.sockets[flow as usize].send(&self.payload[..length]) {
                Err(error) if error.raw_os_error() == Some(EMSGSIZE) => {
                    // A router's message also shows as `EMSGSIZE`; only the error queue tells which it is.
                    if self.hear(flow, Some(id))? {
                        return Ok(());
                    }
                }
                Err(error) if is_queued(&error) => {
                    self.hear(flow, None)?;
                }
                // Sent, or lost to a full queue: the answer or its absence tells.
                Ok(_) | Err(_) => return Ok(()),
            }
            if self.survey.result().is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads errors and answers of a flow's socket. Returns whether this host refused the probe `sent`.
    fn hear(&mut self, flow: u32, sent: Option<u64>) -> io::Result<bool> {
        let mut refused = false;
        let mut answer = [0; ACKNOWLEDGEMENT_BYTES + 1];
        let socket = &self.sockets[flow as usize];
        while let Some(said) = flow::socket_error_of(socket, self.secret, false)? {
            match (said, sent) {
                (SocketError::Unreachable(refusal), _) => self.refusal = Some(refusal),
                (SocketError::Refused(mtu), Some(id)) => {
                    self.survey.on_send_refused(flow, id, Some(mtu));
                    refused = true;
                }
                (SocketError::TooBig(message), _) => self.survey.on_too_big(flow, message),
                _ => {}
            }
        }
        loop {
            match socket.recv(&mut answer) {
                Ok(length) => {
                    let bytes = &answer[..length];
                    if let Some(told) = Acknowledgement::parse(bytes, self.secret) {
                        let arrival = told
                            .fragment
                            .map_or(Arrival::Whole, |largest| Arrival::Fragmented { largest });
                        self.survey
                            .on_arrived(told.flow, told.id, arrival, self.began.elapsed());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(refused),
                // The error of an ICMP message, reported once; the error queue has or had the details.
                Err(error) if is_queued(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether the error is one that an ICMP message leaves on a socket (net/ipv4/icmp.c, `icmp_err_convert`;
/// net/ipv6/icmp.c).
pub(crate) fn is_queued(error: &io::Error) -> bool {
    const CODES: [i32; 9] = [
        13,  // EACCES: prohibited, over IPv6
        71,  // EPROTO: parameter problem
        90,  // EMSGSIZE
        92,  // ENOPROTOOPT: no such protocol there
        95,  // EOPNOTSUPP: source route failed
        101, // ENETUNREACH
        111, // ECONNREFUSED: nobody listens
        112, // EHOSTDOWN
        113, // EHOSTUNREACH: a TTL that ended, too
    ];
    error
        .raw_os_error()
        .is_some_and(|code| CODES.contains(&code))
}
