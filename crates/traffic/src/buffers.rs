//! A thread's buffers, and how large they are.

use wirecost_sys::socket::{ReceiveBatch, SendBatch};

use crate::handshake::CONTROL_BYTES;
use crate::options::{Options, READ_BUFFER, Receiving};
use crate::read_offset::SLACK;

/// Bytes that a storage target reads from a connection at once, besides data of large writes.
pub(crate) const STORAGE_INPUT: usize = 128 << 10;
/// Upper bound on the messages of a batch (sendmmsg(2), recvmmsg(2)).
pub(crate) const BATCH: usize = 64;
/// Upper bound on the bytes of a batch of several messages.
const BATCH_BYTES: usize = 512 << 10;
/// Bytes that UDP_GRO may return as one message.
const COALESCED: usize = 64 << 10;
/// Datagrams that one UDP_SEGMENT send may hold (`UDP_MAX_SEGMENTS` before Linux 6.9).
const MAX_SEGMENTS: usize = 64;
/// The largest UDP payload over IPv4, which the sum of the segments may not exceed.
const MAX_PAYLOAD: usize = 65_507;
/// Bytes of a request or response up to which a ring is used: beyond it the cost is copying.
const MAX_RING_MESSAGE: usize = 16 << 10;

/// How large a thread's buffers are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BufferSizes {
    /// For reads over TCP, bytes.
    pub(crate) read: usize,
    /// For each connection in a ring to receive into, bytes; 0 where the workload cannot use a ring.
    pub(crate) ring: usize,
    /// For each connection, bytes, however its thread waits.
    pub(crate) connection: usize,
    /// For datagrams to send: how many messages, of how many bytes.
    pub(crate) send: (usize, usize),
    /// For datagrams to receive, likewise.
    pub(crate) receive: (usize, usize),
    /// Bytes of each datagram to send; `None` where each send sets them.
    pub(crate) datagram: Option<usize>,
}

/// A thread's buffers, made and touched before the start.
#[derive(Debug)]
pub(crate) struct Buffers {
    /// Buffer of reads over TCP.
    pub(crate) read: Box<[u8]>,
    pub(crate) tx_batch: SendBatch,
    pub(crate) rx_batch: ReceiveBatch,
}

/// Datagrams in each message that is handed to the kernel.
pub(crate) fn segments(options: &Options) -> usize {
    if options.load.segmentation.send {
        (MAX_PAYLOAD / options.load.request as usize).clamp(1, MAX_SEGMENTS)
    } else {
        1
    }
}

impl BufferSizes {
    /// Sizes for a TCP workload without a ring.
    pub(crate) fn tcp(options: &Options) -> Self {
        Self {
            read: (options.load.request.max(options.load.response) as usize).max(READ_BUFFER),
            ..Self::default()
        }
    }

    /// Sizes for TCP request/response on persistent connections.
    pub(crate) fn tcp_rr(options: &Options) -> Self {
        let largest = options.load.request.max(options.load.response) as usize;
        let ring = if largest > MAX_RING_MESSAGE {
            0
        } else {
            let outstanding = largest.saturating_mul(options.load.depth as usize);
            outstanding.min(MAX_RING_MESSAGE)
        };
        Self {
            ring,
            ..Self::tcp(options)
        }
    }

    /// Sizes for storage: `read` for replies at a client, `connection` for requests with small data at a target.
    pub(crate) fn storage(_: &Options) -> Self {
        Self {
            read: 2 * READ_BUFFER,
            connection: STORAGE_INPUT,
            ..Self::default()
        }
    }

    /// Sizes for storage at a path: `connection` has the blocks of all outstanding I/Os of a job.
    pub(crate) fn path(options: &Options) -> Self {
        Self {
            connection: options.load.request as usize * options.load.depth as usize,
            ..Self::default()
        }
    }

    /// Sizes for a TCP stream, whose receiver chooses where in its buffer a read begins ([`crate::read_offset`]).
    pub(crate) fn tcp_stream(options: &Options) -> Self {
        let usual = Self::tcp(options);
        Self {
            read: usual.read + SLACK,
            ..usual
        }
    }

    /// Sizes for a UDP stream, either end.
    pub(crate) fn udp_stream(options: &Options) -> Self {
        let each = options.load.request as usize;
        let message = each * segments(options);
        let kept = match (options.load.segmentation.receive, options.load.receiving) {
            (true, _) => COALESCED,
            (_, Receiving::Discard) => CONTROL_BYTES,
            // One byte more than a datagram, to tell one that is too long.
            (_, Receiving::Copy) => each.max(CONTROL_BYTES) + 1,
        };
        Self {
            send: (batch_of(message), message),
            receive: (batch_of(kept), kept),
            ..Self::default()
        }
    }

    /// Sizes for UDP request/response, either end.
    pub(crate) fn udp_rr(options: &Options) -> Self {
        let each =
            (options.load.request.max(options.load.response) as usize).max(CONTROL_BYTES) + 1;
        // No more datagrams than are outstanding arrive at once.
        let most = (options.load.depth as usize).saturating_mul(options.load.streams as usize);
        let count = batch_of(each).min(most.max(1));
        Self {
            send: (count, each),
            receive: (count, each),
            datagram: Some(options.load.request as usize),
            ..Self::default()
        }
    }

    /// Bytes of a batch of datagrams to send, and to receive.
    pub(crate) fn batches(&self) -> (usize, usize) {
        (self.send.0 * self.send.1, self.receive.0 * self.receive.1)
    }

    /// Bytes of all buffers of a thread, without those of a ring.
    pub(crate) fn total(&self) -> u64 {
        let (send, receive) = self.batches();
        (self.read + send + receive) as u64
    }
}

/// Number of messages of `each` bytes in a batch.
fn batch_of(each: usize) -> usize {
    (BATCH_BYTES / each).clamp(1, BATCH)
}

impl Buffers {
    /// Allocates the buffers, every page of them resident. `coalesced`: the receiver uses UDP_GRO.
    pub(crate) fn new(sizes: &BufferSizes, coalesced: bool) -> Self {
        let mut tx_batch = SendBatch::new(sizes.send.0, sizes.send.1);
        if let Some(length) = sizes.datagram {
            for index in 0..tx_batch.capacity() {
                tx_batch.set_length(index, length);
            }
        }
        Self {
            read: vec![1; sizes.read].into_boxed_slice(),
            tx_batch,
            rx_batch: ReceiveBatch::new(sizes.receive.0, sizes.receive.1, coalesced),
        }
    }
}
