//! Opens a client's flows: connects each, sends its header and waits for the answer.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_model::load::Address;

use crate::error::{Refusal, TrafficError};
use crate::handshake::{
    ANSWER_BYTES, COUNT_BYTES, HEADER_BYTES, Header, Phase, answers, read_answer,
};
use crate::ops::{ClientFlow, FlowKind};
use crate::options::Options;
use crate::socket;

/// Interval between repetitions of a handshake datagram.
const AGAIN: Duration = Duration::from_millis(50);

/// Opens every flow by `deadline`.
pub(crate) fn open_all(
    opening: FlowKind,
    target: &Address,
    options: &Options,
    deadline: Instant,
) -> Result<Vec<ClientFlow>, TrafficError> {
    let flows = 0..options.load.connections();
    let sockets: Vec<Socket> = match opening {
        FlowKind::Path => Vec::new(),
        FlowKind::Udp => {
            let target = socket::ip(target)?;
            flows
                .map(|flow| open_udp_flow(target, options, flow, deadline))
                .collect::<Result<_, _>>()?
        }
        FlowKind::Connection { .. } | FlowKind::ConnectionPerTransaction => {
            let stays = opening != FlowKind::ConnectionPerTransaction;
            // All connect before the first answer is waited for.
            let sockets = flows
                .map(|flow| {
                    let socket = socket::client_connection(target, options)?;
                    connect_flow(socket, target, options, flow, Phase::Open, stays, deadline)
                })
                .collect::<Result<Vec<_>, _>>()?;
            for (flow, socket) in (0..).zip(&sockets) {
                if options.export.is_none() {
                    await_answer(socket, target, flow, deadline)?;
                }
                if opening == (FlowKind::Connection { streams: true }) {
                    socket::set_sender_options(socket, options)?;
                }
            }
            if opening == FlowKind::ConnectionPerTransaction {
                // The socket that will end the flow is made here, in the calling thread's network namespace.
                let last = |_| socket::client_connection(target, options);
                sockets.iter().map(last).collect::<Result<_, _>>()?
            } else {
                sockets
            }
        }
    };
    let flow = |(index, socket): (u32, Socket)| ClientFlow {
        index,
        target: target.clone(),
        socket: Arc::new(socket),
    };
    Ok((0..).zip(sockets).map(flow).collect())
}

/// Connects a socket and sends the header of its flow; `stays`: the connection carries the flow from then on.
pub(crate) fn connect_flow(
    mut socket: Socket,
    target: &Address,
    options: &Options,
    flow: u32,
    phase: Phase,
    stays: bool,
    deadline: Instant,
) -> Result<Socket, TrafficError> {
    let header: [u8; HEADER_BYTES] = Header::new(options, flow, phase).encode();
    // Until the flow has ended in order, closing sends a reset: a killed process leaves no half-closed connection
    // that keeps its network namespace alive.
    let linger = stays.then_some(Duration::ZERO);
    socket
        .set_linger(linger)
        .and_then(|()| connect(&socket, target, deadline))
        .and_then(|()| match options.export {
            // An NBD server that is not ours does not know our header.
            Some(_) => Ok(()),
            None => socket.write_all(&header),
        })
        .map_err(|source| TrafficError::Connect {
            target: target.clone(),
            flow,
            source,
        })?;
    Ok(socket)
}

fn connect(socket: &Socket, target: &Address, deadline: Instant) -> io::Result<()> {
    let address = socket::kernel_address(target)?;
    if target.ip().is_some() {
        return socket.connect_timeout(&address, remaining(deadline));
    }
    // On a Unix socket connect(2) waits only for room in the backlog, up to the time-out of writes (unix_wait_for_peer,
    // net/unix/af_unix.c).
    socket.set_write_timeout(Some(remaining(deadline)))?;
    socket.connect(&address)?;
    socket.set_write_timeout(None)
}

/// Waits for the server's answer to the header of a flow.
pub(crate) fn await_answer(
    mut socket: &Socket,
    target: &Address,
    flow: u32,
    deadline: Instant,
) -> Result<(), TrafficError> {
    let mut answer = [0; ANSWER_BYTES];
    let read = read_all(&mut socket, &mut answer, deadline).and_then(|()| {
        socket.set_read_timeout(None)?;
        read_answer(answer)
    });
    check_answer(read, target, flow)
}

fn check_answer(
    read: io::Result<Result<(), Refusal>>,
    target: &Address,
    flow: u32,
) -> Result<(), TrafficError> {
    read.map_err(|source| TrafficError::NoAnswer {
        target: target.clone(),
        flow,
        source,
    })?
    .map_err(|refusal| TrafficError::Refused {
        target: target.clone(),
        flow,
        refusal,
    })
}

/// Reads until `bytes` is full.
///
/// # Errors
/// `TimedOut` at the deadline; `UnexpectedEof`.
pub(crate) fn read_all(
    socket: &mut &Socket,
    bytes: &mut [u8],
    deadline: Instant,
) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        socket.set_read_timeout(Some(remaining(deadline)))?;
        match socket.read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A read time-out is reported as EAGAIN.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens one flow over UDP.
fn open_udp_flow(
    target: SocketAddr,
    options: &Options,
    flow: u32,
    deadline: Instant,
) -> Result<Socket, TrafficError> {
    let socket = socket::client_udp(target, options)?;
    let began = Instant::now();
    let connect = |source| TrafficError::Connect {
        target: target.into(),
        flow,
        source,
    };
    socket.connect(&target.into()).map_err(connect)?;
    let header = Header::new(options, flow, Phase::Open).encode();
    let answer = request_answer(&socket, &header, deadline).map_err(connect)?;
    let Some((answer, _)) = answer else {
        return Err(TrafficError::NoDatagram {
            target,
            flow,
            after: began.elapsed(),
        });
    };
    check_answer(read_answer(answer), &target.into(), flow)?;
    // Not before the handshake: its datagrams have another size.
    socket::segment(&socket, options, true)?;
    Ok(socket)
}

/// Sends a handshake datagram repeatedly until it is answered; `None`: not by the deadline. Returns the answer, and
/// the server's count of messages received. Other datagrams are ignored.
pub(crate) fn request_answer(
    socket: &Socket,
    question: &[u8],
    deadline: Instant,
) -> io::Result<Option<([u8; ANSWER_BYTES], u64)>> {
    let usual = socket.read_timeout()?;
    let mut answer = [0; ANSWER_BYTES + COUNT_BYTES];
    let mut ask_at = Instant::now();
    let found = loop {
        let now = Instant::now();
        if now >= deadline {
            break None;
        }
        if now >= ask_at {
            match socket.send(question) {
                // Earlier datagrams wait for an unresolved neighbour and fill the buffer.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => drop(sent?),
            }
            ask_at = now + AGAIN;
        }
        socket.set_read_timeout(Some(remaining(ask_at.min(deadline))))?;
        match (&*socket).read(&mut answer) {
            Ok(length) if length == answer.len() && answers(&answer, question) => {
                if let (Some(first), Some(count)) = (answer.first_chunk(), answer.last_chunk()) {
                    break Some((*first, u64::from_be_bytes(*count)));
                }
            }
            Ok(_) => {}
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {}
                _ => return Err(error),
            },
        }
    };
    socket.set_read_timeout(usual)?;
    Ok(found)
}

/// The time until `deadline`, at least 1 ms: 0 would mean no time-out to a socket.
pub(crate) fn remaining(deadline: Instant) -> Duration {
    deadline
        .saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
}
