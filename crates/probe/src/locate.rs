//! Where a size is lost, over a real socket: one flow, rising TTL.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use wirecost_pmtu::{LocateConfig, Located, Locator, NotLocated};
use wirecost_sys::socket::{poll_readable, set_hop_limit};

use crate::error::ProbeError;
use crate::flow::{self, SocketError};
use crate::message::{ACKNOWLEDGEMENT_BYTES, Acknowledgement, PROBE_BYTES, ProbeMessage, Secret};
use crate::survey::{Endpoints, is_queued};

/// Whatever happens, it ends: after so long, or so many times what an answer takes, and a minute at most.
const LIMIT: Duration = Duration::from_secs(20);
const ANSWERS: u32 = 30;
/// The longest that it takes.
pub const LOCATING: Duration = Duration::from_mins(1);

/// Looks between which two hops packets of `failing` bytes are lost, on the flow that leaves from `endpoints`' first
/// port. An answer takes `wait` at most; no more than `bytes_per_second` are sent.
///
/// # Errors
/// Where the socket fails; that nothing can be located is in the answer.
pub fn locate(
    endpoints: Endpoints,
    failing: u32,
    (wait, bytes_per_second): (Duration, f64),
    secret: &Secret,
) -> Result<Result<Located, NotLocated>, ProbeError> {
    endpoints.check(1)?;
    let to = endpoints.to;
    let socket = flow::open(0, endpoints.source(0), to)?;
    locate_on(&socket, to, failing, (wait, bytes_per_second), secret)
}

/// The same on a flow of a [`survey`](crate::survey()), whose hop limit is not what it was afterwards. Another socket with the
/// same ports need not take the same path: between namespaces of one machine Linux chooses among equal routes by a
/// random number of the sending socket (net/ipv4/route.c, `fib_multipath_hash`; net/core/sock.c, `sk_set_txhash`).
///
/// # Errors
/// As of [`locate`].
pub fn locate_on(
    socket: &UdpSocket,
    to: SocketAddr,
    failing: u32,
    (wait, bytes_per_second): (Duration, f64),
    secret: &Secret,
) -> Result<Result<Located, NotLocated>, ProbeError> {
    let config = LocateConfig {
        wait,
        bytes_per_second,
        ..LocateConfig::new(flow::control_size(to.ip()), failing)
    };
    let limit = LIMIT.max(wait * ANSWERS).min(LOCATING);
    run(socket, Locator::new(config), limit, to.ip(), secret)
        .map_err(|source| ProbeError::Socket { to, source })
}

/// What these probes call their flow: an answer to a probe of before is not taken for one of theirs.
const HOPS: u32 = u32::MAX;

fn run(
    socket: &UdpSocket,
    mut locator: Locator,
    limit: Duration,
    to: IpAddr,
    secret: &Secret,
) -> io::Result<Result<Located, NotLocated>> {
    let began = Instant::now();
    let mut payload = vec![0x5a; 65_507];
    loop {
        while let Some(probe) = locator.poll_transmit(began.elapsed()) {
            set_hop_limit(socket, probe.ttl)?;
            let message = ProbeMessage {
                flow: HOPS,
                id: probe.id,
            };
            payload[..PROBE_BYTES].copy_from_slice(&message.write(secret));
            let length = probe.size.saturating_sub(flow::headers(to)) as usize;
            let length = length.clamp(PROBE_BYTES, payload.len());
            // An ICMP error of an earlier probe takes the place of sending, once.
            for _ in 0..4 {
                match socket.send(&payload[..length]) {
                    Err(error) if is_queued(&error) => {}
                    Ok(_) | Err(_) => break,
                }
            }
            hear(socket, &mut locator, secret)?;
        }
        if let Some(result) = locator.result() {
            return Ok(result.clone());
        }
        if began.elapsed() > limit {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let until = locator.next_timeout().unwrap_or_default();
        poll_readable(&[socket.as_fd()], until.saturating_sub(began.elapsed()))?;
        hear(socket, &mut locator, secret)?;
    }
}

fn hear(socket: &UdpSocket, locator: &mut Locator, secret: &Secret) -> io::Result<()> {
    while let Some(socket_error) = flow::socket_error(socket, secret)? {
        if let SocketError::Expired { from, probe } = socket_error
            && probe.is_none_or(|probe| probe.flow == HOPS)
        {
            locator.on_expired(probe.map(|probe| probe.id), from);
        }
    }
    let mut answer = [0; ACKNOWLEDGEMENT_BYTES + 1];
    loop {
        match socket.recv(&mut answer) {
            Ok(length) => {
                if let Some(told) = Acknowledgement::parse(&answer[..length], secret)
                    && told.flow == HOPS
                {
                    locator.on_arrived(told.id);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if is_queued(&error) => {}
            Err(error) => return Err(error),
        }
    }
}
