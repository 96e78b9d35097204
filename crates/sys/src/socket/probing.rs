//! What path probes need besides the error queue: the fragment size of received datagrams, a hop limit, and the payload
//! that an ICMP message quotes.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use nix::cmsg_space;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};

use super::error_queue::{QueuedError, decode, v4, v6};
use super::{domain, set_int};

/// A received datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedDatagram {
    /// Length of the payload, bytes.
    pub length: usize,
    /// Address of the sender.
    pub from: SocketAddr,
    /// Where the datagram arrived in fragments: IP packet size of the largest one, bytes (with
    /// [`enable_fragment_size`]).
    pub fragment: Option<u32>,
}

/// An ICMP error, with how much it quotes of the datagram that caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotedError {
    /// The error.
    pub error: QueuedError,
    /// Type of the ICMP message (`ICMP_TIME_EXCEEDED` 11, `ICMP_DEST_UNREACH` 3; `ICMPv6` has its own).
    pub kind: u8,
    /// Code of the ICMP message.
    pub code: u8,
    /// Bytes of the datagram's payload that the message quotes, as copied to the buffer.
    pub quoted: usize,
}

/// Makes the kernel report the largest fragment's size with each datagram (`IP_RECVFRAGSIZE`, `IPV6_RECVFRAGSIZE`).
///
/// # Errors
/// `EAFNOSUPPORT` on a socket that is neither IPv4 nor IPv6, `ENOPROTOOPT` before Linux 4.14 (IPv4) or 4.2 (IPv6).
pub fn enable_fragment_size(fd: &impl AsFd) -> io::Result<()> {
    let (level, name) = match domain(fd)? {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_RECVFRAGSIZE),
        libc::AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_RECVFRAGSIZE),
        _ => return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    };
    set_int(fd.as_fd(), level, name, 1)
}

/// Sets the TTL or hop limit of the packets that a socket sends, 1 to 255.
///
/// # Errors
/// `EAFNOSUPPORT` on a socket that is neither IPv4 nor IPv6, `EINVAL` for 0.
pub fn set_hop_limit(fd: &impl AsFd, hops: u8) -> io::Result<()> {
    let (level, name) = match domain(fd)? {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_TTL),
        libc::AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
        _ => return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    };
    if hops == 0 {
        // IPv6 would accept 0.
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    set_int(fd.as_fd(), level, name, i32::from(hops))
}

/// Takes the next datagram; `None` where there is none. Never blocks. A pending ICMP error is returned first, as an
/// error.
pub fn receive_arrived(fd: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<ReceivedDatagram>> {
    let mut control = cmsg_space!(libc::c_int, libc::c_int);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
    let message = match recvmsg::<SockaddrStorage>(
        fd.as_fd().as_raw_fd(),
        &mut parts,
        Some(&mut control),
        flags,
    ) {
        Ok(message) => message,
        Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let fragment = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Unknown(unknown) => {
            let about = (
                unknown.cmsg_header.cmsg_level,
                unknown.cmsg_header.cmsg_type,
            );
            let known = about == (libc::IPPROTO_IP, libc::IP_RECVFRAGSIZE)
                || about == (libc::IPPROTO_IPV6, libc::IPV6_RECVFRAGSIZE);
            let size = unknown.data_bytes.first_chunk().filter(|_| known)?;
            u32::try_from(i32::from_ne_bytes(*size)).ok()
        }
        _ => None,
    });
    let from =
        message.address.as_ref().and_then(address).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "a datagram without a sender")
        })?;
    Ok(Some(ReceivedDatagram {
        length: message.bytes,
        from,
        fragment,
    }))
}

fn address(from: &SockaddrStorage) -> Option<SocketAddr> {
    if let Some(four) = from.as_sockaddr_in() {
        return Some((four.ip(), four.port()).into());
    }
    let six = from.as_sockaddr_in6()?;
    Some(SocketAddr::new(
        IpAddr::V6(six.ip()).to_canonical(),
        six.port(),
    ))
}

/// Takes the oldest entry from the error queue, and copies the payload that it quotes to `buffer`; `None` where the
/// queue is empty. Never blocks.
pub fn read_quoted_error(fd: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<QuotedError>> {
    let mut control = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6, libc::timeval);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = match recvmsg::<SockaddrStorage>(
        fd.as_fd().as_raw_fd(),
        &mut parts,
        Some(&mut control),
        flags,
    ) {
        Ok(message) => message,
        Err(nix::Error::EAGAIN) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let quoted = message.bytes;
    let decoded = message.cmsgs()?.find_map(|control| {
        let (error, offender) = match control {
            ControlMessageOwned::Ipv4RecvErr(error, from) => (error, from.and_then(v4)),
            ControlMessageOwned::Ipv6RecvErr(error, from) => (error, from.and_then(v6)),
            _ => return None,
        };
        Some(QuotedError {
            error: decode(&error, offender),
            kind: error.ee_type,
            code: error.ee_code,
            quoted,
        })
    });
    decoded.map(Some).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "an error queue entry that tells no error",
        )
    })
}
