//! The front door of the servers on one port: one thread that accepts, hears each connection out beside the others, and
//! lets only these loads' flows in. Nobody who is slow or silent holds up anybody else.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_sys::epoll::Wake;
use wirecost_sys::socket::poll_readable;

use super::lobby::{Caller, Lobby};

use crate::flow::End;
use crate::handshake::{Answer, HEADER_BYTES, Judgement, Phase, judge};
use crate::load::Load;
use crate::machine::Machine;
use crate::socket::Adopt;
use crate::table::Serving;
use crate::worker::{Drive, spawn};

/// How long a connection may take to say whose it is.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// How many may be at it at once beside the load's own; then the one that has taken longest goes.
const SPARE: usize = 128;
/// Between two looks at whether to stop; the wake ends the wait at once, this only bounds it.
const LOOK: Duration = Duration::from_secs(1);
/// Before accepting again where the kernel has no descriptor or memory to spare.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Door {
    /// None where the threads of another load on the port accept.
    listener: Option<Arc<Socket>>,
    lobby: Arc<Lobby>,
    wake: Arc<Wake>,
    houses: Vec<House>,
    /// Oldest first.
    pending: VecDeque<Pending>,
}

/// One load behind the door.
struct House {
    load: Arc<Load>,
    /// Its place in the lobby.
    place: usize,
    /// How its sockets come to its options, where the listener has not all of them.
    adopt: Option<Adopt>,
    /// Machines of flows that were let in, by thread; a thread starts when its last one is there.
    shares: Vec<Vec<Box<dyn Machine>>>,
    threads: Vec<JoinHandle<()>>,
    /// Gets the threads once the flows are stopping; then nobody is let in any more.
    leave: Option<Sender<Vec<JoinHandle<()>>>>,
}

/// What a server behind a door has of it.
#[derive(Debug)]
pub(super) struct Behind {
    pub(super) keeper: Arc<Keeper>,
    /// The threads that serve, once the flows are stopping.
    pub(super) threads: Receiver<Vec<JoinHandle<()>>>,
}

/// The door of one or several servers.
#[derive(Debug)]
pub(super) struct Keeper {
    pub(super) wake: Arc<Wake>,
    /// Servers that have not ended.
    pub(super) open: AtomicUsize,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// A connection that has not yet said whose it is.
struct Pending {
    socket: Socket,
    header: [u8; HEADER_BYTES],
    filled: usize,
    deadline: Instant,
}

/// How far a connection's header is.
enum Heard {
    Part,
    All,
    Gone,
}

impl Door {
    /// `listener` must not block; `wake` is that of the loads behind the door.
    pub(super) fn new(listener: Option<Arc<Socket>>, lobby: Arc<Lobby>, wake: Arc<Wake>) -> Self {
        Self {
            listener,
            lobby,
            wake,
            houses: Vec::new(),
            pending: VecDeque::new(),
        }
    }

    /// Puts a load behind the door; its threads come out where it returns, once its flows are stopping.
    pub(super) fn house(
        &mut self,
        load: Arc<Load>,
        place: usize,
        adopt: Option<Adopt>,
    ) -> Receiver<Vec<JoinHandle<()>>> {
        let (leave, threads) = channel();
        self.houses.push(House {
            shares: load.seats.iter().map(|_| Vec::new()).collect(),
            load,
            place,
            adopt,
            threads: Vec::new(),
            leave: Some(leave),
        });
        threads
    }

    /// Until the flows of every load are stopping.
    pub(super) fn run(mut self) {
        while self.is_open() {
            self.wait();
            self.accept();
            self.take_over();
            self.hear();
            for house in &mut self.houses {
                if house.load.flows.stopping() && house.leave.is_some() {
                    self.lobby.leave(house.place, std::iter::empty());
                    house.leave();
                }
            }
        }
    }

    fn is_open(&self) -> bool {
        self.houses.iter().any(|house| house.leave.is_some())
    }

    /// Counts somebody who is of no load here, with the first.
    fn count_stray(&self) {
        let open = |house: &&House| house.leave.is_some();
        let first = self.houses.iter().find(open).or(self.houses.first());
        if let Some(house) = first {
            house.load.flows.count_stray();
        }
    }

    fn wait(&self) {
        let soonest = self.pending.front().map_or(LOOK, |oldest| {
            oldest
                .deadline
                .saturating_duration_since(Instant::now())
                .min(LOOK)
        });
        let listener = self.listener.iter().map(|listener| listener.as_fd());
        let fds: Vec<_> = std::iter::once(self.wake.as_fd())
            .chain(listener)
            .chain(self.pending.iter().map(|pending| pending.socket.as_fd()))
            .collect();
        if poll_readable(&fds, soonest).is_err() {
            thread::sleep(PAUSE);
        }
        self.wake.lower();
    }

    /// Lets in whom the threads of another load accepted.
    fn take_over(&mut self) {
        for at in 0..self.houses.len() {
            for caller in self.lobby.callers(self.houses[at].place) {
                let Caller {
                    socket,
                    header,
                    heard,
                } = caller;
                self.pending.push_back(Pending {
                    socket,
                    header,
                    filled: heard,
                    deadline: Instant::now() + HEADER_TIMEOUT,
                });
            }
        }
    }

    fn accept(&mut self) {
        let flows = |house: &House| house.load.options.streams as usize;
        let room = self.houses.iter().map(flows).sum::<usize>() + SPARE;
        let Some(listener) = self.listener.clone() else {
            return;
        };
        loop {
            match listener.accept() {
                Ok((socket, _)) if socket.set_nonblocking(true).is_ok() => {
                    if self.pending.len() >= room {
                        self.pending.pop_front();
                        self.count_stray();
                    }
                    self.pending.push_back(Pending {
                        socket,
                        header: [0; HEADER_BYTES],
                        filled: 0,
                        deadline: Instant::now() + HEADER_TIMEOUT,
                    });
                }
                Ok(_) => self.count_stray(),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return,
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => return thread::sleep(PAUSE),
                },
            }
        }
    }

    fn hear(&mut self) {
        let now = Instant::now();
        for mut pending in std::mem::take(&mut self.pending) {
            match pending.hear() {
                Heard::All => self.decide(pending.socket, &pending.header),
                Heard::Part if now < pending.deadline => self.pending.push_back(pending),
                Heard::Part | Heard::Gone => self.count_stray(),
            }
        }
    }

    fn decide(&mut self, socket: Socket, header: &[u8; HEADER_BYTES]) {
        let whose = self.lobby.whose(header);
        let mut houses = self.houses.iter_mut();
        let named = houses.find(|house| Some(house.place) == whose && house.leave.is_some());
        let elsewhere = whose.filter(|place| self.lobby.is_open(*place));
        match (named, elsewhere) {
            (Some(house), _) => house.decide(socket, header),
            (None, Some(place)) => {
                // Of a load whose own threads let in.
                let (header, heard) = (*header, HEADER_BYTES);
                self.lobby.hand_over(
                    place,
                    Caller {
                        socket,
                        header,
                        heard,
                    },
                );
            }
            // Nobody's: the first one says so.
            (None, None) => match self.houses.iter_mut().find(|house| house.leave.is_some()) {
                Some(house) => house.decide(socket, header),
                None => self.count_stray(),
            },
        }
    }
}

impl House {
    /// Hands the threads out, as the flows are stopping.
    fn leave(&mut self) {
        if let Some(leave) = self.leave.take() {
            // What is there is served to its end, though other flows never came.
            for seat in 0..self.shares.len() {
                self.employ(seat);
            }
            // Who does not wait for them has given them up.
            let _ = leave.send(std::mem::take(&mut self.threads));
        }
    }

    fn decide(&mut self, socket: Socket, header: &[u8; HEADER_BYTES]) {
        match judge(header, &self.load.options) {
            Judgement::Flow(index, Phase::Open) if self.is_new(index) => self.admit(index, socket),
            Judgement::Flow(..) => self.refuse(socket, Answer::OtherFlow),
            Judgement::Refuse(answer) => self.refuse(socket, answer),
            Judgement::Stray => self.load.flows.count_stray(),
        }
    }

    fn is_new(&self, index: u32) -> bool {
        self.load.flows.all()[index as usize].socket.get().is_none()
    }

    fn refuse(&self, mut socket: Socket, answer: Answer) {
        self.load.flows.count_stray();
        // Twelve bytes into an empty buffer cannot block; a peer that is gone needs no answer.
        let _ = socket.write_all(&answer.encode());
        let _ = socket.shutdown(Shutdown::Write);
    }

    /// The answer goes out when the flow's machines are there to serve what follows.
    fn admit(&mut self, index: u32, socket: Socket) {
        let Serving::Connection(machines) = self.load.table.server else {
            return;
        };
        let socket = Arc::new(socket);
        // As at the client: until the flow has ended in order, closing means resetting, so that a killed process
        // leaves nothing that keeps its namespace alive.
        let adopted = self.adopt.as_ref().map_or(Ok(()), |adopt| {
            let adopted = adopt.apply(&socket, &self.load.options);
            adopted.map_err(|error| io::Error::other(error.to_string()))
        });
        let made = adopted
            .and_then(|()| socket.set_linger(Some(Duration::ZERO)))
            .and_then(|()| socket.set_nonblocking(self.load.drive != Drive::Blocking))
            .and_then(|()| (&*socket).write_all(&Answer::Taken.encode()))
            .and_then(|()| machines(&self.load, Arc::clone(&socket), index));
        let Ok(machines) = made else {
            return self.load.flows.count_stray();
        };
        let load = Arc::clone(&self.load);
        let flow = &load.flows.all()[index as usize];
        // Only this thread sets it, and it looked before.
        let _ = flow.socket.set(socket);
        let halves = load.table.halves as usize;
        for (half, machine) in machines.into_iter().enumerate() {
            let place = index as usize * halves + half;
            let seat = place % self.shares.len();
            self.shares[seat].push(machine);
            // Every so manieth of all machines is this thread's.
            let all = self.load.options.streams as usize * halves;
            let quota = (all - seat).div_ceil(self.shares.len());
            if self.shares[seat].len() == quota {
                self.employ(seat);
            }
        }
        load.flows.arrive(flow);
    }

    /// Starts a thread with the machines that it has so far, if any.
    fn employ(&mut self, seat: usize) {
        let machines = std::mem::take(&mut self.shares[seat]);
        if machines.is_empty() {
            return;
        }
        let flows: Vec<u32> = machines
            .iter()
            .filter_map(|machine| machine.flow())
            .collect();
        match spawn(&self.load, seat, machines, self.load.drive, false) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                for flow in flows {
                    let error = io::Error::other(error.to_string());
                    let flow = &self.load.flows.all()[flow as usize];
                    self.load.flows.end(flow, End::Failed(error));
                }
            }
        }
    }
}

impl Keeper {
    pub(super) fn keep(&self, thread: Option<JoinHandle<()>>) -> Option<JoinHandle<()>> {
        let mut kept = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *kept, thread)
    }

    /// One server has ended; with the last the door is over.
    pub(super) fn end(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(thread) = self.keep(None)
        {
            let _ = thread.join();
        }
    }
}

impl Pending {
    /// Reads what is there of the header, without waiting.
    fn hear(&mut self) -> Heard {
        while self.filled < HEADER_BYTES {
            match self.socket.read(&mut self.header[self.filled..]) {
                Ok(0) => return Heard::Gone,
                Ok(bytes) => self.filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Part,
                Err(_) => return Heard::Gone,
            }
        }
        Heard::All
    }
}
