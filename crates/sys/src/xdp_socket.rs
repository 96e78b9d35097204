//! AF_XDP sockets (Documentation/networking/af_xdp.rst): whether one can be bound to a device.
//! No sending or receiving.

#![expect(
    unsafe_code,
    reason = "AF_XDP's address and options have no wrapper in nix"
)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

// include/uapi/linux/if_xdp.h, include/linux/socket.h
const AF_XDP: libc::c_int = 44;
const FRAME_BYTES: u32 = 4096;
const FRAMES: u32 = 16;

/// Memory for frames, shared with the kernel.
#[derive(Debug)]
struct Frames {
    start: *mut libc::c_void,
    length: usize,
}

impl Frames {
    fn map() -> io::Result<Self> {
        let length = (FRAMES * FRAME_BYTES) as usize;
        // SAFETY: a new anonymous mapping wherever the kernel likes; no memory of ours is touched.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self { start, length })
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made above, to which nothing refers any more.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// A socket bound to one queue of a device in copy mode, which every driver supports. Closed when dropped.
#[derive(Debug)]
pub struct BoundXdpSocket {
    // Declared in this order, so that the socket is closed before the memory is unmapped.
    _socket: OwnedFd,
    _frames: Frames,
}

impl BoundXdpSocket {
    /// Makes a socket with its memory and its four rings, and binds it to a queue. The device must be up.
    ///
    /// # Errors
    /// `EAFNOSUPPORT` where the kernel has no AF_XDP, `EPERM` without `CAP_NET_RAW`, `ENOBUFS` where
    /// `ulimit -l` allows too little locked memory.
    pub fn bind(ifindex: u32, queue: u32) -> io::Result<Self> {
        let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: takes integers only, returns a new descriptor or -1.
        let fd = unsafe { libc::socket(AF_XDP, flags, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just returned it to us, nobody else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let frames = Frames::map()?;
        let memory = libc::xdp_umem_reg_v1 {
            addr: frames.start as u64,
            len: frames.length as u64,
            chunk_size: FRAME_BYTES,
            headroom: 0,
        };
        set(&socket, libc::XDP_UMEM_REG, &memory)?;
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set(&socket, ring, &FRAMES)?;
        }
        let address = libc::sockaddr_xdp {
            sxdp_family: AF_XDP as u16,
            sxdp_flags: libc::XDP_COPY,
            sxdp_ifindex: ifindex,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        // SAFETY: the pointer and the length describe `address`, which outlives the call.
        let result = unsafe {
            libc::bind(
                socket.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_xdp>() as libc::socklen_t,
            )
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            _socket: socket,
            _frames: frames,
        })
    }
}

/// setsockopt(2) at the level of AF_XDP, for `T` as the option's C structure.
fn set<T>(socket: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the kernel only
    // reads it. The memory that XDP_UMEM_REG names is a mapping that outlives the socket.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_XDP,
            name,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
