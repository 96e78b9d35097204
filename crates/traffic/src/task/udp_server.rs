//! UDP server: one thread's socket, which serves any flow. It counts datagrams, and answers where the workload has
//! responses.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use socket2::Socket;
use wirecost_sys::socket::{RawAddress, SendBatch, bind_here};

use super::udp_rr_client::LOST_IN_A_ROW;
use super::{Context, IoFailure, Progress, Task};
use crate::datagram::{DATAGRAM_BYTES, Datagram};
use crate::flow::Outcome;
use crate::handshake::{
    ANSWER_BYTES, Answer, CONTROL_BYTES, COUNT_BYTES, HEADER_BYTES, HeaderCheck, Phase,
    check_header, is_control,
};
use crate::options::{Options, Rate, WaitMode};
use crate::sequence::SequenceTracker;
use crate::shared::Shared;
use crate::socket;
use crate::timeouts::PEER_TIMEOUT;

/// Batches received before the thread checks whether to stop.
const BUDGET: u32 = 16;
/// Interval between checks of the listening socket where the only flow has a connected socket, nanoseconds.
const LISTENER_INTERVAL_NS: u64 = 20_000_000;
/// Upper bound on the batches received in one such check.
const LISTENER_BATCHES: u32 = 64;
/// Mean gaps between requests of a rate, which are due at random, that a longer gap than is as good as impossible: one
/// of 10^13.
const MEAN_GAPS: f64 = 30.0;

/// A flow opened on this thread's socket. The kernel delivers all datagrams of one pair of ports to the same socket.
struct Peer {
    tracker: SequenceTracker,
    /// When a datagram of the flow last arrived, nanoseconds by [`Shared::now`].
    last_seen: u64,
    address: RawAddress,
}

pub(crate) struct UdpServer {
    /// The bound socket: receives handshakes, strays, and flows without a connected socket.
    listener: Arc<Socket>,
    /// A connected socket for the only flow of this thread.
    connected: Option<Socket>,
    serves_one_flow: bool,
    /// When the last batch arrived, nanoseconds by [`Shared::now`].
    now: u64,
    /// When the listening socket is checked next, nanoseconds by [`Shared::now`].
    next_listener_check: u64,
    responds: bool,
    /// Nanoseconds without a datagram of any flow after which the client counts as gone.
    patience: u64,
    /// Flows opened on this thread's socket, by index of the flow.
    peers: Box<[Option<Peer>]>,
    /// Buffer for answers to handshakes.
    reply: SendBatch,
}

impl UdpServer {
    pub(crate) fn new(shared: &Shared, listener: Arc<Socket>, thread: usize) -> Self {
        let own_flows =
            (thread..shared.options.load.streams as usize).step_by(shared.threads.len());
        Self {
            listener,
            connected: None,
            serves_one_flow: own_flows.count() == 1,
            now: 0,
            next_listener_check: 0,
            responds: shared.options.load.workload.is_request_response(),
            patience: patience(&shared.options).as_nanos() as u64,
            peers: (0..shared.options.load.streams).map(|_| None).collect(),
            reply: SendBatch::new(1, ANSWER_BYTES + COUNT_BYTES),
        }
    }

    /// Processes a batch, from the connected or the listening socket.
    fn take(&mut self, received: usize, context: &mut Context<'_>, from_listener: bool) {
        let now = context.shared.now();
        self.now = now;
        let mut replies = 0;
        for index in 0..received {
            let message = context.buffers.rx_batch.get(index);
            if message.bytes.is_empty() {
                context.shared.flows.count_stray();
            }
            let segment = message.segment.unwrap_or(message.length).max(1);
            let mut left = message.length;
            // Where only the head of a datagram was received, all bytes of the datagram count.
            for bytes in message.bytes.chunks(segment) {
                let length = left.min(segment);
                left -= length;
                if is_control(bytes) {
                    // A short handshake datagram may be the last part of a coalesced message.
                    let only = self.peers.iter().flatten().next();
                    let from = match only {
                        Some(peer) if !from_listener => peer.address,
                        _ => *message.from,
                    };
                    self.handle_handshake(bytes, &from, context.shared);
                    continue;
                }
                // Data of the connected client arrives on the connected socket.
                let may_be_data = !from_listener || self.connected.is_none();
                let recorded = Datagram::get(bytes)
                    .filter(|_| may_be_data)
                    .filter(|datagram| {
                        let part = (length, from_listener.then_some(message.from));
                        record(&mut self.peers, context.shared, datagram, part, now)
                    });
                match recorded {
                    Some(datagram) if self.responds => {
                        datagram.put(context.buffers.tx_batch.message(replies));
                        let response = context.shared.options.load.response as usize;
                        if from_listener {
                            context
                                .buffers
                                .tx_batch
                                .address(replies, message.from, response);
                        } else {
                            context.buffers.tx_batch.set_length(replies, response);
                        }
                        let tx = &context.shared.flows.all()[usize::from(datagram.flow)].tx;
                        tx.messages.add(1);
                        tx.bytes.add(response as u64);
                        replies += 1;
                    }
                    Some(_) => {}
                    None => context.shared.flows.count_stray(),
                }
            }
        }
        let socket = match &self.connected {
            Some(connected) if !from_listener => connected,
            _ => &*self.listener,
        };
        let mut sent = 0;
        while sent < replies {
            match context.buffers.tx_batch.send(socket, sent, replies, true) {
                Ok(some) => sent += some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The client is gone or the buffer full: the response is lost.
                Err(_) => sent += 1,
            }
        }
    }

    /// Receives from the listening socket.
    fn check_listener(&mut self, context: &mut Context<'_>) {
        for _ in 0..LISTENER_BATCHES {
            let Ok(received) = context
                .buffers
                .rx_batch
                .receive(&*self.listener, false, true)
            else {
                break;
            };
            self.take(received, context, true);
        }
        self.next_listener_check = context.shared.now() + LISTENER_INTERVAL_NS;
    }

    fn handle_handshake(&mut self, bytes: &[u8], from: &RawAddress, shared: &Shared) {
        let Some((first, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return shared.flows.count_stray();
        };
        let mut arrived = 0;
        let answer = match check_header(first, &shared.options) {
            HeaderCheck::Flow(index, phase) => {
                let flow = &shared.flows.all()[index as usize];
                let peer = &mut self.peers[index as usize];
                match (phase, peer) {
                    // A repeated question: the answer was lost or late.
                    (Phase::Open, Some(peer)) if peer.address == *from => Answer::Accepted,
                    (Phase::Open, peer) if !flow.connected.load(Relaxed) => {
                        *peer = Some(Peer {
                            tracker: SequenceTracker::new(),
                            last_seen: shared.now(),
                            address: *from,
                        });
                        if self.serves_one_flow && self.connected.is_none() {
                            // Without a connected socket the listening socket serves the flow.
                            self.connected =
                                connected_socket(&self.listener, from, &shared.options);
                        }
                        shared.flows.set_connected(flow);
                        Answer::Accepted
                    }
                    (Phase::Close, Some(peer)) if peer.address == *from => {
                        let Some(count) =
                            rest.first_chunk().map(|count| u64::from_be_bytes(*count))
                        else {
                            return shared.flows.count_stray();
                        };
                        flow.rx.expected.publish(count.max(peer.tracker.expected()));
                        arrived = peer.tracker.received();
                        if !flow.has_ended() {
                            shared.flows.end(flow, Outcome::Orderly);
                        }
                        Answer::Accepted
                    }
                    _ => Answer::OtherFlow,
                }
            }
            HeaderCheck::Refuse(answer) => answer,
            HeaderCheck::Stray => return shared.flows.count_stray(),
        };
        if answer != Answer::Accepted {
            shared.flows.count_stray();
        }
        let message = self.reply.message(0);
        message[..ANSWER_BYTES].copy_from_slice(&answer.encode_to(first));
        message[ANSWER_BYTES..].copy_from_slice(&u64::to_be_bytes(arrived));
        self.reply.address(0, from, ANSWER_BYTES + COUNT_BYTES);
        // The client repeats the question where this is lost.
        let _ = self.reply.send(&*self.listener, 0, 1, true);
    }

    /// Fails the flows that have started, if no datagram of any of them has arrived for as long as [`patience`]. That a
    /// single flow is silent is no failure: others may starve it.
    fn check_silence(&self, shared: &Shared) {
        let began = |peer: &&Peer| peer.tracker.expected() > 0;
        let last_seen = self.peers.iter().flatten().filter(began);
        let Some(last) = last_seen.map(|peer| peer.last_seen).max() else {
            return;
        };
        if shared.now().saturating_sub(last) <= self.patience {
            return;
        }
        for (flow, peer) in shared.flows.all().iter().zip(&self.peers) {
            if peer.as_ref().is_some_and(|peer| began(&peer)) && !flow.has_ended() {
                shared
                    .flows
                    .end(flow, Outcome::Failed(io::ErrorKind::TimedOut.into()));
            }
        }
    }
}

/// How long nothing may arrive of a client that is well: as long as it waits for responses itself, and the longest
/// pause that the load asks for.
fn patience(options: &Options) -> Duration {
    let load = &options.load;
    let silence = if load.workload.is_request_response() {
        PEER_TIMEOUT.max(load.reply_timeout * LOST_IN_A_ROW)
    } else {
        PEER_TIMEOUT
    };
    let pause = match load.rate {
        None => {
            let gap = load.most_per_second.map_or(0.0, |most| 1.0 / most);
            load.think_time.as_secs_f64().max(gap)
        }
        Some(Rate::BitsPerSecond(bits)) => f64::from(load.request) * 8.0 / bits as f64,
        Some(Rate::RequestsPerSecond(rate)) => MEAN_GAPS / rate,
    };
    silence + Duration::try_from_secs_f64(pause).unwrap_or_default()
}

/// A socket on the same port, connected to one client: the kernel caches its route and need not return the sender's
/// address.
fn connected_socket(listener: &Socket, client: &RawAddress, options: &Options) -> Option<Socket> {
    let client = client.socket_address()?;
    let here = listener.local_addr().ok()?.as_socket()?;
    // The client's destination address is not known with a wildcard bind.
    if here.ip().is_unspecified() {
        return None;
    }
    let socket = socket::udp(here, options, 1).ok()?;
    socket::segment(&socket, options, false).ok()?;
    socket.set_reuse_port(true).ok()?;
    bind_here(&socket, here).ok()?;
    socket.connect(&client.into()).ok()?;
    Some(socket)
}

/// Records a datagram; `false` where it is not this load's, not this thread's, or from another address than its flow's.
fn record(
    peers: &mut [Option<Peer>],
    shared: &Shared,
    datagram: &Datagram,
    (length, from): (usize, Option<&RawAddress>),
    now: u64,
) -> bool {
    let index = usize::from(datagram.flow);
    let Some(Some(peer)) = peers.get_mut(index).filter(|_| datagram.tag == shared.tag) else {
        return false;
    };
    if from.is_some_and(|from| *from != peer.address) {
        return false;
    }
    let before = peer.tracker.received();
    peer.tracker.record(datagram.number, datagram.sent, now);
    peer.last_seen = now;
    let tracker = &peer.tracker;
    let rx = &shared.flows.all()[index].rx;
    if tracker.received() > before {
        rx.messages.publish(tracker.received());
        rx.counted.add(u64::from(datagram.counted));
        rx.bytes.add(length as u64);
        let announced = rx.expected.get();
        rx.expected.publish(tracker.expected().max(announced));
        rx.reordered.publish(tracker.reordered());
        rx.jitter_ns.publish(tracker.jitter_ns());
    } else {
        rx.duplicated.publish(tracker.duplicated());
        rx.too_old.publish(tracker.too_old());
    }
    true
}

impl Task for UdpServer {
    fn poll(&mut self, context: &mut Context<'_>) -> Progress {
        let shared = context.shared;
        let waits = shared.options.load.waiting == WaitMode::Sleep;
        for _ in 0..BUDGET {
            if self.connected.is_some() && self.now >= self.next_listener_check {
                self.check_listener(context);
            }
            let connected = self.connected.as_ref();
            let rx = &mut context.buffers.rx_batch;
            let result = match connected {
                Some(connected) => rx.receive(connected, waits, false),
                None => rx.receive(&*self.listener, waits, true),
            };
            let is_connected = connected.is_some();
            match result {
                Ok(received) => self.take(received, context, !is_connected),
                Err(error) => match IoFailure::from(error) {
                    IoFailure::Interrupted => {}
                    IoFailure::Blocked => {
                        if is_connected && (waits || shared.flows.stopping()) {
                            self.check_listener(context);
                        }
                        // Only once all that was sent has been read.
                        if shared.flows.is_aborted()
                            || (shared.flows.stopping() && shared.flows.all_ended())
                        {
                            return Progress::Over(Outcome::Orderly);
                        }
                        self.check_silence(shared);
                        return Progress::READ;
                    }
                    // An answer reached a closed port; the socket is not affected.
                    IoFailure::Broken(error)
                        if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    IoFailure::Broken(error) => return Progress::failed(error),
                },
            }
            if shared.flows.is_aborted() {
                return Progress::Over(Outcome::Released);
            }
        }
        Progress::Again
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some(match &self.connected {
            Some(connected) => (connected.as_fd(), 1),
            None => (self.listener.as_fd(), 0),
        })
    }

    fn flow(&self) -> Option<u32> {
        None
    }
}

const _: () = assert!(CONTROL_BYTES > DATAGRAM_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Load, Workload};

    #[test]
    fn a_client_may_be_silent_for_as_long_as_its_load_asks_for() {
        let of = |workload, change: fn(&mut Load)| {
            patience(&Options::new(workload, [0; 16]).with(change)).as_secs_f64()
        };
        let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-6;
        assert!(near(of(Workload::UdpRr, |_| ()), 10.0));
        let thinks = |load: &mut Load| load.think_time = Duration::from_secs(15);
        assert!(near(of(Workload::UdpRr, thinks), 25.0));
        let waits = |load: &mut Load| load.reply_timeout = Duration::from_secs(20);
        assert!(near(of(Workload::UdpRr, waits), 200.0));
        let seldom = |load: &mut Load| load.rate = Some(Rate::RequestsPerSecond(0.1));
        assert!(near(of(Workload::UdpRr, seldom), 310.0));
        // A datagram of 1400 bytes every 11.2 s.
        let slow = |load: &mut Load| load.rate = Some(Rate::BitsPerSecond(1_000));
        assert!(near(of(Workload::UdpStream, slow), 21.2));
        assert!(near(of(Workload::UdpStream, waits), 10.0), "nobody replies");
    }
}
