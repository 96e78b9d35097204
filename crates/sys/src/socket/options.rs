//! Socket options of a load that socket2 and nix have no words for.

use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use socket2::SockFilter;

use super::{domain, get_int, set_int};

/// include/uapi/asm-generic/socket.h; libc has no name for it.
const SO_BUF_LOCK: libc::c_int = 72;

/// The largest packet, in bytes of IP, that the kernel sends from an address to a target: by its route, and by what routers have
/// reported of it (`IP_MTU`, ip(7)). Nothing is sent.
///
/// # Errors
/// As bind(2) and connect(2).
pub fn route_mtu(source: IpAddr, target: SocketAddr) -> io::Result<u32> {
    let socket = UdpSocket::bind(SocketAddr::new(source, 0))?;
    socket.connect(target)?;
    let mtu = match target {
        SocketAddr::V4(_) => get_int(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU)?,
        SocketAddr::V6(_) => get_int(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU)?,
    };
    u32::try_from(mtu).map_err(io::Error::other)
}

/// Caps what the kernel sends on this socket, in bytes per second (`SO_MAX_PACING_RATE`, socket(7)).
///
/// TCP paces by itself since Linux 4.13; datagrams are paced only where the device's qdisc is fq.
pub fn set_max_pacing_rate(fd: &impl AsFd, bytes_per_second: u64) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `bytes_per_second`, which outlives the call. Linux 4.20 and later
    // take 64 bits, earlier ones the low 32, which on the little-endian machines this runs on come first.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const bytes_per_second).cast(),
            mem::size_of::<u64>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Sets both buffers beyond `net.core.wmem_max` and `net.core.rmem_max` (`SO_SNDBUFFORCE`, `SO_RCVBUFFORCE`, socket(7)).
/// As with `SO_SNDBUF` the kernel doubles what it is told.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN` in the initial user namespace.
pub fn force_buffers(fd: &impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    for name in [libc::SO_SNDBUFFORCE, libc::SO_RCVBUFFORCE] {
        set_int(fd.as_fd(), libc::SOL_SOCKET, name, bytes)?;
    }
    Ok(())
}

/// Sets the receive buffer beyond `net.core.rmem_max` where this process may (`SO_RCVBUFFORCE`, socket(7)), and else up to it.
/// As with `SO_RCVBUF` the kernel doubles what it is told.
///
/// # Errors
/// Those of setsockopt(2) for `SO_RCVBUF`, which has none on a socket.
pub fn widen_receive_buffer(fd: &impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Gives the sizes of both buffers back to the kernel's autotuning after [`force_buffers`] or `SO_RCVBUF`
/// (`SO_BUF_LOCK`, Linux 5.14), beginning with the kernel's usual sizes.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 5.14.
pub fn autotune_buffers(fd: &impl AsFd) -> io::Result<()> {
    // The kernel doubles both (net/core/sock.c): the middle ones of net.ipv4.tcp_wmem and tcp_rmem as they usually are.
    for (name, bytes) in [(libc::SO_SNDBUF, 8 << 10), (libc::SO_RCVBUF, 64 << 10)] {
        set_int(fd.as_fd(), libc::SOL_SOCKET, name, bytes)?;
    }
    set_int(fd.as_fd(), libc::SOL_SOCKET, SO_BUF_LOCK, 0)
}

/// Marks every packet with a DSCP, 0 to 63 (RFC 2474), for IPv4 and IPv6 alike.
///
/// # Errors
/// `EAFNOSUPPORT` on a socket that is neither; `EINVAL` above 63.
pub fn set_dscp(fd: &impl AsFd, dscp: u8) -> io::Result<()> {
    if dscp > 63 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let (level, name) = match domain(fd)? {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_TOS),
        libc::AF_INET6 => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        _ => return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
    };
    // The two low bits are ECN's.
    set_int(fd.as_fd(), level, name, i32::from(dscp) << 2)
}

/// Has a later bind(2) of an address alone leave the port open until the peer is known (`IP_BIND_ADDRESS_NO_PORT`,
/// ip(7)), for IPv4 and IPv6 alike.
pub fn bind_address_no_port(fd: &impl AsFd) -> io::Result<()> {
    set_int(
        fd.as_fd(),
        libc::IPPROTO_IP,
        libc::IP_BIND_ADDRESS_NO_PORT,
        1,
    )
}

/// The DSCP of what a socket sends.
pub fn dscp(fd: &impl AsFd) -> io::Result<u8> {
    let (level, name) = match domain(fd)? {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_TOS),
        _ => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    Ok((get_int(fd.as_fd(), level, name)? >> 2) as u8)
}

/// Has a blocking receive poll the device for so many microseconds before it sleeps (`SO_BUSY_POLL`).
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN` where it is more than before; `ENOPROTOOPT` where the kernel cannot.
pub fn set_busy_poll(fd: &impl AsFd, microseconds: u32) -> io::Result<()> {
    let value = i32::try_from(microseconds).unwrap_or(i32::MAX);
    set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL, value)
}

/// Has the kernel cut what is sent into datagrams of so many bytes, the last one smaller (`UDP_SEGMENT`, udp(7)).
pub fn set_udp_segment(fd: &impl AsFd, bytes: u16) -> io::Result<()> {
    set_int(
        fd.as_fd(),
        libc::SOL_UDP,
        libc::UDP_SEGMENT,
        i32::from(bytes),
    )
}

/// Has datagrams of one flow and one size delivered together (`UDP_GRO`, udp(7)); a control message tells the size.
pub fn set_udp_gro(fd: &impl AsFd) -> io::Result<()> {
    set_int(fd.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Has a classic BPF program decide which socket of its `SO_REUSEPORT` group, in the order of their bind(2), gets a
/// datagram: what the program returns, having seen the payload (`SO_ATTACH_REUSEPORT_CBPF`, socket(7)). Where that is none
/// of the group's the kernel divides by a hash, as without a program. Holds for the whole group.
///
/// # Errors
/// `EINVAL` for a program that the kernel does not take, or on a socket without `SO_REUSEPORT`.
pub fn steer_reuseport(fd: &impl AsFd, program: &[SockFilter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len() as libc::c_ushort,
        // SockFilter is libc::sock_filter by another name (repr(transparent)); the kernel only reads it.
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the pointer and the length describe `program`, which outlives the call, as what it points at does.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            mem::size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
