//! One flow: a socket with its own source port, and its error queue.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_pmtu::{Source, TooBig};
use wirecost_sys::socket::{
    ErrorOrigin, bind_here, enable_recverr, read_quoted_error, set_mtu_discover_probe,
};

use crate::error::ProbeError;
use crate::message::{PROBE_BYTES, ProbeMessage, Secret};

pub(crate) const EMSGSIZE: i32 = 90;
/// ICMP type of time exceeded: 11 over IPv4 (RFC 792), 3 over IPv6 (RFC 4443).
const EXCEEDED: u8 = 11;
const EXCEEDED6: u8 = 3;

/// Length of the IP and UDP headers, bytes.
pub(crate) const fn headers(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 20 + 8,
        IpAddr::V6(_) => 40 + 8,
    }
}

/// IP packet size of the smallest probe, bytes: that of control probes.
pub(crate) const fn control_size(address: IpAddr) -> u32 {
    headers(address) + PROBE_BYTES as u32
}

/// A UDP socket bound to an address of this host, in a VRF or not.
pub(crate) fn datagrams(address: SocketAddr) -> io::Result<UdpSocket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    bind_here(&socket, address)?;
    Ok(socket.into())
}

/// A connected UDP socket whose datagrams are sent in one piece or not at all.
pub(crate) fn open(flow: u32, from: SocketAddr, to: SocketAddr) -> Result<UdpSocket, ProbeError> {
    opened(flow, (from, to), datagrams)
}

/// Like [`open`], on a port that other flows share (`SO_REUSEADDR`).
pub(crate) fn open_shared(
    flow: u32,
    from: SocketAddr,
    to: SocketAddr,
) -> Result<UdpSocket, ProbeError> {
    opened(flow, (from, to), |address| {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        socket.set_reuse_address(true)?;
        bind_here(&socket, address)?;
        Ok(socket.into())
    })
}

fn opened(
    flow: u32,
    (from, to): (SocketAddr, SocketAddr),
    bound: impl Fn(SocketAddr) -> io::Result<UdpSocket>,
) -> Result<UdpSocket, ProbeError> {
    let opened = || {
        let socket = bound(from)?;
        set_mtu_discover_probe(&socket)?;
        enable_recverr(&socket)?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    opened().map_err(|source| ProbeError::Flow {
        flow,
        from,
        to,
        source,
    })
}

/// An entry of a socket's error queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketError {
    /// This host refused to send a datagram of that size; the MTU it named, bytes.
    Refused(u32),
    TooBig(TooBig),
    /// A router reported that a TTL ended. `probe` is `None` where the report quotes too little.
    Expired {
        from: IpAddr,
        probe: Option<ProbeMessage>,
    },
    /// The destination port is closed (ICMP port unreachable).
    Closed,
    /// An ICMP message says that the datagram does not get through.
    Unreachable(Refusal),
}

/// An ICMP message that a packet does not get through, for another reason than its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Source of the message.
    pub by: IpAddr,
    /// ICMP code, of type 3 over IPv4 (RFC 792, RFC 1812) and of type 1 over IPv6 (RFC 4443).
    pub code: u8,
}

/// ICMP type of destination unreachable.
const fn unreachable(origin: ErrorOrigin) -> u8 {
    match origin {
        ErrorOrigin::Icmp6 => 1,
        _ => 3,
    }
}

/// Takes the next entry of the error queue; `None` if it is empty.
pub(crate) fn socket_error(socket: &UdpSocket, secret: &Secret) -> io::Result<Option<SocketError>> {
    socket_error_of(socket, secret, true)
}

/// Like [`socket_error`]. A closed port is [`SocketError::Closed`] if `closed_is_told`, else a [`Refusal`].
pub(crate) fn socket_error_of(
    socket: &UdpSocket,
    secret: &Secret,
    closed_is_told: bool,
) -> io::Result<Option<SocketError>> {
    const ECONNREFUSED: i32 = 111;
    let mut quote = [0; 256];
    while let Some(entry) = read_quoted_error(socket, &mut quote)? {
        let error = entry.error;
        let icmp = matches!(error.origin, ErrorOrigin::Icmp | ErrorOrigin::Icmp6);
        let exceeded = match error.origin {
            ErrorOrigin::Icmp => entry.kind == EXCEEDED,
            ErrorOrigin::Icmp6 => entry.kind == EXCEEDED6,
            _ => false,
        };
        match (error.errno, error.mtu, error.offender) {
            (EMSGSIZE, Some(mtu), _) if error.origin == ErrorOrigin::Local => {
                return Ok(Some(SocketError::Refused(mtu)));
            }
            (EMSGSIZE, Some(mtu), Some(router)) if icmp => {
                return Ok(Some(SocketError::TooBig(TooBig {
                    mtu,
                    source: Source::Router(router),
                })));
            }
            (_, _, Some(from)) if exceeded => {
                let quoted = &quote[..entry.quoted.min(quote.len())];
                let probe = ProbeMessage::parse(quoted, secret);
                return Ok(Some(SocketError::Expired { from, probe }));
            }
            (ECONNREFUSED, _, Some(by)) if icmp && !closed_is_told => {
                let code = entry.code;
                return Ok(Some(SocketError::Unreachable(Refusal { by, code })));
            }
            (ECONNREFUSED, _, _) if icmp => return Ok(Some(SocketError::Closed)),
            (_, _, Some(by)) if icmp && !exceeded && entry.kind == unreachable(error.origin) => {
                let code = entry.code;
                return Ok(Some(SocketError::Unreachable(Refusal { by, code })));
            }
            _ => {}
        }
    }
    Ok(None)
}
