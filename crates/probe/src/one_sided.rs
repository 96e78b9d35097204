//! Probing from one side over real sockets: echo requests from a ping socket (icmp(7)), or from a
//! raw one where ping sockets are not allowed, and datagrams to a closed port.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_pmtu::{
    Arrival, Config, OneSided, OneSidedProbe, OneSidedResult, ProbeKind, RateLimit, likely_sizes,
};
use wirecost_sys::socket::{
    bind_here, enable_fragment_size, enable_recverr, poll_readable, receive_arrived,
    set_mtu_discover_probe,
};

use crate::capture::{CapturedMessages, MessageCapture};
use crate::error::ProbeError;
use crate::flow::{self, EMSGSIZE, Refusal, SocketError};
use crate::message::{PROBE_BYTES, ProbeMessage, Secret};
use crate::survey::{LARGEST, is_queued};

/// Length of the ICMP header, bytes: type, code, checksum, identifier, sequence number.
const ICMP_HEADER: usize = 8;
/// Destination ports of traceroute's range, on which hardly any program listens: the first for small
/// datagrams, the second for large ones, so that their answers are told apart even where these quote
/// nothing.
const CLOSED_PORTS: [u16; 2] = [33_434, 33_435];

/// How long answers are waited for once an ICMP message has refused the probes.
const REFUSED: Duration = Duration::from_millis(400);

/// Searches from `low` to `high` bytes for the largest size that passes to `to` and back, and which
/// direction limits it. Also returns what a packet socket saw of ICMP messages, before this host's
/// own filter, where `CAP_NET_RAW` allows one.
///
/// # Errors
/// A socket cannot be opened: [`ProbeError::Echo`] tells what the echo needs.
pub fn one_sided(
    from: IpAddr,
    to: IpAddr,
    (low, high): (u32, u32),
    config: Config,
    pace: RateLimit,
) -> Result<(OneSidedResult, Option<CapturedMessages>), ProbeError> {
    if from.is_ipv4() != to.is_ipv4() {
        return Err(ProbeError::Versions { from, to });
    }
    let (echo, raw) = open_echo(from, to).map_err(|source| ProbeError::Echo { to, source })?;
    let port = |at: usize| {
        let to = SocketAddr::new(to, CLOSED_PORTS[at]);
        flow::open(at as u32, SocketAddr::new(from, 0), to)
    };
    let config = Config {
        control_size: flow::control_size(to),
        ..config
    };
    let watch = MessageCapture::open(SocketAddr::new(to, 0)).ok();
    let mut asking = OneSidedProber {
        machine: OneSided::new(low, high, likely_sizes(), config, pace),
        echo,
        raw,
        ports: [port(0)?, port(1)?],
        outstanding: [VecDeque::new(), VecDeque::new()],
        sizes: HashMap::new(),
        from,
        to,
        refusal: None,
        // The mark identifies replies to our own requests; random bytes suffice.
        secret: Secret {
            probe: own_mark(),
            acknowledgement: [0; 8],
        },
        began: Instant::now(),
        buffer: vec![0x5a; 1 << 16],
    };
    let result = asking.run().map_err(|source| ProbeError::Socket {
        to: SocketAddr::new(to, 0),
        source,
    })?;
    let mut captured = watch.map(|watch| watch.read(&asking.secret));
    if let Some(refusal) = asking.refusal {
        captured.get_or_insert_default().refusal = Some(refusal);
    }
    Ok((result, captured))
}

fn own_mark() -> [u8; 16] {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let half = || RandomState::new().build_hasher().finish().to_ne_bytes();
    let mut mark = [0; 16];
    mark[..8].copy_from_slice(&half());
    mark[8..].copy_from_slice(&half());
    mark
}

/// A ping socket, which needs no privilege where `net.ipv4.ping_group_range` has the group, else a
/// raw one. Also returns whether the socket is raw.
fn open_echo(from: IpAddr, to: IpAddr) -> io::Result<(UdpSocket, bool)> {
    let (domain, protocol) = match to {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    let (socket, raw) = match Socket::new(domain, Type::DGRAM, Some(protocol)) {
        Ok(socket) => (socket, false),
        Err(not_allowed) => {
            let raw = Socket::new(domain, Type::RAW, Some(protocol));
            (raw.map_err(|_| not_allowed)?, true)
        }
    };
    bind_here(&socket, SocketAddr::new(from, 0))?;
    set_mtu_discover_probe(&socket)?;
    enable_recverr(&socket)?;
    // Some kernels lack this; replies in fragments then count as whole.
    let _ = enable_fragment_size(&socket);
    // Full-size replies come in bursts; the default buffer holds about twenty.
    socket.set_recv_buffer_size(4 << 20)?;
    socket.connect(&SocketAddr::new(to, 0).into())?;
    socket.set_nonblocking(true)?;
    Ok((socket.into(), raw))
}

/// Whether an ICMP message is an echo reply; a raw socket on a loopback device receives the requests as well.
fn is_reply(message: &[u8], to: IpAddr) -> bool {
    let reply = if to.is_ipv4() { 0 } else { 129 };
    message.first() == Some(&reply)
}

/// The Internet checksum (RFC 1071) of a message whose checksum field is 0.
pub(crate) fn checksum(message: &[u8]) -> [u8; 2] {
    let words = message.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u64::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

struct OneSidedProber {
    machine: OneSided,
    echo: UdpSocket,
    /// Whether `echo` is a raw socket: checksum and identifier are then ours to write, and over
    /// IPv4 the IP header is received.
    raw: bool,
    ports: [UdpSocket; 2],
    /// Ids of unanswered probes to each closed port.
    outstanding: [VecDeque<u64>; 2],
    /// IP packet sizes of echo requests by id, bytes.
    sizes: HashMap<u64, u32>,
    from: IpAddr,
    to: IpAddr,
    /// The last ICMP message that refused the probes.
    refusal: Option<Refusal>,
    secret: Secret,
    began: Instant,
    buffer: Vec<u8>,
}

impl OneSidedProber {
    fn run(&mut self) -> io::Result<OneSidedResult> {
        loop {
            while let Some(sent) = self.machine.poll_transmit(self.began.elapsed()) {
                self.send(sent)?;
                self.hear(None)?;
            }
            if let Some(result) = self.machine.result() {
                return Ok(result);
            }
            let Some(until) = self.machine.next_timeout() else {
                continue;
            };
            let fds = [
                self.echo.as_fd(),
                self.ports[0].as_fd(),
                self.ports[1].as_fd(),
            ];
            poll_readable(&fds, until.saturating_sub(self.began.elapsed()))?;
            self.hear(None)?;
            if self.refusal.is_some() && self.began.elapsed() > REFUSED {
                self.machine.give_up_unanswered();
            }
        }
    }

    fn send(&mut self, OneSidedProbe { kind, probe }: OneSidedProbe) -> io::Result<()> {
        let message = ProbeMessage {
            flow: 0,
            id: probe.id,
        }
        .write(&self.secret);
        // An ICMP error of an earlier probe fails a send, once.
        for _ in 0..8 {
            // Both transport headers are 8 bytes: the kernel writes that of UDP, we that of ICMP.
            let payload = probe.size.saturating_sub(flow::headers(self.to)) as usize;
            let payload = payload.clamp(PROBE_BYTES, LARGEST);
            let sent = match kind {
                ProbeKind::Echo => {
                    let kind = if self.to.is_ipv4() { 8 } else { 128 };
                    let sequence = (probe.id as u16).to_be_bytes();
                    self.buffer[..ICMP_HEADER].copy_from_slice(&[
                        kind,
                        0,
                        0,
                        0,
                        0,
                        0,
                        sequence[0],
                        sequence[1],
                    ]);
                    self.buffer[ICMP_HEADER..ICMP_HEADER + PROBE_BYTES].copy_from_slice(&message);
                    if self.raw {
                        // Over IPv6 the kernel computes the checksum (RFC 3542, section 3.1).
                        self.buffer[4..6].copy_from_slice(&self.secret.probe[..2]);
                        if self.to.is_ipv4() {
                            let sum = checksum(&self.buffer[..ICMP_HEADER + payload]);
                            self.buffer[2..4].copy_from_slice(&sum);
                        }
                    }
                    self.sizes.insert(probe.id, probe.size);
                    self.echo.send(&self.buffer[..ICMP_HEADER + payload])
                }
                ProbeKind::ClosedPort => {
                    let at = usize::from(!probe.control);
                    self.buffer[..PROBE_BYTES].copy_from_slice(&message);
                    self.ports[at].send(&self.buffer[..payload])
                }
            };
            match sent {
                Err(error) if error.raw_os_error() == Some(EMSGSIZE) => {
                    if self.hear(Some((kind, probe.id)))? {
                        return Ok(());
                    }
                }
                Err(error) if is_queued(&error) => {
                    self.hear(None)?;
                }
                // Any other error is a full queue: lost, as on the path.
                Ok(_) | Err(_) => {
                    if kind == ProbeKind::ClosedPort {
                        self.outstanding[usize::from(!probe.control)].push_back(probe.id);
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads the sockets' errors and replies. Returns whether this host refused the probe `sent`.
    fn hear(&mut self, sent: Option<(ProbeKind, u64)>) -> io::Result<bool> {
        let mut refused = false;
        let now = self.began.elapsed();
        for at in 0..3 {
            let socket = if at == 2 { &self.echo } else { &self.ports[at] };
            while let Some(socket_error) = flow::socket_error(socket, &self.secret)? {
                match socket_error {
                    SocketError::Refused(mtu) => {
                        if let Some((_, id)) = sent.filter(|_| !refused) {
                            self.machine.on_send_refused(id, Some(mtu));
                            refused = true;
                        }
                    }
                    SocketError::TooBig(message) => self.machine.on_too_big(message),
                    SocketError::Closed if at < 2 => {
                        if let Some(id) = self.outstanding[at].pop_front() {
                            self.machine.on_answered(id, Arrival::Whole, now);
                        }
                    }
                    // Not from this host itself, which reports a neighbour that does not answer.
                    SocketError::Unreachable(refusal) if refusal.by != self.from => {
                        self.refusal = Some(refusal);
                    }
                    SocketError::Closed
                    | SocketError::Expired { .. }
                    | SocketError::Unreachable(_) => {}
                }
            }
        }
        self.replies()?;
        Ok(refused)
    }

    fn replies(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 16];
        for _ in 0..10_000 {
            let arrived = match receive_arrived(&self.echo, &mut buffer) {
                Ok(Some(arrived)) => arrived,
                Ok(None) => return Ok(()),
                Err(error) if is_queued(&error) => continue,
                Err(error) => return Err(error),
            };
            let header = match (self.raw, self.to) {
                (true, IpAddr::V4(_)) => usize::from(buffer[0] & 0x0f) * 4,
                _ => 0,
            };
            let reply = buffer
                .get(header..arrived.length)
                .filter(|message| is_reply(message, self.to))
                .and_then(|message| ProbeMessage::parse(message.get(ICMP_HEADER..)?, &self.secret));
            let Some(reply) = reply else { continue };
            let ip = flow::headers(self.to) - 8;
            let size = (arrived.length - header) as u32 + ip;
            // A reply that is shorter than its request proves nothing about the size.
            if self.sizes.get(&reply.id) == Some(&size) {
                let arrival = arrived
                    .fragment
                    .map_or(Arrival::Whole, |largest| Arrival::Fragmented { largest });
                self.machine
                    .on_answered(reply.id, arrival, self.began.elapsed());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // The example of its section 3, and one byte more.
        let message = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&message), (!0xddf2_u16).to_be_bytes());
        assert_eq!(checksum(&[0x01, 0x02, 0x03]), (!0x0402_u16).to_be_bytes());
    }
}
