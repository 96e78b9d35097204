//! The far end of a proof: acknowledges every probe with a small datagram that says how much arrived.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use wirecost_model::ip::IpVersion;
use wirecost_sys::namespace::Netns;
use wirecost_sys::socket::poll_readable;

use crate::protocol::Token;

/// `WCP` and the format's version.
const MAGIC: [u8; 4] = *b"WCP1";
/// Magic, kind, token, probe id, size.
pub(crate) const HEADER_BYTES: usize = 4 + 1 + 16 + 8 + 4;

/// What travels at the head of a probe, and back in its acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) token: Token,
    pub(crate) id: u64,
    /// IP datagram size in bytes: of the probe as sent, or in an acknowledgement as received.
    pub(crate) size: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A full-size probe.
    Probe = 1,
    /// A small one that tells loss from size.
    Control = 2,
    Acknowledgement = 3,
}

impl Header {
    pub(crate) fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.kind as u8;
        bytes[5..21].copy_from_slice(&self.token);
        bytes[21..29].copy_from_slice(&self.id.to_be_bytes());
        bytes[29..33].copy_from_slice(&self.size.to_be_bytes());
        bytes
    }

    /// `None`: something else than a probe or its acknowledgement.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        if bytes[..4] != MAGIC {
            return None;
        }
        Some(Self {
            kind: match bytes[4] {
                1 => Kind::Probe,
                2 => Kind::Control,
                3 => Kind::Acknowledgement,
                _ => return None,
            },
            token: bytes[5..21].try_into().ok()?,
            id: u64::from_be_bytes(bytes[21..29].try_into().ok()?),
            size: u32::from_be_bytes(bytes[29..33].try_into().ok()?),
        })
    }
}

/// IP and UDP headers around a payload: the size of a datagram is payload and these.
pub(crate) fn headers_bytes(address: IpAddr) -> u32 {
    const UDP: u32 = 8;
    UDP + match address {
        IpAddr::V4(_) => IpVersion::Ipv4.header_bytes(),
        IpAddr::V6(_) => IpVersion::Ipv6.header_bytes(),
    }
}

/// Starts one responder for all guests, on an address of each; it runs as long as the agent. Returns
/// where it listens, by guest.
pub(crate) fn start<'a>(
    guests: impl Iterator<Item = (&'a Netns, IpAddr)>,
) -> io::Result<Vec<SocketAddr>> {
    let sockets: Vec<UdpSocket> = guests
        .map(|(guest, address)| {
            let socket = guest.within(|| UdpSocket::bind((address, 0)))??;
            socket.set_nonblocking(true)?;
            Ok(socket)
        })
        .collect::<io::Result<_>>()?;
    let bound = sockets.iter().map(UdpSocket::local_addr);
    let bound = bound.collect::<io::Result<_>>()?;
    thread::Builder::new()
        .name("responder".into())
        .spawn(move || respond(&sockets))?;
    Ok(bound)
}

fn respond(sockets: &[UdpSocket]) {
    /// It only ever waits: how long at a time does not matter.
    const WAIT: Duration = Duration::from_mins(1);
    let mut buffer = vec![0; 1 << 16];
    let fds: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
    loop {
        let Ok(ready) = poll_readable(&fds, WAIT) else {
            // A signal; the sockets stay good.
            continue;
        };
        for index in ready {
            answer_all(&sockets[index], &mut buffer);
        }
    }
}

/// Answers what has arrived at one guest.
fn answer_all(socket: &UdpSocket, buffer: &mut [u8]) {
    loop {
        let (length, from) = match socket.recv_from(buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // An old ICMP message or a signal; the socket stays good.
            Err(_) => continue,
        };
        let Some(probe) = Header::parse(&buffer[..length]) else {
            continue;
        };
        if probe.kind == Kind::Acknowledgement {
            continue;
        }
        let size = length as u32 + headers_bytes(from.ip());
        let answer = Header {
            kind: Kind::Acknowledgement,
            size,
            ..probe
        };
        // Lost on the way or refused here: the prober will ask again.
        let _ = socket.send_to(&answer.bytes(), from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_nothing_else_is_taken_for_one() {
        let header = Header {
            kind: Kind::Probe,
            token: [7; 16],
            id: 9,
            size: 1500,
        };
        assert_eq!(Header::parse(&header.bytes()), Some(header));
        assert_eq!(Header::parse(&header.bytes()[1..]), None);
        assert_eq!(
            Header::parse(b"GET / HTTP/1.1\r\n and then some more text"),
            None
        );
    }
}
