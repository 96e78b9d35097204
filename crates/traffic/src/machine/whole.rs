//! Writes of whole segments.
//!
//! A corked stream's segments are full whatever its writes are, but a write that ends within a segment leaves the kernel
//! to cut what it has built (`tcp_mss_split_point`, net/ipv4/tcp_output.c) and to go on at the cut with the next write.
//! Writes that end where a segment ends carry more at less cost for both ends; docs/loads.md has the measurements.

use socket2::Socket;

use crate::options::Options;

/// Writes of fewer segments stay as long as the messages: rounded down they would be much smaller.
const FEWEST: usize = 8;
/// Writes after which the MSS is read again, which changes with the path's MTU.
const LOOK_EVERY: u32 = 64;

/// How long each write of a stream is.
#[derive(Debug)]
pub(crate) struct Whole {
    message: usize,
    /// Whether writes are rounded at all.
    rounds: bool,
    /// Payload of a full segment, in bytes; 0: not known.
    mss: usize,
    /// What the stream had written when it had this MSS first.
    since: u64,
    /// Writes until it is read again.
    left: u32,
}

impl Whole {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            message: options.request as usize,
            rounds: options.corks(),
            mss: 0,
            since: 0,
            left: 0,
        }
    }

    /// Bytes of the next write where `written` were written before: a message, or as many whole segments as it has room
    /// for.
    pub(crate) fn next(&mut self, socket: &Socket, written: u64) -> usize {
        if !self.rounds {
            return self.message;
        }
        if self.left == 0 {
            // TCP_MAXSEG: that of the path, without what the timestamps take (tcp(7)).
            let mss = socket.tcp_mss().unwrap_or(0) as usize;
            self.learn(mss, written);
            self.left = LOOK_EVERY;
        }
        self.left -= 1;
        self.length(written)
    }

    fn learn(&mut self, mss: usize, written: u64) {
        if mss != self.mss {
            self.mss = mss;
            self.since = written;
        }
    }

    fn length(&self, written: u64) -> usize {
        match self.message.checked_div(self.mss) {
            Some(segments) if segments >= FEWEST => {
                // The socket may have taken a part of the last write only.
                let begun = (written - self.since) % self.mss as u64;
                segments * self.mss - begun as usize
            }
            _ => self.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::Workload;

    fn of(request: u32, nodelay: bool) -> Whole {
        Whole::of(&Options {
            request,
            nodelay,
            ..Options::new(Workload::TcpStream, [0; 16])
        })
    }

    #[test]
    fn a_write_has_as_many_whole_segments_as_a_message_has_room_for() {
        let mut whole = of(128 << 10, false);
        whole.learn(1_448, 0);
        assert_eq!(whole.length(0), 90 * 1_448);
        // Of which the socket took 1,000 bytes.
        assert_eq!(whole.length(1_000), 90 * 1_448 - 1_000);
        // The path's MTU changed; what was written until then was cut anew by the kernel.
        whole.learn(8_948, 1_000);
        assert_eq!(whole.length(1_000), 14 * 8_948);
        whole.learn(65_483, 1_000);
        assert_eq!(
            whole.length(1_000),
            128 << 10,
            "two segments would be rough"
        );
        whole.learn(0, 1_000);
        assert_eq!(whole.length(1_000), 128 << 10, "not known");
    }

    #[test]
    fn small_messages_and_those_that_leave_at_once_are_written_as_they_are() {
        let mut small = of(1_000, false);
        small.learn(1_448, 0);
        assert_eq!(small.length(0), 1_000);
        let socket = Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        assert_eq!(of(128 << 10, true).next(&socket, 5), 128 << 10);
    }

    proptest! {
        #[test]
        fn a_write_ends_where_a_segment_ends_whatever_the_socket_took(
            message in 1u32..1 << 20, mss in 1usize..9_000,
            taken in prop::collection::vec(1usize..1 << 20, 1..50),
        ) {
            let mut whole = of(message, false);
            whole.learn(mss, 0);
            let mut written = 0;
            for taken in taken {
                let length = whole.length(written);
                prop_assert!(length >= 1 && length <= message as usize);
                if message as usize >= FEWEST * mss {
                    prop_assert_eq!((written as usize + length) % mss, 0);
                    prop_assert!(length > message as usize - 2 * mss);
                }
                written += taken.min(length) as u64;
            }
        }
    }
}
