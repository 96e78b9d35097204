//! How a client's flows are opened: each says whose it is and waits to be taken.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::error::{Refusal, TrafficError};
use crate::handshake::{
    ANSWER_BYTES, COUNT_BYTES, HEADER_BYTES, Header, Phase, answers, read_answer,
};
use crate::options::Options;
use crate::socket;
use crate::table::{ClientFlow, Opening};

/// Before a datagram of the handshake is sent again.
const AGAIN: Duration = Duration::from_millis(50);

/// Opens every flow, within `deadline` in all.
pub(crate) fn open_all(
    opening: Opening,
    target: SocketAddr,
    options: &Options,
    deadline: Instant,
) -> Result<Vec<ClientFlow>, TrafficError> {
    let flows = 0..options.streams;
    let sockets: Vec<Socket> = match opening {
        Opening::Ports => flows
            .map(|flow| greet(target, options, flow, deadline))
            .collect::<Result<_, _>>()?,
        Opening::Connection { .. } | Opening::Connections => {
            // All knock before the first answer is waited for.
            let sockets = flows
                .map(|flow| {
                    let socket = socket::client_tcp(target, options)?;
                    knock(socket, target, options, flow, Phase::Open, deadline)
                })
                .collect::<Result<Vec<_>, _>>()?;
            for (flow, socket) in (0..).zip(&sockets) {
                hear(socket, target, flow, deadline)?;
                if opening == (Opening::Connection { streams: true }) {
                    socket::write_side(socket, options)?;
                }
            }
            if opening == Opening::Connections {
                // Each flow keeps a socket for its end, made here: in the namespace that it belongs to.
                let last = |_| socket::client_tcp(target, options);
                sockets.iter().map(last).collect::<Result<_, _>>()?
            } else {
                sockets
            }
        }
    };
    let flow = |(index, socket): (u32, Socket)| ClientFlow {
        index,
        target,
        socket: Arc::new(socket),
    };
    Ok((0..).zip(sockets).map(flow).collect())
}

/// Connects one flow and says whose it is.
pub(crate) fn knock(
    mut socket: Socket,
    target: SocketAddr,
    options: &Options,
    flow: u32,
    phase: Phase,
    deadline: Instant,
) -> Result<Socket, TrafficError> {
    let header: [u8; HEADER_BYTES] = Header::new(options, flow, phase).encode();
    // A process that is killed leaves no half-closed connection behind, which would keep its network namespace
    // alive: until the flow has ended in order, closing it means resetting it.
    let linger = match options.workload {
        crate::options::Workload::TcpCrr => None,
        _ => Some(Duration::ZERO),
    };
    socket
        .set_linger(linger)
        .and_then(|()| socket.connect_timeout(&target.into(), left(deadline)))
        .and_then(|()| socket.write_all(&header))
        .map_err(|source| TrafficError::Connect {
            target,
            flow,
            source,
        })?;
    Ok(socket)
}

/// Waits for the server's answer.
pub(crate) fn hear(
    mut socket: &Socket,
    target: SocketAddr,
    flow: u32,
    deadline: Instant,
) -> Result<(), TrafficError> {
    let mut answer = [0; ANSWER_BYTES];
    let read = read_all(&mut socket, &mut answer, deadline).and_then(|()| {
        socket.set_read_timeout(None)?;
        read_answer(answer)
    });
    judge(read, target, flow)
}

fn judge(
    read: io::Result<Result<(), Refusal>>,
    target: SocketAddr,
    flow: u32,
) -> Result<(), TrafficError> {
    read.map_err(|source| TrafficError::NoAnswer {
        target,
        flow,
        source,
    })?
    .map_err(|refusal| TrafficError::Refused {
        target,
        flow,
        refusal,
    })
}

/// Reads so many bytes, or fails: `TimedOut` at the deadline.
pub(crate) fn read_all(
    socket: &mut &Socket,
    bytes: &mut [u8],
    deadline: Instant,
) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        socket.set_read_timeout(Some(left(deadline)))?;
        match socket.read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The read's time-out, by its better name.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens one flow over UDP.
fn greet(
    target: SocketAddr,
    options: &Options,
    flow: u32,
    deadline: Instant,
) -> Result<Socket, TrafficError> {
    let socket = socket::client_udp(target, options)?;
    let began = Instant::now();
    let connect = |source| TrafficError::Connect {
        target,
        flow,
        source,
    };
    socket.connect(&target.into()).map_err(connect)?;
    let header = Header::new(options, flow, Phase::Open).encode();
    let answer = ask(&socket, &header, deadline).map_err(connect)?;
    let Some((answer, _)) = answer else {
        return Err(TrafficError::NoDatagram {
            target,
            flow,
            after: began.elapsed(),
        });
    };
    judge(read_answer(answer), target, flow)?;
    // Only now: a handshake is no datagram of the load's size.
    socket::segment(&socket, options, true)?;
    Ok(socket)
}

/// Sends a datagram of the handshake again and again until it is answered; `None`: not by the deadline. What else
/// arrives meanwhile is passed over.
pub(crate) fn ask(
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
                // What was sent before waits for a neighbour that does not answer, and fills the buffer.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => drop(sent?),
            }
            ask_at = now + AGAIN;
        }
        socket.set_read_timeout(Some(left(ask_at.min(deadline))))?;
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

/// What is left until `deadline`; never zero, which sockets take for "for ever".
pub(crate) fn left(deadline: Instant) -> Duration {
    deadline
        .saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
}
