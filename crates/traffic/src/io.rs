//! How an end reads and writes: known from its options before it begins, and recorded with what it did.

use wirecost_model::end_window::{End, Io, Waits};

use crate::load::Load;
use crate::machine::write_size;
use crate::options::{DISCARDED_AT_ONCE, Receiving, Waiting, Workload};
use crate::table::Serving;
use crate::worker::{Drive, ring_buffer};

/// Of this end; `rings` where its threads wait in rings.
pub(crate) fn io(load: &Load, end: End, rings: bool) -> Io {
    let waits = waits(load, end, rings);
    let (write, read) = sizes(load, end, waits);
    let bytes = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
    Io {
        write_bytes: bytes(write),
        read_bytes: bytes(read),
        waits,
    }
}

fn waits(load: &Load, end: End, rings: bool) -> Waits {
    if rings {
        return Waits::Ring;
    }
    match (load.options.waiting, load.table.server) {
        (Waiting::Spin, _) => Waits::Spin,
        // Its threads wait for the listener and for all that they accepted at once.
        (Waiting::Sleep, Serving::Thread(_)) if end == End::Server => match load.options.workload {
            Workload::TcpCrr => Waits::Epoll,
            _ => Waits::Socket,
        },
        (Waiting::Sleep, _) if load.drive == Drive::Blocking => Waits::Socket,
        (Waiting::Sleep, _) => Waits::Epoll,
    }
}

/// Of one write and one read.
fn sizes(load: &Load, end: End, waits: Waits) -> (usize, usize) {
    let options = &load.options;
    let buffers = (load.table.buffers)(options);
    let batch = |(count, size): (usize, usize)| count * size;
    let reading = match options.receiving {
        Receiving::Copy => options.read_at_once(),
        Receiving::Discard => DISCARDED_AT_ONCE,
    };
    let outstanding = |size: u32| size as usize * options.depth as usize;
    match (options.workload, end) {
        (Workload::TcpStream, End::Client) => (write_size::largest(options), 0),
        (Workload::TcpStream, End::Server) => (0, reading),
        (Workload::TcpBidirectional, _) => (write_size::largest(options), reading),
        (Workload::TcpRr | Workload::TcpCrr, _) => {
            let (written, read) = match end {
                End::Client => (options.request, outstanding(options.response)),
                End::Server => (options.response, usize::MAX),
            };
            let room = if waits == Waits::Ring {
                ring_buffer(options)
            } else {
                buffers.read
            };
            (outstanding(written).min(load.message.len()), read.min(room))
        }
        (Workload::UdpStream, End::Client) => (batch(buffers.send), 0),
        (Workload::UdpStream, End::Server) => (0, batch(buffers.receive)),
        (Workload::UdpRr, _) => (batch(buffers.send), batch(buffers.receive)),
    }
}
