//! Drives probes with a rising TTL over a real socket, on one flow; shared by
//! [`locate`](crate::locate()) and [`trace`](crate::trace()).

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use wirecost_pmtu::HopProbe;
use wirecost_sys::socket::{poll_readable, set_hop_limit};

use crate::flow::{self, SocketError};
use crate::message::{ACKNOWLEDGEMENT_BYTES, Acknowledgement, PROBE_BYTES, ProbeMessage, Secret};
use crate::survey::{LARGEST, is_queued};

/// A state machine that probes hops.
pub(crate) trait HopMachine {
    /// Flow number in its probes, which keeps answers to earlier probes apart.
    const FLOW: u32;

    fn poll_transmit(&mut self, now: Duration) -> Option<HopProbe>;
    fn next_timeout(&self) -> Option<Duration>;
    fn is_done(&self) -> bool;
    /// Whether an answer to this probe is still waited for.
    fn is_awaited(&self, probe: u64) -> bool;
    /// Records a router's report that a TTL ended; `probe` is `None` where the report quotes too
    /// little to identify it.
    fn on_expired(&mut self, probe: Option<u64>, from: IpAddr, now: Duration);
    /// Records that the destination `to` acknowledged a probe.
    fn on_arrived(&mut self, probe: u64, to: IpAddr, now: Duration);
    /// Records any other error of the socket.
    fn on_error(&mut self, error: SocketError, to: IpAddr, now: Duration);
}

/// Drives a machine until it is done. Returns whether that was within `limit`.
pub(crate) fn drive(
    socket: &UdpSocket,
    machine: &mut impl HopMachine,
    to: IpAddr,
    limit: Duration,
    secret: &Secret,
) -> io::Result<bool> {
    let began = Instant::now();
    let mut payload = vec![0x5a; LARGEST];
    loop {
        while let Some(probe) = machine.poll_transmit(began.elapsed()) {
            send(socket, machine, probe, &mut payload, (to, began, secret))?;
            hear(socket, machine, (to, began, secret))?;
        }
        if machine.is_done() {
            return Ok(true);
        }
        if began.elapsed() > limit {
            return Ok(false);
        }
        let until = machine.next_timeout().unwrap_or_default();
        poll_readable(&[socket.as_fd()], until.saturating_sub(began.elapsed()))?;
        hear(socket, machine, (to, began, secret))?;
    }
}

fn send<M: HopMachine>(
    socket: &UdpSocket,
    machine: &mut M,
    probe: HopProbe,
    payload: &mut [u8],
    context: (IpAddr, Instant, &Secret),
) -> io::Result<()> {
    let (to, _, secret) = context;
    set_hop_limit(socket, probe.ttl)?;
    let message = ProbeMessage {
        flow: M::FLOW,
        id: probe.id,
    };
    payload[..PROBE_BYTES].copy_from_slice(&message.write(secret));
    let length = probe.size.saturating_sub(flow::headers(to)) as usize;
    let length = length.clamp(PROBE_BYTES, payload.len());
    // An ICMP error of an earlier probe fails a send, once.
    for _ in 0..4 {
        match socket.send(&payload[..length]) {
            Err(error) if is_queued(&error) => {
                hear(socket, machine, context)?;
                if !machine.is_awaited(probe.id) {
                    break;
                }
            }
            Ok(_) | Err(_) => break,
        }
    }
    Ok(())
}

fn hear<M: HopMachine>(
    socket: &UdpSocket,
    machine: &mut M,
    (to, began, secret): (IpAddr, Instant, &Secret),
) -> io::Result<()> {
    while let Some(error) = flow::socket_error(socket, secret)? {
        let now = began.elapsed();
        match error {
            SocketError::Expired { from, probe } => {
                if probe.is_none_or(|probe| probe.flow == M::FLOW) {
                    machine.on_expired(probe.map(|probe| probe.id), from, now);
                }
            }
            other => machine.on_error(other, to, now),
        }
    }
    let mut answer = [0; ACKNOWLEDGEMENT_BYTES + 1];
    loop {
        match socket.recv(&mut answer) {
            Ok(length) => {
                if let Some(told) = Acknowledgement::parse(&answer[..length], secret)
                    && told.flow == M::FLOW
                {
                    machine.on_arrived(told.id, to, began.elapsed());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if is_queued(&error) => {}
            Err(error) => return Err(error),
        }
    }
}
