//! A load's options, and sockets that have them.

use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_sys::socket::set_congestion;

use crate::error::TrafficError;

/// How long data may stay unacknowledged before the peer counts as vanished (`TCP_USER_TIMEOUT`, RFC 5482).
///
/// Without it the kernel keeps trying for about a quarter of an hour (`tcp_retries2`); a path that is silent this
/// long has no throughput to measure.
const PEER_SILENCE: Duration = Duration::from_secs(10);

/// A TCP stream load; both ends are given the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamOptions {
    /// Connections at once, at least 1.
    pub streams: u32,
    /// Bytes per write, at least 1. It does not decide how large segments are: only full ones leave.
    pub message: u32,
    /// Congestion control by the kernel's name, set on both ends.
    pub congestion: String,
    /// `SO_SNDBUF` and `SO_RCVBUF` in bytes, set on both ends; `None` is the kernel's autotuning.
    pub socket_buffer: Option<u32>,
    /// What tells this load's connections from others'.
    pub secret: [u8; 16],
}

impl StreamOptions {
    /// Refuses what no load can have.
    pub(crate) fn validate(&self) -> Result<(), TrafficError> {
        if self.streams == 0 {
            return Err(TrafficError::Options("at least one stream"));
        }
        if self.message == 0 {
            return Err(TrafficError::Options("a message of at least one byte"));
        }
        Ok(())
    }

    /// A socket with these options, not yet bound or connected: a listener hands them on to what it accepts, and
    /// buffers decide the window scale that the handshake offers.
    pub(crate) fn socket(&self, peer: SocketAddr) -> Result<Socket, TrafficError> {
        let socket = Socket::new(Domain::for_address(peer), Type::STREAM, Some(Protocol::TCP))
            .map_err(|source| TrafficError::Socket {
                what: "making a TCP socket",
                source,
            })?;
        set_congestion(&socket, &self.congestion)?;
        if let Some(bytes) = self.socket_buffer {
            set_buffers(&socket, bytes)?;
        }
        socket
            .set_tcp_user_timeout(Some(PEER_SILENCE))
            .map_err(|source| TrafficError::Socket {
                what: "setting TCP_USER_TIMEOUT",
                source,
            })?;
        Ok(socket)
    }
}

/// Sets both buffers and reads them back: the kernel caps what is asked for without a word, then doubles it for its
/// own bookkeeping (socket(7)).
fn set_buffers(socket: &Socket, asked: u32) -> Result<(), TrafficError> {
    let failed = |what| move |source| TrafficError::Socket { what, source };
    let bytes = asked as usize;
    socket
        .set_send_buffer_size(bytes)
        .map_err(failed("setting SO_SNDBUF"))?;
    socket
        .set_recv_buffer_size(bytes)
        .map_err(failed("setting SO_RCVBUF"))?;
    let given = [
        ("SO_SNDBUF", "net.core.wmem_max", socket.send_buffer_size()),
        ("SO_RCVBUF", "net.core.rmem_max", socket.recv_buffer_size()),
    ];
    for (option, sysctl, size) in given {
        let limit = size.map_err(failed("reading a socket buffer's size"))? / 2;
        if limit < bytes {
            return Err(TrafficError::BufferCapped {
                option,
                sysctl,
                asked,
                limit: limit as u32,
            });
        }
    }
    Ok(())
}
