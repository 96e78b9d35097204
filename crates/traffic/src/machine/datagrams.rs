//! The server's side over UDP: one thread's socket, on which any flow may arrive. It accounts for what comes, and
//! answers where the workload has responses.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use socket2::Socket;
use wirecost_sys::socket::{RawAddress, SendBatch};

use super::{Desk, Machine, Next, PEER_SILENCE, Trouble};
use crate::datagram::{DATAGRAM_BYTES, Datagram};
use crate::flow::End;
use crate::handshake::{
    ANSWER_BYTES, Answer, COUNT_BYTES, HEADER_BYTES, Judgement, Phase, is_control, judge,
};
use crate::load::Load;
use crate::options::{Options, Waiting};
use crate::sequence::Ledger;
use crate::socket;

/// Batches before the thread looks at what it was told.
const TURN: u32 = 16;
/// Between two looks at the door of a thread whose flow has a socket of its own, nanoseconds.
const DOOR_EVERY: u64 = 20_000_000;
/// Batches that one of these looks takes at most.
const AT_DOOR: u32 = 64;

/// A flow that was opened on this thread's socket. The kernel hands everything from one pair of ports to one socket.
struct Guest {
    ledger: Ledger,
    heard: u64,
    address: RawAddress,
}

pub(crate) struct DatagramServer {
    /// Where flows are opened, and strays arrive.
    door: Arc<Socket>,
    /// The only flow's own socket, where this thread has but one.
    own: Option<Socket>,
    has_one: bool,
    /// When something last came.
    now: u64,
    /// When the door is looked at again.
    next_door: u64,
    responds: bool,
    guests: Box<[Option<Guest>]>,
    /// For handshakes.
    reply: SendBatch,
}

impl DatagramServer {
    pub(crate) fn new(load: &Load, door: Arc<Socket>, seat: usize) -> Self {
        let shares = (seat..load.options.streams as usize).step_by(load.seats.len());
        Self {
            door,
            own: None,
            has_one: shares.count() == 1,
            now: 0,
            next_door: 0,
            responds: load.options.workload.is_request_response(),
            guests: (0..load.options.streams).map(|_| None).collect(),
            reply: SendBatch::new(1, ANSWER_BYTES + COUNT_BYTES),
        }
    }

    /// Goes through what came, to the flow's own socket or to the door.
    fn take(&mut self, received: usize, desk: &mut Desk<'_>, at_door: bool) {
        let now = desk.load.now();
        self.now = now;
        let mut replies = 0;
        for index in 0..received {
            let message = desk.room.incoming.get(index);
            if message.bytes.is_empty() {
                desk.load.flows.count_stray();
            }
            let segment = message.segment.unwrap_or(message.length).max(1);
            let mut left = message.length;
            // A datagram that was received as the head of what it is counts with all its bytes.
            for bytes in message.bytes.chunks(segment) {
                let length = left.min(segment);
                left -= length;
                if is_control(bytes) {
                    // Shorter than the others, it may come as the last part of what was received as one.
                    let only = self.guests.iter().flatten().next();
                    let from = match only {
                        Some(guest) if !at_door => guest.address,
                        _ => *message.from,
                    };
                    self.control(bytes, &from, desk.load);
                    continue;
                }
                // Its client's come to the flow's own socket.
                let may_be_ours = !at_door || self.own.is_none();
                let entered = Datagram::get(bytes)
                    .filter(|_| may_be_ours)
                    .filter(|datagram| enter(&mut self.guests, desk.load, datagram, length, now));
                match entered {
                    Some(datagram) if self.responds => {
                        datagram.put(desk.room.out.message(replies));
                        let response = desk.load.options.response as usize;
                        if at_door {
                            desk.room.out.address(replies, message.from, response);
                        } else {
                            desk.room.out.set_length(replies, response);
                        }
                        let out = &desk.load.flows.all()[usize::from(datagram.flow)].out;
                        out.messages.add(1);
                        out.bytes.add(response as u64);
                        replies += 1;
                    }
                    Some(_) => {}
                    None => desk.load.flows.count_stray(),
                }
            }
        }
        let socket = match &self.own {
            Some(own) if !at_door => own,
            _ => &*self.door,
        };
        let mut sent = 0;
        while sent < replies {
            match desk.room.out.send(socket, sent, replies, true) {
                Ok(some) => sent += some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A client that is gone, or no room: to its client a response is lost like any other.
                Err(_) => sent += 1,
            }
        }
    }

    /// Goes through what came to the port from anybody but the thread's only client.
    fn look_at_door(&mut self, desk: &mut Desk<'_>) {
        for _ in 0..AT_DOOR {
            let Ok(received) = desk.room.incoming.receive(&*self.door, false, true) else {
                break;
            };
            self.take(received, desk, true);
        }
        self.next_door = desk.load.now() + DOOR_EVERY;
    }

    fn control(&mut self, bytes: &[u8], from: &RawAddress, load: &Load) {
        let Some((first, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return load.flows.count_stray();
        };
        let mut arrived = 0;
        let answer = match judge(first, &load.options) {
            Judgement::Flow(index, phase) => {
                let flow = &load.flows.all()[index as usize];
                let guest = &mut self.guests[index as usize];
                match (phase, guest) {
                    // Asked again, since our answer was lost or late.
                    (Phase::Open, Some(guest)) if guest.address == *from => Answer::Taken,
                    (Phase::Open, guest) if !flow.here.load(Relaxed) => {
                        *guest = Some(Guest {
                            ledger: Ledger::new(),
                            heard: load.now(),
                            address: *from,
                        });
                        if self.has_one && self.own.is_none() {
                            // Where there can be none the door serves the flow.
                            self.own = own_socket(&self.door, from, &load.options);
                        }
                        load.flows.arrive(flow);
                        Answer::Taken
                    }
                    (Phase::Close, Some(guest)) if guest.address == *from => {
                        let Some(count) =
                            rest.first_chunk().map(|count| u64::from_be_bytes(*count))
                        else {
                            return load.flows.count_stray();
                        };
                        flow.incoming
                            .expected
                            .publish(count.max(guest.ledger.expected()));
                        arrived = guest.ledger.received();
                        if !flow.is_over() {
                            load.flows.end(flow, End::Orderly);
                        }
                        Answer::Taken
                    }
                    _ => Answer::OtherFlow,
                }
            }
            Judgement::Refuse(answer) => answer,
            Judgement::Stray => return load.flows.count_stray(),
        };
        if answer != Answer::Taken {
            load.flows.count_stray();
        }
        let message = self.reply.message(0);
        message[..ANSWER_BYTES].copy_from_slice(&answer.encode_to(first));
        message[ANSWER_BYTES..].copy_from_slice(&u64::to_be_bytes(arrived));
        self.reply.address(0, from, ANSWER_BYTES + COUNT_BYTES);
        // It asks again where this is lost.
        let _ = self.reply.send(&*self.door, 0, 1, true);
    }

    /// Gives up flows that began where nothing of any flow came for long: a single one may be crowded out.
    fn look_for_silence(&self, load: &Load) {
        let began = |guest: &&Guest| guest.ledger.expected() > 0;
        let heard = self.guests.iter().flatten().filter(began);
        let Some(last) = heard.map(|guest| guest.heard).max() else {
            return;
        };
        if load.now().saturating_sub(last) <= PEER_SILENCE.as_nanos() as u64 {
            return;
        }
        for (flow, guest) in load.flows.all().iter().zip(&self.guests) {
            if guest.as_ref().is_some_and(|guest| began(&guest)) && !flow.is_over() {
                load.flows
                    .end(flow, End::Failed(io::ErrorKind::TimedOut.into()));
            }
        }
    }
}

/// A socket of the door's port that hears one client alone: the kernel remembers the way to it and back, and need not
/// tell with every datagram who sent it.
fn own_socket(door: &Socket, client: &RawAddress, options: &Options) -> Option<Socket> {
    let client = client.socket_address()?;
    let here = door.local_addr().ok()?.as_socket()?;
    // Which address the client knows, a socket of any address does not say.
    if here.ip().is_unspecified() {
        return None;
    }
    let socket = socket::udp(here, options, 1).ok()?;
    socket::segment(&socket, options, false).ok()?;
    socket.set_reuse_port(true).ok()?;
    socket.bind(&here.into()).ok()?;
    socket.connect(&client.into()).ok()?;
    Some(socket)
}

/// Enters a datagram into its flow's account; `false` where it is none of this load's, or of this thread's.
fn enter(
    guests: &mut [Option<Guest>],
    load: &Load,
    datagram: &Datagram,
    length: usize,
    now: u64,
) -> bool {
    let index = usize::from(datagram.flow);
    let Some(Some(guest)) = guests.get_mut(index).filter(|_| datagram.tag == load.tag) else {
        return false;
    };
    let before = guest.ledger.received();
    guest.ledger.enter(datagram.number, datagram.sent, now);
    guest.heard = now;
    let ledger = &guest.ledger;
    let incoming = &load.flows.all()[index].incoming;
    if ledger.received() > before {
        incoming.messages.publish(ledger.received());
        incoming.counted.add(u64::from(datagram.counted));
        incoming.bytes.add(length as u64);
        let announced = incoming.expected.get();
        incoming.expected.publish(ledger.expected().max(announced));
        incoming.reordered.publish(ledger.reordered());
        incoming.jitter_ns.publish(ledger.jitter_ns());
    } else {
        incoming.duplicated.publish(ledger.duplicated());
        incoming.too_old.publish(ledger.too_old());
    }
    true
}

impl Machine for DatagramServer {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        let load = desk.load;
        let waits = load.options.waiting == Waiting::Sleep;
        for _ in 0..TURN {
            if self.own.is_some() && self.now >= self.next_door {
                self.look_at_door(desk);
            }
            let own = self.own.as_ref();
            let incoming = &mut desk.room.incoming;
            let result = match own {
                Some(own) => incoming.receive(own, waits, false),
                None => incoming.receive(&*self.door, waits, true),
            };
            let is_own = own.is_some();
            match result {
                Ok(received) => self.take(received, desk, !is_own),
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => {
                        if is_own && (waits || load.flows.stopping()) {
                            self.look_at_door(desk);
                        }
                        // What was sent has been read: only now may it be over.
                        if load.flows.is_cut() || (load.flows.stopping() && load.flows.all_over()) {
                            return Next::Over(End::Orderly);
                        }
                        self.look_for_silence(load);
                        return Next::READ;
                    }
                    // An answer of ours reached a closed port; the socket is as good as before.
                    Trouble::Broken(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Trouble::Broken(error) => return Next::failed(error),
                },
            }
            if load.flows.is_cut() {
                return Next::Over(End::Released);
            }
        }
        Next::Again
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some(match &self.own {
            Some(own) => (own.as_fd(), 1),
            None => (self.door.as_fd(), 0),
        })
    }

    fn flow(&self) -> Option<u32> {
        None
    }
}

/// Bytes that a receive buffer needs for a handshake.
pub(crate) const CONTROL_BYTES: usize = HEADER_BYTES + COUNT_BYTES;
const _: () = assert!(CONTROL_BYTES > DATAGRAM_BYTES);
