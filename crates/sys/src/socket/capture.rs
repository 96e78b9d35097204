//! Packet sockets that capture frames.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::RcvBufForce;
use socket2::{Domain, Protocol, SockAddr, SockFilter, Socket, Type};

use super::poll_readable;

/// Receive buffer to request, bytes: holds some thousand full frames while the reader is off the processor.
const RECEIVE_BUFFER: usize = 8 << 20;

/// A packet socket (packet(7)): every frame that one interface receives or sends, from the Ethernet header on, or what
/// all interfaces receive ([`Self::open_cooked`]).
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
        tell_tags(&socket)?;
        socket.bind(&link_address(ifindex, libc::ETH_P_ALL as u16)?)?;
        Ok(Self { socket, snaplen })
    }

    /// Opens a capture of the packets that any interface receives with this EtherType and that pass `filter`, a classic
    /// BPF program (bpf(4)) that begins at the network header and returns how many bytes are copied. Packets begin at
    /// the network header (`SOCK_DGRAM`), whatever kind of link they arrive over.
    ///
    /// # Errors
    /// `EPERM` without `CAP_NET_RAW`, `EINVAL` where the kernel rejects the filter.
    pub fn open_cooked(ether_type: u16, filter: &[SockFilter], snaplen: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0)))?;
        socket.set_nonblocking(true)?;
        if setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER).is_err() {
            socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        }
        tell_tags(&socket)?;
        // Attached before the bind, so that no other packet can slip in.
        socket.attach_filter(filter)?;
        socket.bind(&link_address(0, ether_type)?)?;
        Ok(Self { socket, snaplen })
    }

    /// Next frame, without waiting; `None` where there is none yet.
    ///
    /// Returns the bytes copied into `buffer`, at most its size and the snap length, and the frame's own length, bytes.
    /// A VLAN tag that the kernel took out of the frame is inserted again.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, usize)>> {
        let room = buffer.len().min(self.snaplen);
        loop {
            return match receive(&self.socket, &mut buffer[..room]) {
                Ok((original, None)) => Ok(Some((original.min(room), original))),
                Ok((original, Some(aux))) => {
                    let Some(tag) = tag_of(&aux) else {
                        return Ok(Some((original.min(room), original)));
                    };
                    let copied = put_back(&mut buffer[..room], original.min(room), tag);
                    Ok(Some((copied, original + tag.len())))
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(None),
                    io::ErrorKind::Interrupted => continue,
                    _ => Err(error),
                },
            };
        }
    }

    /// Next packet of a cooked capture, without waiting: how many bytes of it are in the buffer, and whether its
    /// checksum can be verified. It cannot where the packet is truncated, where the kernel has verified the checksum
    /// already, or where none is computed yet: a packet that never left this machine (`CHECKSUM_PARTIAL`).
    pub fn recv_checked(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, bool)>> {
        /// `TP_STATUS_CSUMNOTREADY` and `TP_STATUS_CSUM_VALID`.
        const NOT_TO_CHECK: u32 = 1 << 3 | 1 << 7;
        let room = buffer.len().min(self.snaplen);
        loop {
            return match receive(&self.socket, &mut buffer[..room]) {
                Ok((original, aux)) => {
                    let whole = original <= room;
                    let check = aux.is_none_or(|aux| aux.tp_status & NOT_TO_CHECK == 0);
                    Ok(Some((original.min(room), whole && check)))
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => Ok(None),
                    io::ErrorKind::Interrupted => continue,
                    _ => Err(error),
                },
            };
        }
    }

    /// Waits until there is a frame (or an error that [`Self::recv`] returns); `false` when `timeout` passed first.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        Ok(!poll_readable(&[self.socket.as_fd()], timeout)?.is_empty())
    }
}

impl AsFd for PacketCapture {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A VLAN tag as it is in a frame: EtherType and tag control information.
type Tag = [u8; 4];

/// Offset of a VLAN tag in a frame, bytes: behind both addresses.
const TAG_AT: usize = 12;

/// Inserts a VLAN tag into a frame with `copied` bytes in the buffer, and returns their new number; bytes that do not
/// fit any more are cut off at the end.
fn put_back(buffer: &mut [u8], copied: usize, tag: Tag) -> usize {
    if copied < TAG_AT || buffer.len() < TAG_AT + tag.len() {
        return copied;
    }
    let end = (copied + tag.len()).min(buffer.len());
    buffer.copy_within(TAG_AT..end - tag.len(), TAG_AT + tag.len());
    buffer[TAG_AT..TAG_AT + tag.len()].copy_from_slice(&tag);
    end
}

/// Makes the kernel report each frame's VLAN tag (packet(7), `PACKET_AUXDATA`).
fn tell_tags(socket: &Socket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is the integer that is passed with its size.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_AUXDATA,
            (&raw const on).cast(),
            mem::size_of_val(&on) as libc::socklen_t,
        )
    };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// One frame: its length in the kernel, bytes, and its auxiliary data.
fn receive(
    socket: &Socket,
    buffer: &mut [u8],
) -> io::Result<(usize, Option<libc::tpacket_auxdata>)> {
    /// Room and alignment for one control message.
    #[repr(C, align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: an all-zero msghdr is a valid one.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    // SAFETY: the message's pointers are to live memory of the lengths given. With MSG_TRUNC the kernel returns the
    // frame's own length, however little of it was copied.
    let original = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
    let Ok(original) = usize::try_from(original) else {
        return Err(io::Error::last_os_error());
    };
    let mut told = None;
    // SAFETY: the kernel has filled in the control messages and their length; CMSG_FIRSTHDR and CMSG_NXTHDR stay
    // within it. The data of a PACKET_AUXDATA message is a tpacket_auxdata, copied out byte by byte wherever it lies;
    // any bytes make one.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            let (level, kind) = ((*header).cmsg_level, (*header).cmsg_type);
            if (level, kind) == (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
                let mut aux: libc::tpacket_auxdata = mem::zeroed();
                let bytes = mem::size_of_val(&aux);
                libc::CMSG_DATA(header).copy_to_nonoverlapping((&raw mut aux).cast(), bytes);
                told = Some(aux);
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok((original, told))
}

fn tag_of(aux: &libc::tpacket_auxdata) -> Option<Tag> {
    const ETHERTYPE_VLAN: u16 = 0x8100;
    if aux.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = if aux.tp_status & libc::TP_STATUS_VLAN_TPID_VALID == 0 {
        ETHERTYPE_VLAN
    } else {
        aux.tp_vlan_tpid
    };
    let ([t0, t1], [c0, c1]) = (kind.to_be_bytes(), aux.tp_vlan_tci.to_be_bytes());
    Some([t0, t1, c0, c1])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_goes_between_addresses_and_type_and_what_does_not_fit_falls_off() {
        const TAG: Tag = [0x81, 0, 0, 42];
        let frame: [u8; 20] = std::array::from_fn(|at| at as u8);
        let mut buffer = [0; 24];
        buffer[..20].copy_from_slice(&frame);
        assert_eq!(put_back(&mut buffer, 20, TAG), 24);
        assert_eq!(buffer[..12], frame[..12]);
        assert_eq!(buffer[12..16], TAG);
        assert_eq!(buffer[16..], frame[12..]);
        let mut tight = frame;
        assert_eq!(put_back(&mut tight, 20, TAG), 20);
        assert_eq!(tight[12..16], TAG);
        assert_eq!(tight[16..], frame[12..16]);
        assert_eq!(put_back(&mut [0; 8], 8, TAG), 8);
    }
}
