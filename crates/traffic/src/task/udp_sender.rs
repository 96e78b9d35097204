//! The sender of a UDP stream.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;
use wirecost_sys::epoll::Interest;

use super::pacer::Pacer;
use super::{Context, IoFailure, Progress, Task};
use crate::buffers::{BATCH, segments};
use crate::datagram::Datagram;
use crate::flow::Outcome;
use crate::options::{Options, Rate};
use crate::sequence::Timestamp;
use crate::shared::Shared;

/// Batches of one flow before the others of its thread are polled.
const BUDGET: u32 = 4;
/// Messages that are sent one by one after a short sendmmsg(2): see [`UdpSender::singly`].
const SINGLY: u32 = 4;
/// A paced flow sends what is due in this time as one burst, seconds. With n flows each sends a burst n times less
/// often, at its own offset. A timer for each datagram would take a core for each Gbit/s.
const TICK: f64 = 200e-6;
/// Errors of the kernel's segmentation, which cannot fragment: EINVAL before Linux 6.14, EMSGSIZE since
/// (net/ipv4/udp.c, udp_send_skb); EIO where the device cannot compute checksums.
const OF_SEGMENTATION: [i32; 3] = [22, 90, 5];
/// The longest time between two bursts, seconds: a burst must fit into the buffers of a path.
const LONGEST_TICK: f64 = 1e-3;

/// Datagrams in a burst of one flow at `per_second` datagrams/s. With segmentation offload a burst is full messages,
/// where one takes no longer than [`LONGEST_TICK`].
fn burst(options: &Options, per_second: f64) -> u64 {
    let segments = segments(options) as u64;
    let most = (per_second * LONGEST_TICK) as u64;
    if most < segments {
        return most.max(1);
    }
    let tick = (TICK * f64::from(options.load.streams)).min(LONGEST_TICK);
    let messages = (per_second * tick) as u64 / segments;
    messages.clamp(1, BATCH as u64) * segments
}

pub(crate) struct UdpSender {
    socket: Arc<Socket>,
    flow: u32,
    /// The schedule of a flow with a rate; `None` without one.
    pace: Option<Pacer>,
    /// The next datagram's number.
    number: u64,
    /// Messages to send one by one, after a short sendmmsg(2): it returns only the first message's error, and an ICMP
    /// error that arrives during the first is lost with the second.
    singly: u32,
}

impl UdpSender {
    pub(crate) fn new(shared: &Shared, socket: Arc<Socket>, flow: u32) -> Self {
        let pace = match shared.options.load.rate {
            Some(Rate::BitsPerSecond(bits)) => {
                let per_second = bits as f64 / (f64::from(shared.options.load.request) * 8.0);
                Some(Pacer::in_bursts(
                    per_second,
                    burst(&shared.options, per_second),
                    true,
                    flow,
                    shared.options.load.streams,
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

    /// Numbers and sends `count` datagrams. `counted`: they carry the mark of [`crate::Client::set_counted`]. Returns
    /// how many were sent.
    fn send(&mut self, context: &mut Context<'_>, count: u64, counted: bool) -> io::Result<u64> {
        let shared = context.shared;
        let each = shared.options.load.request as usize;
        let segments = segments(&shared.options);
        let sent = Timestamp::of(shared.now());
        let batch = &mut context.buffers.tx_batch;
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
                    tag: shared.tag,
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
        let left = batch.send(&*self.socket, 0, messages, context.blocking)?;
        self.singly = if left < messages {
            SINGLY
        } else {
            self.singly.saturating_sub(1)
        };
        Ok((left * segments).min(count as usize) as u64)
    }
}

impl Task for UdpSender {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        let shared = context.shared;
        let segments = segments(&shared.options);
        if let (Some(pace), Some(start)) = (&mut self.pace, shared.began()) {
            pace.begin(start);
        }
        for _ in 0..BUDGET {
            let messages = if self.singly > 0 {
                1
            } else {
                context.buffers.tx_batch.capacity()
            };
            let room = (messages * segments) as u64;
            if shared.flows.stopping() {
                return Progress::Over(Outcome::Orderly);
            }
            let due = self
                .pace
                .as_mut()
                .map_or(room, |pace| pace.due(shared.now()).min(room));
            if due == 0 {
                return Progress::Wait(Interest::NONE, self.pace.as_ref().map(Pacer::next));
            }
            let count = shared.take_budget(due);
            if count == 0 {
                return Progress::Over(Outcome::Orderly);
            }
            let counted = shared.is_counted();
            let result = self.send(context, count, counted);
            let sent = *result.as_ref().unwrap_or(&0);
            shared.return_budget(count - sent);
            self.number += sent;
            let tx = &context.flow(self.flow).tx;
            tx.messages.publish(self.number);
            if counted {
                tx.counted.add(sent);
            }
            tx.bytes
                .publish(self.number * u64::from(shared.options.load.request));
            if let Some(pace) = &mut self.pace {
                pace.sent(sent);
            }
            if let Err(error) = result {
                match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => return Progress::WRITE,
                    IoFailure::Broken(error) => {
                        return Progress::failed(explain(error, &shared.options));
                    }
                }
            }
        }
        Progress::Again
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.socket.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        Some(self.flow)
    }
}

/// Adds advice to errors of sendmmsg(2).
fn explain(error: io::Error, options: &Options) -> io::Error {
    if error.kind() == io::ErrorKind::ConnectionRefused {
        let words = "no process listens on that port (ICMP port unreachable)";
        return io::Error::new(error.kind(), words);
    }
    let code = error.raw_os_error();
    if !options.load.segmentation.send || !code.is_some_and(|code| OF_SEGMENTATION.contains(&code))
    {
        return error;
    }
    let words = format!(
        "segmentation offload of {} byte datagrams: {error}; they must fit the path's MTU unfragmented, and the \
         device must compute checksums",
        options.load.request
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
            let options = Options::new(Workload::UdpStream, [0; 16]).with(|load| {
                load.request = request;
                load.streams = streams;
                load.segmentation = Segmentation {
                    send,
                    receive: false,
                };
            });
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

    #[test]
    fn only_errors_of_segmentation_have_its_advice() {
        let with = |send| {
            Options::new(Workload::UdpStream, [0; 16]).with(|load| load.segmentation.send = send)
        };
        let told = |code, send| {
            let error = explain(io::Error::from_raw_os_error(code), &with(send));
            error
                .to_string()
                .contains("segmentation offload of 1400 byte datagrams")
        };
        for code in OF_SEGMENTATION {
            assert!(told(code, true) && !told(code, false));
        }
        // EHOSTUNREACH, EPERM.
        assert!(!told(113, true) && !told(1, true));
    }
}
