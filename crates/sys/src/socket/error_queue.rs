//! A socket's error queue, and the option that forbids the fragmentation of datagrams, so that MTU errors are queued.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd};

use nix::cmsg_space;
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};

use super::{domain, set_int};

/// One entry of an error queue: `struct sock_extended_err`, include/uapi/linux/errqueue.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedError {
    /// The error number, such as `EMSGSIZE` or `ECONNREFUSED`.
    pub errno: i32,
    /// Source of the error.
    pub origin: ErrorOrigin,
    /// With `EMSGSIZE`: the MTU that was exceeded, bytes; the device's own where the origin is local.
    pub mtu: Option<u32>,
    /// The router or host that sent the ICMP message.
    pub offender: Option<IpAddr>,
}

/// Source of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorOrigin {
    /// This host, before anything was sent.
    Local,
    /// An ICMP message.
    Icmp,
    /// An `ICMPv6` message.
    Icmp6,
    /// Another user of the queue (`SO_EE_ORIGIN_*`), such as time stamps.
    Other(u8),
}

/// Sets DF on every datagram and ignores the cached path MTU (`IP_PMTUDISC_PROBE`): a datagram that exceeds the
/// device's MTU is refused with `EMSGSIZE`, every other one leaves unfragmented.
///
/// # Errors
/// `EAFNOSUPPORT` on a socket that is neither IPv4 nor IPv6.
pub fn set_mtu_discover_probe(fd: &impl AsFd) -> io::Result<()> {
    let (level, name, value) = match domain(fd)? {
        libc::AF_INET => (
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            libc::IP_PMTUDISC_PROBE,
        ),
        libc::AF_INET6 => (
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        ),
        _ => return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    };
    set_int(fd.as_fd(), level, name, value)
}

/// Makes the kernel queue errors for [`read_error_queue`] (`IP_RECVERR`, `IPV6_RECVERR`).
///
/// # Errors
/// `EAFNOSUPPORT` on a socket that is neither IPv4 nor IPv6.
pub fn enable_recverr(fd: &impl AsFd) -> io::Result<()> {
    match domain(fd)? {
        libc::AF_INET => Ok(setsockopt(fd, Ipv4RecvErr, &true)?),
        libc::AF_INET6 => Ok(setsockopt(fd, Ipv6RecvErr, &true)?),
        _ => Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    }
}

/// Takes the oldest entry from the error queue; `None` where it is empty. Never blocks.
pub fn read_error_queue(fd: &impl AsFd) -> io::Result<Option<QueuedError>> {
    let mut control = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6, libc::timeval);
    let mut no_payload: [IoSliceMut<'_>; 0] = [];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = match recvmsg::<SockaddrStorage>(
        fd.as_fd().as_raw_fd(),
        &mut no_payload,
        Some(&mut control),
        flags,
    ) {
        Ok(message) => message,
        Err(nix::Error::EAGAIN) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let decoded = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4RecvErr(error, from) => Some(decode(&error, from.and_then(v4))),
        ControlMessageOwned::Ipv6RecvErr(error, from) => Some(decode(&error, from.and_then(v6))),
        _ => None,
    });
    decoded.map(Some).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "an error queue entry that tells no error",
        )
    })
}

pub(super) fn decode(error: &libc::sock_extended_err, offender: Option<IpAddr>) -> QueuedError {
    let errno = error.ee_errno as i32;
    QueuedError {
        errno,
        origin: match error.ee_origin {
            libc::SO_EE_ORIGIN_LOCAL => ErrorOrigin::Local,
            libc::SO_EE_ORIGIN_ICMP => ErrorOrigin::Icmp,
            libc::SO_EE_ORIGIN_ICMP6 => ErrorOrigin::Icmp6,
            other => ErrorOrigin::Other(other),
        },
        mtu: (errno == libc::EMSGSIZE).then_some(error.ee_info),
        offender,
    }
}

/// The kernel leaves the family at `AF_UNSPEC` where there is no offender.
pub(super) fn v4(from: libc::sockaddr_in) -> Option<IpAddr> {
    (i32::from(from.sin_family) == libc::AF_INET)
        .then(|| Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr)).into())
}

pub(super) fn v6(from: libc::sockaddr_in6) -> Option<IpAddr> {
    (i32::from(from.sin6_family) == libc::AF_INET6)
        .then(|| Ipv6Addr::from(from.sin6_addr.s6_addr).to_canonical())
}
