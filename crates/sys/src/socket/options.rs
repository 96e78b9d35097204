//! Socket options of a load that socket2 and nix do not offer.

use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use socket2::SockFilter;

use super::{domain, get_int, set_int};

/// From include/uapi/asm-generic/socket.h; libc does not define it.
const SO_BUF_LOCK: libc::c_int = 72;

/// Path MTU from an address to a target as the kernel knows it, bytes: that of the route, or less where routers have
/// reported it (`IP_MTU`, ip(7)). Nothing is sent.
///
/// # Errors
/// Errors of bind(2) and connect(2).
pub fn route_mtu(source: IpAddr, target: SocketAddr) -> io::Result<u32> {
    let socket = UdpSocket::bind(SocketAddr::new(source, 0))?;
    socket.connect(target)?;
    let mtu = match target {
        SocketAddr::V4(_) => get_int(socket.as_fd(), libc::IPPROTO_IP, libc::IP_MTU)?,
        SocketAddr::V6(_) => get_int(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_MTU)?,
    };
    u32::try_from(mtu).map_err(io::Error::other)
}

/// Limits the rate at which the kernel sends on this socket, bytes per second (`SO_MAX_PACING_RATE`, socket(7)).
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

/// Sets the sizes of both buffers, in bytes, beyond `net.core.wmem_max` and `net.core.rmem_max` (`SO_SNDBUFFORCE`,
/// `SO_RCVBUFFORCE`, socket(7)). As with `SO_SNDBUF` the kernel doubles the value.
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

/// Sets the size of the receive buffer, in bytes, beyond `net.core.rmem_max` where this process may (`SO_RCVBUFFORCE`,
/// socket(7)), otherwise up to it. As with `SO_RCVBUF` the kernel doubles the value.
///
/// # Errors
/// Those of setsockopt(2) for `SO_RCVBUF`, which does not fail on a socket.
pub fn widen_receive_buffer(fd: &impl AsFd, bytes: u32) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Returns the sizes of both buffers to the kernel's autotuning after [`force_buffers`] or `SO_RCVBUF` (`SO_BUF_LOCK`,
/// Linux 5.14), starting from the kernel's default sizes.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 5.14.
pub fn autotune_buffers(fd: &impl AsFd) -> io::Result<()> {
    // The kernel doubles both (net/core/sock.c), which gives the defaults of net.ipv4.tcp_wmem and tcp_rmem.
    for (name, bytes) in [(libc::SO_SNDBUF, 8 << 10), (libc::SO_RCVBUF, 64 << 10)] {
        set_int(fd.as_fd(), libc::SOL_SOCKET, name, bytes)?;
    }
    set_int(fd.as_fd(), libc::SOL_SOCKET, SO_BUF_LOCK, 0)
}

/// Marks every packet that a socket sends with a DSCP, 0 to 63 (RFC 2474), for IPv4 and IPv6 alike.
///
/// # Errors
/// `EAFNOSUPPORT` on a socket that is neither IPv4 nor IPv6; `EINVAL` above 63.
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

/// Makes a later bind(2) of an address without a port leave the choice of the port to connect(2)
/// (`IP_BIND_ADDRESS_NO_PORT`, ip(7)), for IPv4 and IPv6 alike.
pub fn bind_address_no_port(fd: &impl AsFd) -> io::Result<()> {
    set_int(
        fd.as_fd(),
        libc::IPPROTO_IP,
        libc::IP_BIND_ADDRESS_NO_PORT,
        1,
    )
}

/// DSCP of the packets that a socket sends, 0 to 63.
pub fn dscp(fd: &impl AsFd) -> io::Result<u8> {
    let (level, name) = match domain(fd)? {
        libc::AF_INET => (libc::IPPROTO_IP, libc::IP_TOS),
        _ => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    Ok((get_int(fd.as_fd(), level, name)? >> 2) as u8)
}

/// Makes a blocking receive poll the device for so many microseconds before it sleeps (`SO_BUSY_POLL`).
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN` where the value is raised; `ENOPROTOOPT` where the kernel does not support it.
pub fn set_busy_poll(fd: &impl AsFd, microseconds: u32) -> io::Result<()> {
    let value = i32::try_from(microseconds).unwrap_or(i32::MAX);
    set_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_BUSY_POLL, value)
}

/// Makes the kernel split each send into datagrams of `bytes` bytes, the last one shorter (`UDP_SEGMENT`, udp(7)).
pub fn set_udp_segment(fd: &impl AsFd, bytes: u16) -> io::Result<()> {
    set_int(
        fd.as_fd(),
        libc::SOL_UDP,
        libc::UDP_SEGMENT,
        i32::from(bytes),
    )
}

/// Delivers datagrams of one flow and one size together (`UDP_GRO`, udp(7)); a control message states the size.
pub fn set_udp_gro(fd: &impl AsFd) -> io::Result<()> {
    set_int(fd.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Makes a classic BPF program choose the socket of an `SO_REUSEPORT` group that gets a datagram: the program sees the
/// payload and returns the socket's index, in the order of bind(2) (`SO_ATTACH_REUSEPORT_CBPF`, socket(7)). Where no
/// socket has that index the kernel chooses by a hash, as without a program. Applies to the whole group.
///
/// # Errors
/// `EINVAL` for a program that the kernel rejects, or on a socket without `SO_REUSEPORT`.
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
