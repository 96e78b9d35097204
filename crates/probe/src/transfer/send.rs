//! The sending end of a transfer.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_sys::socket::{bind_here, congestion, tcp_info};

use super::{HEARTBEAT_BYTES, HEARTBEATS, LOOK, TransferSize};
use crate::error::ProbeError;
use crate::message::Secret;

/// What the sender knows of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SenderResult {
    /// Number of small messages that were answered.
    pub heartbeats: u32,
    /// MSS when the bytes began, bytes of payload.
    pub mss_before: u32,
    /// MSS at the end, bytes of payload.
    pub mss_after: u32,
    /// Number of segments that were retransmitted.
    pub retransmits: u32,
    /// Name of the kernel's congestion control for this connection.
    pub congestion_control: String,
}

/// Sends `amount` from an address to a [`Receiver`](super::Receiver) with the same secret, until
/// everything is received or the time limit is reached. The connection is then closed, with
/// whatever was still on its way.
///
/// # Errors
/// A socket cannot be made. That the connection is not made, or breaks, is part of the result.
pub fn transfer(
    from: IpAddr,
    to: SocketAddr,
    amount: TransferSize,
    secret: &Secret,
) -> Result<SenderResult, ProbeError> {
    let failed = |source| ProbeError::Socket { to, source };
    let deadline = Instant::now() + amount.limit;
    let socket = open(from, to).map_err(failed)?;
    let mut sent = SenderResult {
        congestion_control: congestion(&socket).map_err(failed)?,
        ..SenderResult::default()
    };
    match socket.connect_timeout(&to.into(), amount.limit) {
        Ok(()) => {}
        // What the path does is no error.
        Err(_) => return Ok(sent),
    }
    let stream = TcpStream::from(socket);
    let prepared = stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(LOOK)))
        .and_then(|()| stream.set_write_timeout(Some(LOOK)));
    prepared.map_err(failed)?;
    let _ = heartbeats(&stream, secret, deadline, &mut sent)
        .and_then(|()| bytes(&stream, amount.bytes, deadline, &mut sent));
    let info = tcp_info(&stream).map_err(failed)?;
    sent.mss_after = info.snd_mss;
    sent.retransmits = info.total_retrans;
    Ok(sent)
}

fn open(from: IpAddr, to: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    bind_here(&socket, SocketAddr::new(from, 0))?;
    // Closing resets the connection: nothing is retransmitted afterwards.
    socket.set_linger(Some(Duration::ZERO))?;
    Ok(socket)
}

/// Repeats a step that ran into the socket's timeout until the deadline.
fn until<T>(deadline: Instant, mut step: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match step() {
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::Interrupted
                ) && Instant::now() < deadline => {}
            done => return done,
        }
    }
}

fn heartbeats(
    mut stream: &TcpStream,
    secret: &Secret,
    deadline: Instant,
    sent: &mut SenderResult,
) -> io::Result<()> {
    let mut message = [0x5a; HEARTBEAT_BYTES];
    message[..secret.probe.len()].copy_from_slice(&secret.probe);
    for _ in 0..HEARTBEATS {
        stream.write_all(&message)?;
        let mut filled = 0;
        while filled < message.len() {
            let mut answer = [0; HEARTBEAT_BYTES];
            match until(deadline, || stream.read(&mut answer[filled..]))? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                length => filled += length,
            }
        }
        sent.heartbeats += 1;
    }
    Ok(())
}

fn bytes(
    mut stream: &TcpStream,
    wanted: u64,
    deadline: Instant,
    sent: &mut SenderResult,
) -> io::Result<()> {
    sent.mss_before = tcp_info(stream)?.snd_mss;
    let buffer = vec![0x5a; 128 * 1024];
    let mut left = wanted;
    while left > 0 {
        if Instant::now() >= deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let length = left.min(buffer.len() as u64) as usize;
        left -= until(deadline, || stream.write(&buffer[..length]))? as u64;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // The receiver closes the connection when it has everything.
    let mut end = [0; 1];
    until(deadline, || stream.read(&mut end))?;
    Ok(())
}
