//! Socket options, error queues and packet captures that the standard library does not offer.
//!
//! Every function works on a descriptor that the caller made; a socket belongs permanently to the network namespace
//! that its creating thread was in. Not here: what is sent, how often, and what a measured value means.

#![allow(
    unsafe_code,
    reason = "TCP_INFO, socket options, batches of datagrams and packet addresses have no wrapper elsewhere"
)]

mod capture;
mod datagrams;
mod error_queue;
mod options;
mod probing;
mod tcp;
mod transfer;
mod vrf;
mod zero_copy;

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

pub use capture::PacketCapture;
pub use datagrams::{RawAddress, ReceiveBatch, Received, SendBatch};
pub use error_queue::{
    ErrorOrigin, QueuedError, enable_recverr, read_error_queue, set_mtu_discover_probe,
};
pub use options::{
    autotune_buffers, bind_address_no_port, dscp, force_buffers, route_mtu, set_busy_poll,
    set_dscp, set_max_pacing_rate, set_udp_gro, set_udp_segment, steer_reuseport,
    widen_receive_buffer,
};
pub use probing::{
    QuotedError, ReceivedDatagram, enable_fragment_size, read_quoted_error, receive_arrived,
    set_hop_limit,
};
pub use tcp::{
    CongestionError, IN_PROGRESS, TcpInfo, accept_nonblocking, congestion, set_congestion,
    tcp_info, try_congestion,
};
pub use transfer::{receive, receive_discarding, send, send_vectored};
pub use vrf::{bind_here, link_device, source_towards, use_link_device, vrf_index, vrf_of};
pub use zero_copy::{Completions, enable_zero_copy, read_completions, send_zero_copy};

/// Waits until at least one of `fds` can be read, has an error pending (its error queue included) or was hung up.
///
/// Returns the positions of those within `fds`, ascending; empty when `timeout` passed first. Interrupted waits are
/// resumed with the time that is left.
pub fn poll_readable(fds: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<Vec<usize>> {
    let deadline = Instant::now().checked_add(timeout);
    let mut polled: Vec<PollFd<'_>> = fds
        .iter()
        .map(|fd| PollFd::new(*fd, PollFlags::POLLIN))
        .collect();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match poll(
            &mut polled,
            left.map_or(PollTimeout::MAX, whole_milliseconds),
        ) {
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    let ready = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
    Ok(polled
        .iter()
        .enumerate()
        .filter(|(_, fd)| ready(fd))
        .map(|(position, _)| position)
        .collect())
}

/// A timeout of poll(2), rounded up so that a wait is never shorter than asked for and never spins through its last
/// millisecond.
fn whole_milliseconds(time: Duration) -> PollTimeout {
    PollTimeout::try_from(time.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX)
}

/// setsockopt(2) for an option that takes an `int`.
fn set_int(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the kernel only reads it.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            mem::size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// getsockopt(2) for an option that returns an `int`.
fn get_int(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = mem::size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`; the kernel writes at most `length` bytes into it.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(value)
    }
}

/// `AF_INET` or `AF_INET6` (or another), as the socket was created.
fn domain(fd: &impl AsFd) -> io::Result<libc::c_int> {
    get_int(fd.as_fd(), libc::SOL_SOCKET, libc::SO_DOMAIN)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_load;
