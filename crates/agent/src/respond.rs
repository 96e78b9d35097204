//! The far end of a proof: acknowledges every probe with a small datagram that says how much arrived.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;

use wirecost_model::ip::IpVersion;
use wirecost_sys::namespace::Netns;

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

/// Starts a responder in the guest; it runs as long as the agent. Returns its address.
pub(crate) fn start(guest: &Netns, address: IpAddr) -> io::Result<SocketAddr> {
    let socket = guest.within(|| UdpSocket::bind((address, 0)))??;
    let bound = socket.local_addr()?;
    thread::Builder::new()
        .name("responder".into())
        .spawn(move || respond(&socket))?;
    Ok(bound)
}

fn respond(socket: &UdpSocket) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        // An error here is an old ICMP message or a signal; the socket stays good.
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
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
