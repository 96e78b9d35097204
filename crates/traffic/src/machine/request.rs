//! The client's side of request/response on a TCP connection that stays.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use socket2::Socket;
use wirecost_sys::epoll::Interest;
use wirecost_sys::socket::receive;

use super::pace::Pace;
use super::{
    Desk, Exchange, Machine, Next, PEER_SILENCE, Trouble, Wants, count_sent, write_message,
};
use crate::flow::End;
use crate::load::Load;
use crate::options::{Options, Rate};

/// Exchanges of one flow before the others of its thread have their turn.
const TURN: u32 = 8;

/// When a client may send its next request.
pub(crate) struct Schedule {
    depth: usize,
    pace: Option<Pace>,
    /// Nanoseconds from a response to the next request.
    think: u64,
    /// When each request that thinks is due, ascending.
    due: VecDeque<u64>,
}

impl Schedule {
    pub(crate) fn new(options: &Options, flow: u32) -> Self {
        let depth = options.depth as usize;
        let think = options.think_time.as_nanos() as u64;
        let thinkers = if think > 0 { depth } else { 0 };
        Self {
            depth,
            pace: match options.rate {
                Some(Rate::RequestsPerSecond(rate)) => {
                    Some(Pace::new(rate, false, flow, options.streams))
                }
                _ => None,
            },
            think,
            due: std::iter::repeat_n(0, thinkers).collect(),
        }
    }

    /// A rate counts from `start`.
    pub(crate) fn begin(&mut self, start: Option<u64>) {
        if let (Some(pace), Some(start)) = (&mut self.pace, start) {
            pace.begin(start);
        }
    }

    /// When the next request was due, if it may be sent at `now` with so many outstanding; without a rate that is now.
    pub(crate) fn next(&mut self, now: u64, outstanding: usize) -> Option<u64> {
        if outstanding >= self.depth {
            return None;
        }
        if let Some(pace) = &mut self.pace {
            if pace.due(now) == 0 {
                return None;
            }
            let due = pace.next();
            pace.sent(1);
            return Some(due.min(now));
        }
        if self.think == 0 {
            return Some(now);
        }
        self.due.front().filter(|due| **due <= now)?;
        self.due.pop_front();
        Some(now)
    }

    /// A request is done with, answered or not.
    pub(crate) fn done(&mut self, now: u64) {
        if self.think > 0 {
            self.due.push_back(now + self.think);
        }
    }

    /// When a request that may not be sent yet is due, where time decides that.
    pub(crate) fn due(&self, outstanding: usize) -> Option<u64> {
        if outstanding >= self.depth {
            return None;
        }
        self.pace
            .as_ref()
            .map(Pace::next)
            .or_else(|| self.due.front().copied())
    }
}

/// A request that may be sent.
#[derive(Debug, Clone, Copy)]
struct Request {
    due: u64,
    /// When the kernel was handed its first byte; until then, when it might have been.
    sent: u64,
}

pub(crate) struct Requester {
    pub(crate) socket: Arc<Socket>,
    pub(crate) flow: u32,
    schedule: Schedule,
    /// Requests that are not answered; TCP answers in order.
    outstanding: VecDeque<Request>,
    /// How many of these the kernel has, or has begun to take.
    begun: usize,
    /// Bytes of requests still to be written.
    unsent: usize,
    /// Bytes of a response whose rest is missing.
    part: usize,
    /// Whether no more requests are to be sent.
    finishing: bool,
}

impl Requester {
    pub(crate) fn new(load: &Load, socket: Arc<Socket>, flow: u32) -> Self {
        Self {
            socket,
            flow,
            schedule: Schedule::new(&load.options, flow),
            outstanding: VecDeque::with_capacity(load.options.depth as usize),
            begun: 0,
            unsent: 0,
            part: 0,
            finishing: false,
        }
    }

    /// Takes up what may be asked now.
    fn ask(&mut self, desk: &Desk<'_>, now: u64) {
        self.finishing |= desk.load.flows.stopping();
        self.schedule.begin(desk.load.began());
        while !self.finishing {
            let Some(due) = self.schedule.next(now, self.outstanding.len()) else {
                return;
            };
            if desk.load.take(1) == 0 {
                self.finishing = true;
                return;
            }
            self.outstanding.push_back(Request { due, sent: now });
            self.unsent += desk.load.options.request as usize;
        }
    }

    /// Writes requests from `now` on; `false` where the socket takes no more.
    fn send(&mut self, desk: &Desk<'_>, mut now: u64) -> io::Result<bool> {
        let size = desk.load.options.request;
        while self.unsent > 0 {
            let before = self.unsent;
            let all = write_message(&self.socket, desk, self.flow, &mut self.unsent, size)?;
            if self.unsent < before {
                self.hand_over(desk, now);
            }
            if !all {
                return Ok(false);
            }
            if self.unsent > 0 {
                now = desk.load.now();
            }
        }
        Ok(true)
    }

    /// Notes that those whose first byte was taken were sent at `now`.
    fn hand_over(&mut self, desk: &Desk<'_>, now: u64) {
        let untouched = self.unsent / desk.load.options.request as usize;
        let begun = self.outstanding.len() - untouched;
        for request in self.outstanding.range_mut(self.begun..begun) {
            request.sent = now;
            desk.record_lateness(request.due, now);
        }
        self.begun = begun;
    }

    /// Bytes of responses that are still to come.
    fn expected(&self, desk: &Desk<'_>) -> usize {
        self.outstanding.len() * desk.load.options.response as usize - self.part
    }

    /// Reads what is there; `false` where that is all for now.
    fn receive(&mut self, desk: &mut Desk<'_>) -> io::Result<bool> {
        let room = self.expected(desk).min(desk.room.bytes.len());
        let read = match receive(&*self.socket, &mut desk.room.bytes[..room]) {
            Ok(read) => read,
            Err(error) => match Trouble::from(error) {
                Trouble::Interrupted => return Ok(true),
                Trouble::Blocked => return Ok(false),
                Trouble::Broken(error) => return Err(error),
            },
        };
        self.take(desk, read, desk.load.now())?;
        Ok(read == room)
    }

    /// Takes bytes of responses that were read by `now`.
    fn take(&mut self, desk: &Desk<'_>, read: usize, now: u64) -> io::Result<()> {
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let response = desk.load.options.response as usize;
        self.part += read;
        let whole = self.part / response;
        self.part %= response;
        for request in self.outstanding.drain(..whole) {
            desk.record(request.sent, now);
            self.schedule.done(now);
        }
        self.begun -= whole;
        let incoming = &desk.flow(self.flow).incoming;
        incoming.bytes.add(read as u64);
        incoming.messages.add(whole as u64);
        Ok(())
    }

    /// Ends its own half: what comes back now is the end of the server's.
    fn finish(&self) -> End {
        let _ = self.socket.shutdown(Shutdown::Write);
        End::Orderly
    }

    fn silent(&self, now: u64) -> bool {
        self.outstanding.front().is_some_and(|request| {
            now.saturating_sub(request.sent) > PEER_SILENCE.as_nanos() as u64
        })
    }
}

impl Machine for Requester {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        for _ in 0..TURN {
            if !self.outstanding.is_empty() {
                match self.receive(desk) {
                    Ok(false) if self.silent(desk.load.now()) => {
                        return Next::failed(io::ErrorKind::TimedOut.into());
                    }
                    // The read waited, and nothing came.
                    Ok(false) if desk.blocking => return Next::READ,
                    Ok(_) => {}
                    Err(error) => return Next::failed(error),
                }
            }
            let now = desk.load.now();
            self.ask(desk, now);
            let all_sent = match self.send(desk, now) {
                Ok(all) => all,
                Err(error) => return Next::failed(error),
            };
            if self.outstanding.is_empty() {
                if self.finishing {
                    return Next::Over(self.finish());
                }
                let interest = Interest {
                    read: !desk.blocking,
                    write: false,
                };
                return Next::Wait(interest, self.schedule.due(0));
            }
            if !desk.blocking {
                // Reading now would find nothing: what was sent is hardly there yet.
                let interest = Interest {
                    read: true,
                    write: !all_sent,
                };
                return Next::Wait(interest, self.until());
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

    fn exchange(&mut self) -> Option<&mut dyn Exchange> {
        Some(self)
    }
}

impl Exchange for Requester {
    fn wants(&mut self, desk: &Desk<'_>, now: u64) -> Result<Wants, End> {
        if self.silent(now) {
            return Err(End::Failed(io::ErrorKind::TimedOut.into()));
        }
        self.ask(desk, now);
        // The ring is handed them right after this.
        let begun = self.outstanding.len();
        for request in self.outstanding.range(self.begun..begun) {
            desk.record_lateness(request.due, request.sent);
        }
        self.begun = begun;
        if self.outstanding.is_empty() && self.finishing {
            return Err(self.finish());
        }
        Ok(Wants {
            send: self.unsent,
            receive: self.expected(desk),
            until: self.until(),
        })
    }

    fn sent(&mut self, desk: &Desk<'_>, bytes: usize) {
        let size = desk.load.options.request;
        count_sent(desk, self.flow, &mut self.unsent, size, bytes);
    }

    fn received(&mut self, desk: &Desk<'_>, bytes: usize, now: u64) -> Result<(), End> {
        self.take(desk, bytes, now).map_err(End::Failed)
    }
}

impl Requester {
    /// When to look again at the latest.
    fn until(&self) -> Option<u64> {
        let silence = self
            .outstanding
            .front()
            .map(|request| request.sent + PEER_SILENCE.as_nanos() as u64);
        let due = if self.finishing {
            None
        } else {
            self.schedule.due(self.outstanding.len())
        };
        [silence, due].into_iter().flatten().min()
    }
}
