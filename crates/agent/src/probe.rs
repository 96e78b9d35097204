//! Drives the pure prober of room `pmtu` over a real socket in the guest.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use wirecost_model::ip::IpVersion;
use wirecost_pmtu::{Config, Prober, Source, TooBig, likely_sizes};
use wirecost_sys::namespace::Netns;
use wirecost_sys::socket::{
    ErrorOrigin, enable_recverr, poll_readable, read_error_queue, set_mtu_discover_probe,
};

use crate::protocol::{ProofResult, Token};
use crate::respond::{HEADER_BYTES, Header, Kind, headers_bytes};

/// Whatever happens, the proof of all guests ends; well within the controller's patience.
const LIMIT: Duration = Duration::from_secs(8);
const EMSGSIZE: i32 = 90;

/// Proves from inside each guest that datagrams of exactly `size` bytes arrive whole at the target that
/// has its number. The first that does not get through is searched for what does, and ends the proof.
pub(crate) fn prove_all<'a>(
    guests: impl Iterator<Item = (&'a Netns, IpAddr)>,
    targets: &[SocketAddr],
    size: u32,
    token: Token,
) -> Result<ProofResult, String> {
    let began = Instant::now();
    let mut all = ProofResult {
        proven: true,
        reason: None,
        probes: 0,
        seconds: 0.0,
    };
    for (number, ((guest, address), target)) in guests.zip(targets).enumerate() {
        let left = LIMIT.saturating_sub(began.elapsed());
        let bind = SocketAddr::new(address, 0);
        let one = prove(guest, bind, *target, size, token, left)?;
        all.probes += one.probes;
        if !one.proven {
            all.proven = false;
            all.reason = match targets.len() {
                1 => one.reason,
                _ => one.reason.map(|reason| format!("guest {number}: {reason}")),
            };
            break;
        }
    }
    all.seconds = began.elapsed().as_secs_f64();
    Ok(all)
}

/// The same of one guest, within `limit`.
fn prove(
    guest: &Netns,
    bind: SocketAddr,
    target: SocketAddr,
    size: u32,
    token: Token,
    limit: Duration,
) -> Result<ProofResult, String> {
    let began = Instant::now();
    let socket = guest
        .within(|| open(bind, target))
        .and_then(|opened| opened)
        .map_err(|error| format!("opening the prober in the guest: {error}"))?;
    let overhead = headers_bytes(target.ip());
    let control_size = overhead + HEADER_BYTES as u32;
    let config = Config {
        control_size,
        ..Config::default()
    };
    let prober = Prober::verify(size, config).or_search(search_from(target.ip()), likely_sizes());
    let mut probing = Probing {
        socket,
        prober,
        began,
        limit,
        token,
        overhead,
    };
    probing
        .run()
        .map_err(|error| format!("probing the path: {error}"))?;
    let prober = &probing.prober;
    let (proven, reason) = match prober.outcome() {
        Some(outcome) if outcome.is_proven() => (true, None),
        Some(outcome) => (false, Some(outcome.to_string())),
        None => (
            false,
            Some(format!(
                "undecided after {:.1} s",
                began.elapsed().as_secs_f64()
            )),
        ),
    };
    let seconds = began.elapsed().as_secs_f64();
    Ok(ProofResult {
        proven,
        reason,
        probes: prober.probes(),
        seconds,
    })
}

/// Where a failed proof begins to look for what the path does carry.
const fn search_from(target: IpAddr) -> u32 {
    match target {
        IpAddr::V4(_) => IpVersion::Ipv4.min_mtu(),
        IpAddr::V6(_) => IpVersion::Ipv6.min_mtu(),
    }
}

fn open(bind: SocketAddr, target: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(bind)?;
    set_mtu_discover_probe(&socket)?;
    enable_recverr(&socket)?;
    socket.connect(target)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

struct Probing {
    socket: UdpSocket,
    prober: Prober,
    began: Instant,
    /// When to give up, from then on.
    limit: Duration,
    token: Token,
    /// IP and UDP headers, bytes.
    overhead: u32,
}

impl Probing {
    fn run(&mut self) -> io::Result<()> {
        let mut payload = vec![0; 1 << 16];
        while self.prober.outcome().is_none() && self.began.elapsed() < self.limit {
            while let Some(probe) = self.prober.poll_transmit(self.began.elapsed()) {
                let kind = if probe.control {
                    Kind::Control
                } else {
                    Kind::Probe
                };
                let header = Header {
                    kind,
                    token: self.token,
                    id: probe.id,
                    size: probe.size,
                };
                payload[..HEADER_BYTES].copy_from_slice(&header.bytes());
                let length = probe.size.saturating_sub(self.overhead) as usize;
                match self
                    .socket
                    .send(&payload[..length.clamp(HEADER_BYTES, 65_507)])
                {
                    Err(error) if error.raw_os_error() == Some(EMSGSIZE) => {
                        // A router's message surfaces here too; only the queue tells whose it is.
                        if let Some(mtu) = self.errors()? {
                            self.prober.on_send_refused(probe.id, Some(mtu));
                        }
                    }
                    // Sent, or lost to a full queue or a queued ICMP error: an answer will tell.
                    Ok(_) | Err(_) => {}
                }
                self.answers()?;
            }
            if self.prober.outcome().is_some() {
                break;
            }
            let until = self.prober.next_timeout().unwrap_or_default();
            let wait = until.saturating_sub(self.began.elapsed()).min(self.limit);
            poll_readable(&[self.socket.as_fd()], wait)?;
            self.errors()?;
            self.answers()?;
        }
        Ok(())
    }

    fn answers(&mut self) -> io::Result<()> {
        let mut buffer = [0; 2 * HEADER_BYTES];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => {
                    let answer = Header::parse(&buffer[..length]).filter(|header| {
                        header.kind == Kind::Acknowledgement && header.token == self.token
                    });
                    if let Some(answer) = answer {
                        self.prober.on_acked(answer.id, self.began.elapsed());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // An ICMP message's error, reported once; the queue has the details.
                Err(error) if error.raw_os_error().is_some() => {
                    self.errors()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the error queue; returns the local device's MTU where this host itself refused.
    fn errors(&mut self) -> io::Result<Option<u32>> {
        let mut local = None;
        while let Some(error) = read_error_queue(&self.socket)? {
            let (EMSGSIZE, Some(mtu)) = (error.errno, error.mtu) else {
                continue;
            };
            match (error.origin, error.offender) {
                (ErrorOrigin::Local, _) => local = Some(mtu),
                (ErrorOrigin::Icmp | ErrorOrigin::Icmp6, Some(router)) => {
                    self.prober.on_too_big(TooBig {
                        mtu,
                        source: Source::Router(router),
                    });
                }
                _ => {}
            }
        }
        Ok(local)
    }
}
