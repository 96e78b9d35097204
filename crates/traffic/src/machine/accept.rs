//! The server's side of a connection for each request and response: one thread's share of them.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use socket2::Socket;
use wirecost_sys::epoll::{Epoll, Events, Interest};
use wirecost_sys::socket::{accept_nonblocking, receive, send};

use super::{Desk, LOOK, Machine, Next, Trouble};
use crate::flow::End;
use crate::handshake::{Answer, HEADER_BYTES, Judgement, Phase, judge};
use crate::load::Load;
use crate::options::Waiting;
use crate::server::lobby::{Caller, Lobby};
use crate::socket::Adopt;
use crate::table::Entrance;

/// The listener's token; the others are places in the table.
const LISTENER: u64 = u64::MAX;
/// The token of those who are handed over.
const LOBBY: u64 = u64::MAX - 1;
/// How long a connection may take to say whose it is, and to ask.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections that may be open beside the load's own.
const SPARE: usize = 64;
/// Between two searches for connections that take too long.
const SWEEP: Duration = Duration::from_secs(1);

pub(crate) struct Acceptor {
    listener: Arc<Socket>,
    lobby: Option<(Arc<Lobby>, usize)>,
    adopt: Option<Adopt>,
    epoll: Epoll,
    /// Lent out for as long as they are gone through.
    events: Option<Events>,
    places: Box<[Option<Visit>]>,
    free: Vec<usize>,
    swept: u64,
}

/// One connection.
struct Visit {
    socket: Socket,
    since: u64,
    header: [u8; HEADER_BYTES],
    heard: usize,
    /// Whose transaction it is, once the header is there.
    flow: Option<u32>,
    /// Bytes of the request that were read, of the response that were written.
    read: usize,
    written: usize,
    writes: bool,
}

/// What is left of a connection.
enum Left {
    Waits(Interest),
    Nothing,
    /// It may be another load's.
    Another,
    Stray,
}

impl Acceptor {
    pub(crate) fn new(load: &Load, entrance: Entrance) -> io::Result<Self> {
        let Entrance {
            socket: listener,
            lobby,
            adopt,
        } = entrance;
        let room = load.options.streams as usize + SPARE;
        let epoll = Epoll::new()?;
        epoll.add_exclusive(&*listener, LISTENER)?;
        if let Some((lobby, place)) = &lobby {
            epoll.add(lobby.wake(*place), Interest::READ, LOBBY)?;
        }
        Ok(Self {
            listener,
            lobby,
            adopt,
            epoll,
            events: Some(Events::with_capacity(room + 2)),
            places: (0..room).map(|_| None).collect(),
            free: (0..room).rev().collect(),
            swept: 0,
        })
    }

    fn accept(&mut self, desk: &mut Desk<'_>) {
        while self.make_room(desk) {
            match accept_nonblocking(&*self.listener) {
                Ok(socket) => {
                    let visit = Visit::new(socket.into(), desk.load.now());
                    self.welcome(visit, desk);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // None left, or none that can be had now: the listener tells when there is one.
                Err(_) => return,
            }
        }
    }

    /// Whether there is a free place: where all are taken the stranger that has said nothing for longest leaves, or a few
    /// hundred that never do would keep the load's own out.
    fn make_room(&mut self, desk: &Desk<'_>) -> bool {
        if !self.free.is_empty() {
            return true;
        }
        let strangers = self.places.iter().enumerate().filter_map(|(place, visit)| {
            let visit = visit.as_ref().filter(|visit| visit.flow.is_none())?;
            Some((visit.since, place))
        });
        let Some((_, longest)) = strangers.min() else {
            return false;
        };
        self.turn_out(longest, desk);
        true
    }

    /// Takes over whom threads of another load on the port accepted.
    fn take_over(&mut self, desk: &mut Desk<'_>) {
        let Some((lobby, own)) = self.lobby.clone() else {
            return;
        };
        lobby.wake(own).lower();
        for caller in lobby.callers(own) {
            let Caller {
                socket,
                header,
                heard,
            } = caller;
            let visit = Visit {
                header,
                heard,
                ..Visit::new(socket, desk.load.now())
            };
            self.welcome(visit, desk);
        }
    }

    fn welcome(&mut self, visit: Visit, desk: &mut Desk<'_>) {
        self.make_room(desk);
        let Some(place) = self.free.pop() else {
            return desk.load.flows.count_stray();
        };
        let adopted = self
            .adopt
            .as_ref()
            .map(|adopt| adopt.apply(&visit.socket, &desk.load.options));
        self.places[place] = Some(visit);
        if let Some(Err(_)) = adopted {
            return self.turn_out(place, desk);
        }
        // What it asks is often there already.
        self.attend(place, desk, true);
    }

    /// Hands a connection that names another load on the port over to it; `false` where it names none.
    fn hand_over(&mut self, place: usize, new: bool) -> bool {
        let Some((lobby, own)) = &self.lobby else {
            return false;
        };
        let Some(visit) = self.places[place].as_ref() else {
            return false;
        };
        let Some(whose) = lobby.whose(&visit.header).filter(|whose| whose != own) else {
            return false;
        };
        if !new {
            let _ = self.epoll.remove(&visit.socket);
        }
        if let Some(visit) = self.places[place].take() {
            lobby.hand_over(whose, visit.caller());
        }
        self.free.push(place);
        true
    }

    fn attend(&mut self, place: usize, desk: &mut Desk<'_>, new: bool) {
        let Some(visit) = self.places.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        let left = visit.go_on(desk).unwrap_or(Left::Stray);
        let waits = match left {
            Left::Waits(interest) if new => {
                visit.writes = interest.write;
                self.epoll.add(&visit.socket, interest, place as u64)
            }
            Left::Waits(interest) if interest.write == visit.writes => Ok(()),
            Left::Waits(interest) => {
                visit.writes = interest.write;
                self.epoll.modify(&visit.socket, interest, place as u64)
            }
            Left::Nothing => return self.leave(place),
            Left::Another if self.hand_over(place, new) => return,
            Left::Another => {
                self.turn_away(place, Answer::OtherSecret);
                Err(io::ErrorKind::InvalidData.into())
            }
            Left::Stray => Err(io::ErrorKind::InvalidData.into()),
        };
        if waits.is_err() {
            self.turn_out(place, desk);
        }
    }

    fn turn_away(&self, place: usize, answer: Answer) {
        if let Some(visit) = &self.places[place] {
            visit.answer(answer);
        }
    }

    /// Ends a connection that is none of the load's.
    fn turn_out(&mut self, place: usize, desk: &Desk<'_>) {
        desk.load.flows.count_stray();
        self.leave(place);
    }

    fn leave(&mut self, place: usize) {
        self.places[place] = None;
        self.free.push(place);
    }

    /// Drops those that take too long.
    fn sweep(&mut self, desk: &Desk<'_>) {
        let now = desk.load.now();
        if now.saturating_sub(self.swept) < SWEEP.as_nanos() as u64 {
            return;
        }
        self.swept = now;
        for place in 0..self.places.len() {
            let late = self.places[place]
                .as_ref()
                .is_some_and(|visit| now.saturating_sub(visit.since) > PATIENCE.as_nanos() as u64);
            if late {
                self.turn_out(place, desk);
            }
        }
    }
}

impl Machine for Acceptor {
    fn turn(&mut self, desk: &mut Desk<'_>) -> Next {
        let load = desk.load;
        if load.flows.is_cut() || (load.flows.stopping() && load.flows.all_over()) {
            return Next::Over(End::Orderly);
        }
        let patience = match load.options.waiting {
            Waiting::Sleep => LOOK,
            Waiting::Spin => Duration::ZERO,
        };
        let Some(mut events) = self.events.take() else {
            return Next::Again;
        };
        if let Err(error) = self.epoll.wait(&mut events, Some(patience)) {
            return Next::failed(error);
        }
        let mut any = false;
        for token in events.tokens() {
            any = true;
            if token == LISTENER {
                self.accept(desk);
            } else if token == LOBBY {
                self.take_over(desk);
            } else {
                self.attend(token as usize, desk, false);
            }
        }
        self.events = Some(events);
        self.sweep(desk);
        if any { Next::Again } else { Next::READ }
    }

    fn descriptor(&self) -> Option<(BorrowedFd<'_>, u32)> {
        Some((self.listener.as_fd(), 0))
    }

    fn flow(&self) -> Option<u32> {
        None
    }
}

impl Drop for Acceptor {
    /// What may be another load's is not this one's to end.
    fn drop(&mut self) {
        let Some((lobby, own)) = self.lobby.take() else {
            return;
        };
        let visits = self.places.iter_mut().filter_map(Option::take);
        let unknown = visits.filter(|visit| visit.flow.is_none());
        lobby.leave(own, unknown.map(Visit::caller));
    }
}

impl Visit {
    fn caller(self) -> Caller {
        Caller {
            socket: self.socket,
            header: self.header,
            heard: self.heard,
        }
    }

    fn new(socket: Socket, since: u64) -> Self {
        Self {
            socket,
            since,
            header: [0; HEADER_BYTES],
            heard: 0,
            flow: None,
            read: 0,
            written: 0,
            writes: false,
        }
    }

    fn answer(&self, answer: Answer) {
        // Twelve bytes into an empty buffer cannot block; a peer that is gone needs no answer.
        let _ = (&self.socket).write_all(&answer.encode());
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    fn go_on(&mut self, desk: &mut Desk<'_>) -> io::Result<Left> {
        while self.flow.is_none() {
            match self.hear()? {
                Some(Left::Nothing) => {}
                Some(left) => return Ok(left),
                None => return Ok(Left::Stray),
            }
            if let Some(left) = self.judge(desk) {
                return Ok(left);
            }
        }
        self.serve(desk)
    }

    /// Reads the header: `Nothing` is missing, or it waits; `None` where the peer is gone.
    fn hear(&mut self) -> io::Result<Option<Left>> {
        while self.heard < HEADER_BYTES {
            match (&self.socket).read(&mut self.header[self.heard..]) {
                Ok(0) => return Ok(None),
                Ok(read) => self.heard += read,
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => return Ok(Some(Left::Waits(Interest::READ))),
                    Trouble::Broken(error) => return Err(error),
                },
            }
        }
        Ok(Some(Left::Nothing))
    }

    /// Says whose it is; what is left where it is no transaction.
    fn judge(&mut self, desk: &Desk<'_>) -> Option<Left> {
        let load = desk.load;
        let answer = match judge(&self.header, &load.options) {
            Judgement::Flow(index, phase) => {
                let flow = &load.flows.all()[index as usize];
                let here = flow.here.load(Relaxed);
                match phase {
                    Phase::Transaction if here => {
                        self.flow = Some(index);
                        return None;
                    }
                    Phase::Open if !here => {
                        load.flows.arrive(flow);
                        Answer::Taken
                    }
                    Phase::Close if here => {
                        load.flows.end(flow, End::Orderly);
                        Answer::Taken
                    }
                    _ => Answer::OtherFlow,
                }
            }
            Judgement::Refuse(Answer::OtherSecret) => return Some(Left::Another),
            Judgement::Refuse(answer) => answer,
            Judgement::Stray => return Some(Left::Stray),
        };
        self.answer(answer);
        Some(if answer == Answer::Taken {
            Left::Nothing
        } else {
            Left::Stray
        })
    }

    fn serve(&mut self, desk: &mut Desk<'_>) -> io::Result<Left> {
        let load = desk.load;
        let (request, response) = (
            load.options.request as usize,
            load.options.response as usize,
        );
        let Some(flow) = self.flow.map(|index| &load.flows.all()[index as usize]) else {
            return Ok(Left::Stray);
        };
        while self.read < request {
            match receive(&self.socket, &mut desk.room.bytes) {
                Ok(0) => return Ok(Left::Stray),
                Ok(read) => self.read += read,
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => return Ok(Left::Waits(Interest::READ)),
                    Trouble::Broken(error) => return Err(error),
                },
            }
        }
        while self.written < response {
            match send(&self.socket, &load.message[..response - self.written]) {
                Ok(sent) => self.written += sent,
                Err(error) => match Trouble::from(error) {
                    Trouble::Interrupted => {}
                    Trouble::Blocked => return Ok(Left::Waits(Interest::WRITE)),
                    Trouble::Broken(error) => return Err(error),
                },
            }
        }
        // Several threads may serve one flow: these are the only counters that are added to in common.
        flow.incoming.messages.add_shared(1);
        flow.incoming.bytes.add_shared(request as u64);
        flow.out.messages.add_shared(1);
        flow.out.bytes.add_shared(response as u64);
        Ok(Left::Nothing)
    }
}
