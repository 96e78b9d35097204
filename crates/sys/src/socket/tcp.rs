//! A TCP connection's state in the kernel, and its congestion control.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use socket2::{Domain, SockRef, Socket, Type};

/// `TCP_INFO` of a connection: counters since its beginning, and its current state.
///
/// Meanings as in `struct tcp_info` of include/uapi/linux/tcp.h. A field that the running kernel does not know
/// is 0. The 32-bit counters wrap around: take differences with [`u32::wrapping_sub`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// Bytes sent that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes sent, without retransmissions; 0 before Linux 4.19.
    pub bytes_sent_once: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Segments sent, retransmits and pure acknowledgements included; wraps.
    pub segs_out: u32,
    /// Segments received, counted as they were on the wire; wraps.
    pub segs_in: u32,
    /// Segments with data sent, retransmits included; wraps.
    pub data_segs_out: u32,
    /// Segments with data received; wraps.
    pub data_segs_in: u32,
    /// Segments retransmitted; wraps.
    pub total_retrans: u32,
    /// Smoothed round-trip time in microseconds.
    pub rtt: u32,
    /// Smallest round-trip time in microseconds; `u32::MAX` before the first.
    pub min_rtt: u32,
    /// MSS of the segments that we send, bytes.
    pub snd_mss: u32,
    /// MSS of the segments that we receive, estimated by the kernel, bytes.
    pub rcv_mss: u32,
    /// MSS that this end announced, bytes.
    pub adv_mss: u32,
    /// Path MTU in use, bytes.
    pub pmtu: u32,
    /// Whether segments carry timestamps (RFC 7323): 12 bytes that `snd_mss` does not include.
    pub timestamps: bool,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Latest delivery rate, bytes per second.
    pub delivery_rate: u64,
    /// Time with data outstanding, microseconds.
    pub busy_time: u64,
    /// Part of `busy_time` limited by the peer's window, microseconds.
    pub rwnd_limited: u64,
    /// Part of `busy_time` limited by our send buffer, microseconds.
    pub sndbuf_limited: u64,
    /// Segments sent and not yet acknowledged.
    pub unacked: u32,
    /// Bytes queued and not yet sent.
    pub notsent_bytes: u32,
    /// Time since the last acknowledgement came, milliseconds.
    pub last_ack_recv: u32,
}

/// `struct tcp_info`, include/uapi/linux/tcp.h, as of Linux 6.7.
///
/// libc's differs between gnu and musl and ends early, so it is written out here; the kernel copies as much of it
/// as it knows and says how much that is.
#[repr(C)]
#[derive(Clone, Copy, Default)]
#[rustfmt::skip]
struct Kernel {
    state: u8, ca_state: u8, retransmits: u8, probes: u8, backoff: u8, options: u8, window_scales: u8, flags: u8,
    rto: u32, ato: u32, snd_mss: u32, rcv_mss: u32,
    unacked: u32, sacked: u32, lost: u32, retrans: u32, fackets: u32,
    last_data_sent: u32, last_ack_sent: u32, last_data_recv: u32, last_ack_recv: u32,
    pmtu: u32, rcv_ssthresh: u32, rtt: u32, rttvar: u32, snd_ssthresh: u32, snd_cwnd: u32, advmss: u32,
    reordering: u32,
    rcv_rtt: u32, rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64, max_pacing_rate: u64, bytes_acked: u64, bytes_received: u64,
    segs_out: u32, segs_in: u32,
    notsent_bytes: u32, min_rtt: u32, data_segs_in: u32, data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64, rwnd_limited: u64, sndbuf_limited: u64,
    delivered: u32, delivered_ce: u32,
    bytes_sent: u64, bytes_retrans: u64,
    dsack_dups: u32, reord_seen: u32, rcv_ooopack: u32, snd_wnd: u32, rcv_wnd: u32, rehash: u32,
    total_rto: u16, total_rto_recoveries: u16, total_rto_time: u32,
}

// Offsets where padding might shift a field, from the kernel's own layout.
const _: () = {
    assert!(mem::offset_of!(Kernel, pacing_rate) == 104);
    assert!(mem::offset_of!(Kernel, delivery_rate) == 160);
    assert!(mem::offset_of!(Kernel, bytes_sent) == 200);
    assert!(mem::size_of::<Kernel>() == 248);
};

/// Reads `TCP_INFO`.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOPROTOOPT` where `fd` is not a TCP socket.
pub fn tcp_info(fd: &impl AsFd) -> io::Result<TcpInfo> {
    let mut kernel = Kernel::default();
    let mut length = mem::size_of::<Kernel>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `kernel`, plain integers for which every bit pattern is valid;
    // the kernel writes at most `length` bytes, and what it does not write stays zero.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut kernel).cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpInfo {
        bytes_acked: kernel.bytes_acked,
        bytes_sent_once: kernel.bytes_sent.saturating_sub(kernel.bytes_retrans),
        bytes_received: kernel.bytes_received,
        segs_out: kernel.segs_out,
        segs_in: kernel.segs_in,
        data_segs_out: kernel.data_segs_out,
        data_segs_in: kernel.data_segs_in,
        total_retrans: kernel.total_retrans,
        rtt: kernel.rtt,
        min_rtt: kernel.min_rtt,
        snd_mss: kernel.snd_mss,
        rcv_mss: kernel.rcv_mss,
        adv_mss: kernel.advmss,
        pmtu: kernel.pmtu,
        // TCPI_OPT_TIMESTAMPS.
        timestamps: kernel.options & 1 != 0,
        snd_cwnd: kernel.snd_cwnd,
        delivery_rate: kernel.delivery_rate,
        busy_time: kernel.busy_time,
        rwnd_limited: kernel.rwnd_limited,
        sndbuf_limited: kernel.sndbuf_limited,
        unacked: kernel.unacked,
        notsent_bytes: kernel.notsent_bytes,
        last_ack_recv: kernel.last_ack_recv,
    })
}

/// Accepts a connection as a non-blocking socket, in one system call (accept4(2)).
pub fn accept_nonblocking(listener: &impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: a valid descriptor; the peer's address is not asked for; returns a new descriptor or -1.
    let fd = unsafe {
        libc::accept4(
            listener.as_fd().as_raw_fd(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned it to us, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Error of connect(2) on a non-blocking socket whose connection is being established: `EINPROGRESS`.
pub const IN_PROGRESS: i32 = libc::EINPROGRESS;

/// Why a congestion control could not be set.
#[derive(Debug, thiserror::Error)]
pub enum CongestionError {
    /// The kernel has the algorithm neither built in nor as a module that it may load.
    #[error("congestion control `{algorithm}` is not in this kernel; it has: {available}")]
    Missing {
        /// Name that was asked for.
        algorithm: String,
        /// Content of `/proc/sys/net/ipv4/tcp_available_congestion_control`.
        available: String,
    },
    /// The algorithm is not in `tcp_allowed_congestion_control`, and this process lacks `CAP_NET_ADMIN` in this
    /// namespace.
    #[error(
        "congestion control `{algorithm}` is not permitted without CAP_NET_ADMIN \
         (sysctl net.ipv4.tcp_allowed_congestion_control); this kernel has: {available}"
    )]
    NotPermitted {
        /// Name that was asked for.
        algorithm: String,
        /// Content of `/proc/sys/net/ipv4/tcp_available_congestion_control`.
        available: String,
    },
    /// Any other error.
    #[error("congestion control `{algorithm}` could not be set: {source}")]
    Other {
        /// Name that was asked for.
        algorithm: String,
        /// Error of the system call.
        source: io::Error,
    },
}

/// Checks that a connection of this process can use a congestion control, by the kernel's name.
///
/// # Errors
/// Errors of [`set_congestion`].
pub fn try_congestion(algorithm: &str) -> Result<(), CongestionError> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None);
    let socket = socket.map_err(|source| CongestionError::Other {
        algorithm: algorithm.to_owned(),
        source,
    })?;
    set_congestion(&socket, algorithm)
}

/// Sets the congestion control of one socket, by the kernel's name (`cubic`, `reno`, `bbr`).
///
/// Connections that a listener accepts inherit it.
pub fn set_congestion(fd: &impl AsFd, algorithm: &str) -> Result<(), CongestionError> {
    SockRef::from(fd)
        .set_tcp_congestion(algorithm.as_bytes())
        .map_err(|source| {
            let algorithm = algorithm.to_owned();
            match source.raw_os_error() {
                Some(libc::ENOENT) => CongestionError::Missing {
                    algorithm,
                    available: available(),
                },
                Some(libc::EPERM) => CongestionError::NotPermitted {
                    algorithm,
                    available: available(),
                },
                _ => CongestionError::Other { algorithm, source },
            }
        })
}

/// The congestion control that a socket uses.
pub fn congestion(fd: &impl AsFd) -> io::Result<String> {
    let name = SockRef::from(fd).tcp_congestion()?;
    // The kernel fills a fixed field (TCP_CA_NAME_MAX) with zeros behind the name.
    let end = name
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

fn available() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").map_or_else(
        |error| format!("(unreadable: {error})"),
        |names| names.trim().to_owned(),
    )
}
