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
use crate::options::Waiting;
use crate::sequence::Ledger;

/// Batches before the thread looks at what it was told.
const TURN: u32 = 16;

/// A flow that was opened on this thread's socket. The kernel hands everything from one pair of ports to one socket.
struct Guest {
    ledger: Ledger,
    heard: u64,
    address: RawAddress,
}

pub(crate) struct DatagramServer {
    socket: Arc<Socket>,
    responds: bool,
    guests: Box<[Option<Guest>]>,
    /// For handshakes.
    reply: SendBatch,
}

impl DatagramServer {
    pub(crate) fn new(load: &Load, socket: Arc<Socket>) -> Self {
        Self {
            socket,
            responds: load.options.workload.is_request_response(),
            guests: (0..load.options.streams).map(|_| None).collect(),
            reply: SendBatch::new(1, ANSWER_BYTES + COUNT_BYTES),
        }
    }

    fn take(&mut self, received: usize, desk: &mut Desk<'_>) {
        let now = desk.load.now();
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
                    self.control(bytes, message.from, desk.load);
                    continue;
                }
                let entered = Datagram::get(bytes)
                    .filter(|datagram| enter(&mut self.guests, desk.load, datagram, length, now));
                match entered {
                    Some(datagram) if self.responds => {
                        datagram.put(desk.room.out.message(replies));
                        let response = desk.load.options.response as usize;
                        desk.room.out.address(replies, message.from, response);
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
        let mut sent = 0;
        while sent < replies {
            match desk.room.out.send(&*self.socket, sent, replies, true) {
                Ok(some) => sent += some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A client that is gone, or no room: to its client a response is lost like any other.
                Err(_) => sent += 1,
            }
        }
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
        let _ = self.reply.send(&*self.socket, 0, 1, true);
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
            match desk.room.incoming.receive(&*self.socket, waits) {
                Ok(received) => self.take(received, desk),
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => {
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
        Some((self.socket.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        None
    }
}

/// Bytes that a receive buffer needs for a handshake.
pub(crate) const CONTROL_BYTES: usize = HEADER_BYTES + COUNT_BYTES;
const _: () = assert!(CONTROL_BYTES > DATAGRAM_BYTES);
