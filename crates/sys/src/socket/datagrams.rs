//! Many datagrams in one call: sendmmsg(2) and recvmmsg(2) over buffers that are allocated once.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use socket2::{SockAddr, SockAddrStorage};

use super::transfer::{receive_with, send_with};

/// A peer's address in the kernel's form.
#[derive(Clone, Copy)]
pub struct RawAddress {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl std::fmt::Debug for RawAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RawAddress")
            .field("family", &self.storage.ss_family)
            .finish_non_exhaustive()
    }
}

impl PartialEq for RawAddress {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for RawAddress {}

impl RawAddress {
    /// The address, where it is IPv4 or IPv6.
    pub fn socket_address(&self) -> Option<SocketAddr> {
        let mut storage = SockAddrStorage::zeroed();
        // SAFETY: the view is of the storage's own type, every bit pattern of which is valid.
        unsafe { *storage.view_as::<libc::sockaddr_storage>() = self.storage };
        // SAFETY: the kernel wrote both the storage and how much of it is the address.
        unsafe { SockAddr::new(storage, self.length) }.as_socket()
    }

    /// The address in bytes, as many as the kernel reported.
    fn bytes(&self) -> &[u8] {
        let length = (self.length as usize).min(mem::size_of::<libc::sockaddr_storage>());
        // SAFETY: within the storage, which was zeroed before the kernel wrote to it: every byte is initialised.
        unsafe { std::slice::from_raw_parts((&raw const self.storage).cast(), length) }
    }
}

impl Default for RawAddress {
    fn default() -> Self {
        Self {
            // SAFETY: an all-zero sockaddr_storage is valid: AF_UNSPEC.
            storage: unsafe { mem::zeroed() },
            length: 0,
        }
    }
}

/// Contiguous buffers of `each` bytes, and the headers that describe them to the kernel.
struct MessageBuffers {
    bytes: Box<[u8]>,
    each: usize,
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: the raw pointers in `vectors` and `headers` are written anew before each system call and read by nobody
// after it; everything they point at is owned by the same struct.
unsafe impl Send for MessageBuffers {}

impl MessageBuffers {
    fn new(count: usize, each: usize) -> Self {
        let empty = libc::iovec {
            iov_base: ptr::null_mut(),
            iov_len: 0,
        };
        // SAFETY: an all-zero mmsghdr is valid: null pointers with lengths of zero.
        let header: libc::mmsghdr = unsafe { mem::zeroed() };
        Self {
            // Not zero, so that every page is resident before the load starts.
            bytes: vec![0xA5; count * each].into_boxed_slice(),
            each,
            vectors: vec![empty; count].into_boxed_slice(),
            headers: vec![header; count].into_boxed_slice(),
        }
    }

    /// Points header `index` at its buffer, `length` bytes of it.
    fn point(&mut self, index: usize, length: usize) {
        let buffer = &mut self.bytes[index * self.each..(index + 1) * self.each];
        self.vectors[index] = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: length.min(buffer.len()),
        };
        let header = &mut self.headers[index].msg_hdr;
        header.msg_iov = &raw mut self.vectors[index];
        header.msg_iovlen = 1;
        header.msg_name = ptr::null_mut();
        header.msg_namelen = 0;
        header.msg_control = ptr::null_mut();
        header.msg_controllen = 0;
    }
}

/// A batch of datagrams to send (sendmmsg(2)).
pub struct SendBatch {
    buffers: MessageBuffers,
    lengths: Box<[usize]>,
    addresses: Box<[RawAddress]>,
}

impl std::fmt::Debug for SendBatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SendBatch")
            .field("count", &self.lengths.len())
            .finish_non_exhaustive()
    }
}

impl SendBatch {
    /// Room for `count` messages of `each` bytes, which is also their initial length.
    pub fn new(count: usize, each: usize) -> Self {
        Self {
            buffers: MessageBuffers::new(count, each),
            lengths: vec![each; count].into_boxed_slice(),
            addresses: vec![RawAddress::default(); count].into_boxed_slice(),
        }
    }

    /// Number of messages that the batch has room for.
    pub fn capacity(&self) -> usize {
        self.lengths.len()
    }

    /// The buffer of one message.
    pub fn message(&mut self, index: usize) -> &mut [u8] {
        let each = self.buffers.each;
        &mut self.buffers.bytes[index * each..(index + 1) * each]
    }

    /// Sets the destination and the length in bytes of one message, for a socket that is not connected.
    pub fn address(&mut self, index: usize, to: &RawAddress, length: usize) {
        self.addresses[index] = *to;
        self.lengths[index] = length;
    }

    /// Sets the length of one message, bytes.
    pub fn set_length(&mut self, index: usize, length: usize) {
        self.lengths[index] = length;
    }

    /// Sends the messages `from..to` and returns how many were sent; an error only where none was. Blocks as the socket
    /// does, or never where `wait` is false.
    pub fn send(
        &mut self,
        fd: &impl AsFd,
        from: usize,
        to: usize,
        wait: bool,
    ) -> io::Result<usize> {
        let flags = libc::MSG_NOSIGNAL | if wait { 0 } else { libc::MSG_DONTWAIT };
        if to - from == 1 && self.addresses[from].length == 0 {
            return self.send_one(fd, from, flags);
        }
        for index in from..to {
            self.buffers.point(index, self.lengths[index]);
            let address = &mut self.addresses[index];
            if address.length > 0 {
                let header = &mut self.buffers.headers[index].msg_hdr;
                header.msg_name = (&raw mut address.storage).cast();
                header.msg_namelen = address.length;
            }
        }
        let headers = &mut self.buffers.headers[from..to];
        // SAFETY: every header in the range was pointed at memory of this struct, which outlives the call.
        let sent = unsafe {
            libc::sendmmsg(
                fd.as_fd().as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as libc::c_uint,
                flags as _,
            )
        };
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(sent as usize)
        }
    }
}

impl SendBatch {
    /// Sends one message on a connected socket, without headers for the kernel to copy.
    fn send_one(&mut self, fd: &impl AsFd, index: usize, flags: libc::c_int) -> io::Result<usize> {
        let length = self.lengths[index];
        let message = self.message(index);
        send_with(fd, &message[..length.min(message.len())], flags).map(|_| 1)
    }
}

/// Buffer for the control message of `UDP_GRO`, an `int`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 32]);

/// A batch of received datagrams (recvmmsg(2)).
pub struct ReceiveBatch {
    buffers: MessageBuffers,
    addresses: Box<[RawAddress]>,
    /// Empty where no control message is requested.
    controls: Box<[Control]>,
}

impl std::fmt::Debug for ReceiveBatch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ReceiveBatch")
            .field("count", &self.addresses.len())
            .finish_non_exhaustive()
    }
}

/// The content of one buffer of a [`ReceiveBatch`].
#[derive(Debug)]
pub struct Received<'a> {
    /// Bytes received, as many as the buffer holds.
    pub bytes: &'a [u8],
    /// Length of the datagram, bytes, even where the buffer holds less.
    pub length: usize,
    /// Size of the coalesced datagrams, bytes, of which the last may be shorter (`UDP_GRO`); `None`: one datagram.
    pub segment: Option<usize>,
    /// Address of the sender; meaningless where [`ReceiveBatch::receive`] was not asked for it.
    pub from: &'a RawAddress,
}

impl ReceiveBatch {
    /// Room for `count` messages of `each` bytes; `coalesced` where the socket has `UDP_GRO`.
    pub fn new(count: usize, each: usize, coalesced: bool) -> Self {
        let controls = if coalesced { count } else { 0 };
        Self {
            buffers: MessageBuffers::new(count, each),
            addresses: vec![RawAddress::default(); count].into_boxed_slice(),
            controls: vec![Control([0; 32]); controls].into_boxed_slice(),
        }
    }

    /// Receives the datagrams that have arrived and returns how many. Where there is none: waits for one as the socket
    /// does (its timeout included), or returns `WouldBlock` where `wait` is false.
    ///
    /// The senders' addresses are requested where `from` is true; on a connected socket they are known.
    ///
    /// recvmmsg's own timeout is not used: it is checked only when a datagram arrives (recvmmsg(2), BUGS).
    pub fn receive(&mut self, fd: &impl AsFd, wait: bool, from: bool) -> io::Result<usize> {
        let count = self.addresses.len();
        if count == 1 && !from && self.controls.is_empty() {
            return self.receive_one(fd, wait);
        }
        for index in 0..count {
            self.buffers.point(index, self.buffers.each);
            let header = &mut self.buffers.headers[index].msg_hdr;
            if from {
                header.msg_name = (&raw mut self.addresses[index].storage).cast();
                header.msg_namelen = mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            }
            if let Some(control) = self.controls.get_mut(index) {
                header.msg_control = control.0.as_mut_ptr().cast();
                header.msg_controllen = control.0.len() as _;
            }
        }
        let how = if wait {
            libc::MSG_WAITFORONE
        } else {
            libc::MSG_DONTWAIT
        };
        // MSG_TRUNC: the length that is returned is the datagram's, not the buffer's.
        let flags = how | libc::MSG_TRUNC;
        // SAFETY: every header was pointed at memory of this struct, which outlives the call; no time-out.
        let received = unsafe {
            libc::recvmmsg(
                fd.as_fd().as_raw_fd(),
                self.buffers.headers.as_mut_ptr(),
                count as libc::c_uint,
                flags as _,
                ptr::null_mut(),
            )
        };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        let headers = &self.buffers.headers[..received as usize];
        for (address, header) in self.addresses.iter_mut().zip(headers).filter(|_| from) {
            address.length = header.msg_hdr.msg_namelen;
        }
        Ok(received as usize)
    }

    /// Receives one message on a connected socket, without headers for the kernel to copy.
    fn receive_one(&mut self, fd: &impl AsFd, wait: bool) -> io::Result<usize> {
        let flags = libc::MSG_TRUNC | if wait { 0 } else { libc::MSG_DONTWAIT };
        let length = receive_with(fd, &mut self.buffers.bytes[..self.buffers.each], flags)?;
        self.buffers.headers[0].msg_len = length as libc::c_uint;
        Ok(1)
    }

    /// One of the messages that the last [`Self::receive`] counted.
    pub fn get(&self, index: usize) -> Received<'_> {
        let header = &self.buffers.headers[index];
        let length = header.msg_len as usize;
        let start = index * self.buffers.each;
        Received {
            bytes: &self.buffers.bytes[start..start + length.min(self.buffers.each)],
            length,
            segment: self
                .controls
                .get(index)
                .and_then(|_| segment_of(&header.msg_hdr)),
            from: &self.addresses[index],
        }
    }
}

/// The datagram size in the control message of `UDP_GRO`, bytes.
fn segment_of(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: recvmmsg filled the header; its control pointer is still to the control of the same struct.
    let control = unsafe { libc::CMSG_FIRSTHDR(ptr::from_ref(header)) };
    if control.is_null() {
        return None;
    }
    // SAFETY: not null, so a whole header within the control's room.
    let (level, kind) = unsafe { ((*control).cmsg_level, (*control).cmsg_type) };
    if (level, kind) != (libc::SOL_UDP, libc::UDP_GRO) {
        return None;
    }
    // SAFETY: the kernel puts an int behind it (include/linux/udp.h, udp_cmsg_recv).
    let size: libc::c_int = unsafe { ptr::read_unaligned(libc::CMSG_DATA(control).cast()) };
    usize::try_from(size).ok().filter(|&size| size > 0)
}
