//! The length of writes of a TCP stream, aligned to full packets.
//!
//! A corked stream has no message boundaries on the wire. The kernel fills packets of up to 64 KiB for segmentation
//! offload (`tcp_xmit_size_goal`, net/ipv4/tcp.c) with as many full segments as they hold, and at the end of each
//! write sends the last packet as it is. Writes of 128 KiB in full segments make packets of 45 and 45 segments at an
//! MSS of 1448 bytes, but of 46, 46 and 1 at 1398: then a remainder decides how full packets are. So a large write is
//! a number of full packets, which follows from the message size alone.

use socket2::Socket;

use crate::options::Options;

/// Nominal payload of a packet, bytes: the number of packets in a write is the message divided by it, rounded.
const NOMINAL: usize = 64 << 10;
/// Smaller messages are written unchanged, bytes: each fits into one packet at any usual MTU.
const MIN_ADAPTED_BYTES: usize = 48 << 10;
/// Largest payload of one packet, bytes: `GSO_LEGACY_MAX_SIZE` less `MAX_TCP_HEADER` and one (`sk_setup_caps`,
/// net/core/sock.c). In some configurations headers have 64 bytes less; a packet with one segment more is then
/// followed by one with a segment less.
const PAYLOAD: usize = 65_536 - 321;
/// Writes between two readings of the MSS, which changes with the path MTU.
const LOOK_EVERY: u32 = 64;

/// The length of each write of a stream.
#[derive(Debug)]
pub(crate) struct WriteSize {
    message: usize,
    /// Packets that a write fills; 0: a write is a message.
    packets: usize,
    /// Payload of a full packet, bytes; 0: not known.
    packet: usize,
    /// Bytes written before packets had this size.
    since: u64,
    /// Writes until the MSS is read again.
    left: u32,
}

/// Packets that a write of such a stream fills; 0 where a write is a message.
fn packets(options: &Options) -> usize {
    let message = options.load.request as usize;
    if options.corks() && message >= MIN_ADAPTED_BYTES {
        ((message + NOMINAL / 2) / NOMINAL).max(1)
    } else {
        0
    }
}

/// Largest write at any MSS, bytes.
pub(crate) fn largest(options: &Options) -> usize {
    match packets(options) {
        0 => options.load.request as usize,
        packets => packets * NOMINAL,
    }
}

/// Payload of a full packet at this MSS, at most the nominal one, bytes.
fn full_packet(mss: usize) -> usize {
    let segments = PAYLOAD.checked_div(mss).unwrap_or(0).max(1);
    (segments * mss).min(NOMINAL)
}

impl WriteSize {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            message: options.load.request as usize,
            packets: packets(options),
            packet: 0,
            since: 0,
            left: 0,
        }
    }

    /// Length of the next write after `written` bytes.
    pub(crate) fn next(&mut self, socket: &Socket, written: u64) -> usize {
        if self.packets == 0 {
            return self.message;
        }
        if self.left == 0 {
            // TCP_MAXSEG: the MSS of the path without the timestamp option (tcp(7)).
            self.learn(socket.tcp_mss().unwrap_or(0) as usize, written);
            self.left = LOOK_EVERY;
        }
        self.left -= 1;
        self.length(written)
    }

    fn learn(&mut self, mss: usize, written: u64) {
        let packet = full_packet(mss);
        if packet != self.packet {
            self.packet = packet;
            self.since = written;
        }
    }

    fn length(&self, written: u64) -> usize {
        if self.packet == 0 {
            return self.message;
        }
        // The socket may have accepted a part of the last write.
        let begun = (written - self.since) % self.packet as u64;
        self.packets * self.packet - begun as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::Workload;

    fn options(request: u32, nodelay: bool) -> Options {
        Options::new(Workload::TcpStream, [0; 16]).with(|load| {
            load.request = request;
            load.nodelay = nodelay;
        })
    }

    fn of(request: u32, mss: usize) -> WriteSize {
        let mut size = WriteSize::of(&options(request, false));
        size.learn(mss, 0);
        size
    }

    /// Segments of each packet that the kernel makes of one write (`tcp_sendmsg_locked` and `tcp_write_xmit`) where
    /// nothing holds them back.
    fn kernels_packets(mut write: usize, mss: usize, headers: usize) -> Vec<usize> {
        let goal = ((65_536 - headers - 1) / mss).max(1) * mss;
        let mut packets = Vec::new();
        while write > 0 {
            packets.push(write.min(goal).div_ceil(mss));
            write -= write.min(goal);
        }
        packets
    }

    #[test]
    fn how_many_packets_a_write_fills_follows_from_the_message() {
        let packets = [48 << 10, 64 << 10, 100 << 10, 128 << 10, 128_520, 1 << 20]
            .map(|message| super::packets(&options(message, false)));
        assert_eq!(packets, [1, 1, 2, 2, 2, 16]);
        assert_eq!(of(128 << 10, 1_448).length(0), 2 * 45 * 1_448);
        assert_eq!(of(128 << 10, 1_398).length(0), 2 * 46 * 1_398);
        assert_eq!(of(128 << 10, 8_948).length(0), 2 * 7 * 8_948);
        assert_eq!(of(128 << 10, 65_483).length(0), 2 * 65_483);
    }

    #[test]
    fn small_messages_and_those_that_leave_at_once_are_written_as_they_are() {
        let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let next = |request, nodelay| WriteSize::of(&options(request, nodelay)).next(&socket, 5);
        assert_eq!(next(1_000, false), 1_000);
        assert_eq!(next(40 << 10, false), 40 << 10);
        assert_eq!(next(128 << 10, true), 128 << 10);
        assert_eq!(largest(&options(1 << 20, true)), 1 << 20);
    }

    #[test]
    fn a_write_is_finished_before_the_next_and_a_new_mss_begins_anew() {
        let mut size = of(128 << 10, 1_448);
        assert_eq!(size.length(1_000), 90 * 1_448 - 1_000);
        size.learn(8_948, 1_000);
        assert_eq!(size.length(1_000), 14 * 8_948);
    }

    proptest! {
        #[test]
        fn all_packets_of_a_write_are_full_whatever_the_mss(message in (48u32 << 10)..=1 << 20, mss in 88usize..=65_483) {
            let write = of(message, mss).length(0);
            let packets = kernels_packets(write, mss, 320);
            prop_assert_eq!(packets.len(), super::packets(&options(message, false)));
            prop_assert!(packets.iter().all(|segments| *segments == full_packet(mss) / mss), "{packets:?}");
            // Where the kernel reserves less for headers a packet may hold more, and there are no more of them.
            prop_assert!(kernels_packets(write, mss, 256).len() <= packets.len());
        }

        #[test]
        fn a_write_ends_where_a_packet_ends_whatever_the_socket_took(
            message in (48u32 << 10)..=1 << 20, mss in 88usize..=65_483,
            taken in prop::collection::vec(1usize..1 << 20, 1..50),
        ) {
            let size = of(message, mss);
            let mut written = 0;
            for taken in taken {
                let length = size.length(written);
                prop_assert!(length >= 1 && length <= largest(&options(message, false)));
                prop_assert_eq!((written as usize + length) % full_packet(mss), 0);
                prop_assert_eq!(full_packet(mss) % mss, 0);
                written += taken.min(length) as u64;
            }
        }
    }
}
