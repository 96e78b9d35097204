//! The sending side of a UDP stream.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;
use wirecost_sys::epoll::Interest;

use super::pace::Pace;
use super::{Desk, Machine, Next, Trouble};
use crate::datagram::Datagram;
use crate::flow::End;
use crate::load::Load;
use crate::options::{Options, Rate};
use crate::sequence::Stamp;
use crate::table::BATCH;

/// Batches of one flow before the others of its thread have their turn.
const TURN: u32 = 4;
/// See [`UdpSource::singly`].
const SINGLY: u32 = 4;
/// Datagrams that one UDP_SEGMENT send may hold (`UDP_MAX_SEGMENTS` before Linux 6.9).
const MAX_SEGMENTS: usize = 64;
/// The largest UDP payload over IPv4, which the sum of the segments may not exceed.
const MAX_PAYLOAD: usize = 65_507;

/// Datagrams in each message that is handed to the kernel.
pub(crate) fn segments(options: &Options) -> usize {
    if options.segmentation.send {
        (MAX_PAYLOAD / options.request as usize).clamp(1, MAX_SEGMENTS)
    } else {
        1
    }
}

/// A paced flow sends what is due in this time at once, seconds; of several flows each does so as many times as seldom, and
/// begins its part of that later. A timer for each datagram takes a core for each Gbit/s by itself.
const TICK: f64 = 200e-6;
/// But never more than is due in this time: a burst is to fit into the buffers of a path.
const LONGEST_TICK: f64 = 1e-3;

/// Datagrams of one flow that leave together, where so many are due each second: in whole messages where segmentation has
/// several in one.
fn burst(options: &Options, per_second: f64) -> u64 {
    let segments = segments(options) as u64;
    let most = (per_second * LONGEST_TICK) as u64;
    if most < segments {
        return most.max(1);
    }
    let tick = (TICK * f64::from(options.streams)).min(LONGEST_TICK);
    let messages = (per_second * tick) as u64 / segments;
    messages.clamp(1, BATCH as u64) * segments
}

pub(crate) struct UdpSource {
    socket: Arc<Socket>,
    flow: u32,
    pace: Option<Pace>,
    /// The next datagram's number.
    number: u64,
    /// Messages to hand over one by one, after fewer left than were handed over: sendmmsg(2) tells only the first
    /// one's error, and an ICMP message that comes while the first is on its way is lost with the second.
    singly: u32,
}

impl UdpSource {
    pub(crate) fn new(load: &Load, socket: Arc<Socket>, flow: u32) -> Self {
        let pace = match load.options.rate {
            Some(Rate::BitsPerSecond(bits)) => {
                let per_second = bits as f64 / (f64::from(load.options.request) * 8.0);
                Some(Pace::in_bursts(
                    per_second,
                    burst(&load.options, per_second),
                    true,
                    flow,
                    load.options.streams,
                ))
            }
            _ => None,
        };
        Self {
            socket,
            flow,
            pace,
            number: 0,
            singly: 0,
        }
    }

    /// Numbers `count` datagrams and hands them over. Returns how many left.
    fn send(&mut self, desk: &mut Desk<'_>, count: u64, counted: bool) -> io::Result<u64> {
        let load = desk.load;
        let each = load.options.request as usize;
        let segments = segments(&load.options);
        let sent = Stamp::of(load.now());
        let batch = &mut desk.room.out;
        let mut messages = 0;
        let mut numbered = 0;
        while numbered < count {
            let datagrams = (count - numbered).min(segments as u64) as usize;
            batch.set_length(messages, datagrams * each);
            for message in batch
                .message(messages)
                .chunks_exact_mut(each)
                .take(datagrams)
            {
                let datagram = Datagram {
                    tag: load.tag,
                    flow: self.flow as u16,
                    counted,
                    number: self.number + numbered,
                    sent,
                };
                datagram.put(message);
                numbered += 1;
            }
            messages += 1;
        }
        let left = batch.send(&*self.socket, 0, messages, desk.blocking)?;
        self.singly = if left < messages {
            SINGLY
        } else {
            self.singly.saturating_sub(1)
        };
        Ok((left * segments).min(count as usize) as u64)
    }
}

impl Machine for UdpSource {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        let load = desk.load;
        let segments = segments(&load.options);
        if let (Some(pace), Some(start)) = (&mut self.pace, load.began()) {
            pace.begin(start);
        }
        for _ in 0..TURN {
            let messages = if self.singly > 0 {
                1
            } else {
                desk.room.out.capacity()
            };
            let room = (messages * segments) as u64;
            if load.flows.stopping() {
                return Next::Over(End::Orderly);
            }
            let due = self
                .pace
                .as_mut()
                .map_or(room, |pace| pace.due(load.now()).min(room));
            if due == 0 {
                return Next::Wait(Interest::NONE, self.pace.as_ref().map(Pace::next));
            }
            let count = load.take(due);
            if count == 0 {
                return Next::Over(End::Orderly);
            }
            let counted = load.is_counted();
            let result = self.send(desk, count, counted);
            let sent = *result.as_ref().unwrap_or(&0);
            load.give_back(count - sent);
            self.number += sent;
            let out = &desk.flow(self.flow).out;
            out.messages.publish(self.number);
            if counted {
                out.counted.add(sent);
            }
            out.bytes
                .publish(self.number * u64::from(load.options.request));
            if let Some(pace) = &mut self.pace {
                pace.sent(sent);
            }
            if let Err(error) = result {
                match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => return Next::WRITE,
                    Trouble::Broken(error) => return Next::failed(explain(error, &load.options)),
                }
            }
        }
        Next::Again
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.socket.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
}

/// The errors of sendmmsg(2) that say little by themselves.
fn explain(error: io::Error, options: &Options) -> io::Error {
    // The kernel's segmentation cannot fragment: EINVAL before Linux 6.14, EMSGSIZE since (net/ipv4/udp.c,
    // udp_send_skb); EIO where the device cannot compute checksums.
    if error.kind() == io::ErrorKind::ConnectionRefused {
        let words = "nobody listens there any more (ICMP port unreachable)";
        return io::Error::new(error.kind(), words);
    }
    if !options.segmentation.send {
        return error;
    }
    let words = format!(
        "segmentation offload of {} byte datagrams: {error}; they must fit the path's MTU unfragmented, and the \
         device must compute checksums",
        options.request
    );
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Segmentation, Workload};

    #[test]
    fn a_paced_flow_wakes_up_for_a_burst_and_not_for_each_datagram() {
        let burst = |request, bits: f64, streams, send| {
            let options = Options {
                request,
                streams,
                segmentation: Segmentation {
                    send,
                    receive: false,
                },
                ..Options::new(Workload::UdpStream, [0; 16])
            };
            super::burst(&options, bits / 8.0 / f64::from(request))
        };
        assert_eq!(burst(1_400, 1e9, 1, false), 17, "200 us");
        assert_eq!(burst(1_400, 200e6, 1, false), 3);
        assert_eq!(burst(1_400, 1e6, 1, false), 1);
        assert_eq!(burst(1_400, 1e9 / 4.0, 4, false), 17, "800 us each");
        assert_eq!(burst(1_400, 1e9 / 8.0, 8, false), 11, "1 ms each");
        assert_eq!(burst(64, 10e9, 1, false), 64, "a batch");
        // 46 of them are a message.
        assert_eq!(burst(1_400, 1e9, 1, true), 46);
        assert_eq!(burst(1_400, 5e9, 1, true), 46);
        assert_eq!(burst(1_400, 10e9, 1, true), 3 * 46);
        assert_eq!(burst(1_400, 200e6, 1, true), 17, "1 ms");
    }
}
