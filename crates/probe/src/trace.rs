//! Traces a path hop by hop over a real socket: one flow, rising TTL.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use wirecost_pmtu::{HopMessage, HopProbe, TraceConfig, TracedHop, Tracer};

use crate::error::ProbeError;
use crate::flow::{self, SocketError};
use crate::hops::{self, HopMachine};
use crate::message::Secret;
use crate::survey::Endpoints;

/// Upper bound on the time that a trace takes; the hops known by then are the result.
pub const TRACING: Duration = Duration::from_mins(1);

/// A port of traceroute's range, on which hardly any program listens.
const CLOSED_PORT: u16 = 33_434;

/// Traces the path to an address without an agent: a closed port there answers.
///
/// # Errors
/// The socket fails.
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

/// Traces the path of a flow of a [`survey`](crate::survey()); the socket's hop limit is changed.
///
/// # Errors
/// The socket fails.
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
    let mut tracer = Tracer::new(config);
    hops::drive(socket, &mut tracer, to.ip(), TRACING, secret)
        .map_err(|source| ProbeError::Socket { to, source })?;
    Ok(tracer.so_far().to_vec())
}

impl HopMachine for Tracer {
    const FLOW: u32 = u32::MAX - 1;

    fn poll_transmit(&mut self, now: Duration) -> Option<HopProbe> {
        Self::poll_transmit(self, now)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Self::next_timeout(self)
    }

    fn is_done(&self) -> bool {
        self.result().is_some()
    }

    fn is_awaited(&self, probe: u64) -> bool {
        Self::is_awaited(self, probe)
    }

    fn on_expired(&mut self, probe: Option<u64>, from: IpAddr, now: Duration) {
        Self::on_expired(self, probe, from, now);
    }

    fn on_arrived(&mut self, probe: u64, to: IpAddr, now: Duration) {
        Self::on_arrived(self, Some(probe), to, now);
    }

    fn on_error(&mut self, error: SocketError, to: IpAddr, now: Duration) {
        match error {
            SocketError::TooBig(too_big) => self.on_message(HopMessage::TooBig(too_big)),
            SocketError::Unreachable(refusal) => self.on_message(HopMessage::Unreachable {
                by: refusal.by,
                code: refusal.code,
            }),
            SocketError::Refused(_) => self.on_refused(),
            SocketError::Closed => Self::on_arrived(self, None, to, now),
            SocketError::Expired { .. } => {}
        }
    }
}
