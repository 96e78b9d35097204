//! A path hop by hop, over a real socket: one flow, rising TTL.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use wirecost_pmtu::{HopMessage, TraceConfig, TracedHop, Tracer};
use wirecost_sys::socket::{poll_readable, set_hop_limit};

use crate::error::ProbeError;
use crate::flow::{self, SocketError};
use crate::message::{ACKNOWLEDGEMENT_BYTES, Acknowledgement, PROBE_BYTES, ProbeMessage, Secret};
use crate::survey::{Endpoints, is_queued};

/// The longest that it takes; what is known by then is told.
pub const TRACING: Duration = Duration::from_mins(1);

/// What these probes call their flow.
const HOPS: u32 = u32::MAX - 1;

/// A port of traceroute's range, where hardly anybody listens.
const CLOSED_PORT: u16 = 33_434;

/// Traces the path to an address without an agent: a closed port there answers.
///
/// # Errors
/// Where the socket fails.
pub fn trace(
    from: IpAddr,
    to: IpAddr,
    config: TraceConfig,
    secret: &Secret,
) -> Result<Vec<TracedHop>, ProbeError> {
    let to = SocketAddr::new(to, CLOSED_PORT);
    let endpoints = Endpoints {
        from,
        first_port: 0,
        to,
    };
    endpoints.check(1)?;
    let socket = flow::open(0, endpoints.source(0), to)?;
    trace_on(&socket, to, config, secret)
}

/// Traces a flow of a [`survey`](crate::survey()), whose hop limit is not what it was afterwards.
///
/// # Errors
/// Where the socket fails.
pub fn trace_on(
    socket: &UdpSocket,
    to: SocketAddr,
    config: TraceConfig,
    secret: &Secret,
) -> Result<Vec<TracedHop>, ProbeError> {
    let config = TraceConfig {
        passing: flow::control_size(to.ip()),
        ..config
    };
    run(socket, Tracer::new(config), to.ip(), secret)
        .map_err(|source| ProbeError::Socket { to, source })
}

fn run(
    socket: &UdpSocket,
    mut tracer: Tracer,
    to: IpAddr,
    secret: &Secret,
) -> io::Result<Vec<TracedHop>> {
    let began = Instant::now();
    let mut payload = vec![0x5a; 65_507];
    loop {
        while let Some(probe) = tracer.poll_transmit(began.elapsed()) {
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
                    Err(error) if is_queued(&error) => {
                        hear(socket, &mut tracer, to, (began, secret))?;
                        if !tracer.is_awaited(probe.id) {
                            break;
                        }
                    }
                    Ok(_) | Err(_) => break,
                }
            }
            hear(socket, &mut tracer, to, (began, secret))?;
        }
        if let Some(hops) = tracer.result() {
            return Ok(hops.to_vec());
        }
        if began.elapsed() > TRACING {
            return Ok(tracer.so_far().to_vec());
        }
        let until = tracer.next_timeout().unwrap_or_default();
        poll_readable(&[socket.as_fd()], until.saturating_sub(began.elapsed()))?;
        hear(socket, &mut tracer, to, (began, secret))?;
    }
}

fn hear(
    socket: &UdpSocket,
    tracer: &mut Tracer,
    to: IpAddr,
    (began, secret): (Instant, &Secret),
) -> io::Result<()> {
    while let Some(said) = flow::socket_error(socket, secret)? {
        let now = began.elapsed();
        match said {
            SocketError::Expired { from, probe }
                if probe.is_none_or(|probe| probe.flow == HOPS) =>
            {
                tracer.on_expired(probe.map(|probe| probe.id), from, now);
            }
            SocketError::TooBig(too_big) => tracer.on_message(HopMessage::TooBig(too_big)),
            SocketError::Unreachable(refusal) => tracer.on_message(HopMessage::Unreachable {
                by: refusal.by,
                code: refusal.code,
            }),
            SocketError::Refused(_) => tracer.on_refused(),
            SocketError::Closed => tracer.on_arrived(None, to, now),
            SocketError::Expired { .. } => {}
        }
    }
    let mut answer = [0; ACKNOWLEDGEMENT_BYTES + 1];
    loop {
        match socket.recv(&mut answer) {
            Ok(length) => {
                if let Some(told) = Acknowledgement::parse(&answer[..length], secret)
                    && told.flow == HOPS
                {
                    tracer.on_arrived(Some(told.id), to, began.elapsed());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if is_queued(&error) => {}
            Err(error) => return Err(error),
        }
    }
}
