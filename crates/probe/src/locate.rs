//! Locates where a size is lost, over a real socket: one flow, rising TTL.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use wirecost_pmtu::{HopProbe, LocateConfig, Located, Locator, NotLocated};

use crate::error::ProbeError;
use crate::flow::{self, SocketError};
use crate::hops::{self, HopMachine};
use crate::message::Secret;
use crate::survey::Endpoints;

/// Time limit of [`locate`]: this, or [`ANSWERS`] times the wait for an answer if longer, but at most [`LOCATING`].
const LIMIT: Duration = Duration::from_secs(20);
const ANSWERS: u32 = 30;
/// Upper bound on the time that [`locate`] takes.
pub const LOCATING: Duration = Duration::from_mins(1);

/// Locates the two hops between which packets of `failing` bytes are lost, on the flow from
/// `endpoints`' first port. An answer is waited for `wait`; at most `bytes_per_second` are sent.
///
/// # Errors
/// The socket fails, or the time limit is reached. That the loss cannot be located is part of the result.
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

/// Like [`locate`], on a flow of a [`survey`](crate::survey()); the socket's hop limit is changed.
/// Another socket with the same ports need not take the same path: between namespaces of one
/// machine Linux chooses among equal routes by a random number of the sending socket
/// (net/ipv4/route.c, `fib_multipath_hash`; net/core/sock.c, `sk_set_txhash`).
///
/// # Errors
/// As [`locate`].
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
    let failed = |source| ProbeError::Socket { to, source };
    let mut locator = Locator::new(config);
    hops::drive(socket, &mut locator, to.ip(), limit, secret).map_err(failed)?;
    let result = locator.result().cloned();
    result.ok_or_else(|| failed(io::ErrorKind::TimedOut.into()))
}

impl HopMachine for Locator {
    const FLOW: u32 = u32::MAX;

    fn poll_transmit(&mut self, now: Duration) -> Option<HopProbe> {
        Self::poll_transmit(self, now)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Self::next_timeout(self)
    }

    fn is_done(&self) -> bool {
        self.result().is_some()
    }

    fn is_awaited(&self, _: u64) -> bool {
        true
    }

    fn on_expired(&mut self, probe: Option<u64>, from: IpAddr, _: Duration) {
        Self::on_expired(self, probe, from);
    }

    fn on_arrived(&mut self, probe: u64, _: IpAddr, _: Duration) {
        Self::on_arrived(self, probe);
    }

    /// Other errors about a size do not tell where it is lost.
    fn on_error(&mut self, _: SocketError, _: IpAddr, _: Duration) {}
}
