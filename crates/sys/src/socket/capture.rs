//! Frames as they pass one interface.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{MsgFlags, recv, setsockopt};
use socket2::{Domain, Protocol, SockAddr, SockFilter, Socket, Type};

use super::poll_readable;

/// Wanted receive buffer in bytes: a burst of some thousand full frames while the reader is off the processor.
const RECEIVE_BUFFER: usize = 8 << 20;

/// A packet socket (packet(7)) on one interface: every frame that it receives or sends, from the Ethernet header on.
///
/// Needs `CAP_NET_RAW` in the namespace that the calling thread is in; the socket stays in that namespace.
#[derive(Debug)]
pub struct PacketCapture {
    socket: Socket,
    snaplen: usize,
}

impl PacketCapture {
    /// Opens a capture on the interface with this index; at most `snaplen` bytes of each frame are copied.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`, `ENODEV` where there is no such interface, `ENETDOWN` where it is down.
    pub fn open(ifindex: u32, snaplen: usize) -> io::Result<Self> {
        // Protocol 0 receives nothing: no frame of another interface can slip in before the bind.
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
        socket.set_nonblocking(true)?;
        if setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER).is_err() {
            socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        }
        let existing = Some(ifindex).filter(|&index| index > 0);
        let ifindex = existing.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
        socket.bind(&link_address(ifindex, libc::ETH_P_ALL as u16)?)?;
        Ok(Self { socket, snaplen })
    }

    /// Opens a capture on every interface of what is received with this EtherType and passes `filter`, a classic BPF
    /// program (bpf(4)) that begins at the network header and returns how many bytes are copied. Frames are given
    /// from there on (`SOCK_DGRAM`), whatever kind of link they come over.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`, `EINVAL` where the kernel does not take the filter.
    pub fn open_cooked(ether_type: u16, filter: &[SockFilter], snaplen: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0)))?;
        socket.set_nonblocking(true)?;
        if setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER).is_err() {
            socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        }
        // Before the bind, so that nothing else can slip in.
        socket.attach_filter(filter)?;
        socket.bind(&link_address(0, ether_type)?)?;
        Ok(Self { socket, snaplen })
    }

    /// The next frame, without waiting; `None` where there is none yet.
    ///
    /// Returns the bytes copied into `buffer`, at most its size and the snap length, and the frame's own length.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, usize)>> {
        let room = buffer.len().min(self.snaplen);
        loop {
            // With MSG_TRUNC the kernel returns the frame's own length, however little of it was copied.
            return match recv(
                self.socket.as_raw_fd(),
                &mut buffer[..room],
                MsgFlags::MSG_TRUNC,
            ) {
                Ok(original) => Ok(Some((original.min(room), original))),
                Err(nix::Error::EAGAIN) => Ok(None),
                Err(nix::Error::EINTR) => continue,
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Waits until there is a frame (or an error for [`Self::recv`] to tell); `false` when `timeout` passed first.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        Ok(!poll_readable(&[self.socket.as_fd()], timeout)?.is_empty())
    }
}

impl AsFd for PacketCapture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The address that binds a packet socket to one interface, or with index 0 to all, for one EtherType.
fn link_address(ifindex: u32, ether_type: u16) -> io::Result<SockAddr> {
    let sll_ifindex =
        i32::try_from(ifindex).map_err(|_| io::Error::from_raw_os_error(libc::ENODEV))?;
    // SAFETY: `storage` is zeroed and, as sockaddr_storage, large enough and aligned for any socket address; the
    // family and the length that are set belong to what is written.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let link = storage.cast::<libc::sockaddr_ll>();
            (*link).sll_family = libc::AF_PACKET as libc::sa_family_t;
            (*link).sll_protocol = ether_type.to_be();
            (*link).sll_ifindex = sll_ifindex;
            *length = mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
    }?;
    Ok(address)
}
