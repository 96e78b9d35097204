//! The server's front door: one thread that accepts, hears each connection out beside the others, and lets only this
//! load's flows in. Nobody who is slow or silent holds up anybody else.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::Socket;
use wirecost_sys::socket::poll_readable;

use crate::flow::End;
use crate::handshake::{Answer, HEADER_BYTES, Judgement, Phase, judge};
use crate::load::Load;
use crate::machine::Machine;
use crate::table::Serving;
use crate::worker::{Drive, spawn};

/// How long a connection may take to say whose it is.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// How many may be at it at once beside the load's own; then the one that has taken longest goes.
const SPARE: usize = 128;
/// Between two looks at whether to stop; shutting the listener down wakes the wait at once, this only bounds it.
const LOOK: Duration = Duration::from_secs(1);
/// Before accepting again where the kernel has no descriptor or memory to spare.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Door {
    listener: Arc<Socket>,
    load: Arc<Load>,
    /// Oldest first.
    pending: VecDeque<Pending>,
    /// Machines of flows that were let in, by thread; a thread starts when its last one is there.
    shares: Vec<Vec<Box<dyn Machine>>>,
    threads: Vec<JoinHandle<()>>,
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
    /// `listener` must not block.
    pub(super) fn new(listener: Arc<Socket>, load: Arc<Load>) -> Self {
        let shares = load.seats.iter().map(|_| Vec::new()).collect();
        Self {
            listener,
            load,
            pending: VecDeque::new(),
            shares,
            threads: Vec::new(),
        }
    }

    /// Until the flows are stopping; returns the threads that serve.
    pub(super) fn run(mut self) -> Vec<JoinHandle<()>> {
        while !self.load.flows.stopping() {
            self.wait();
            self.accept();
            self.hear();
        }
        // What is there is served to its end, though other flows never came.
        for seat in 0..self.shares.len() {
            self.employ(seat);
        }
        self.threads
    }

    fn wait(&self) {
        let soonest = self.pending.front().map_or(LOOK, |oldest| {
            oldest
                .deadline
                .saturating_duration_since(Instant::now())
                .min(LOOK)
        });
        let fds: Vec<_> = std::iter::once(self.listener.as_fd())
            .chain(self.pending.iter().map(|pending| pending.socket.as_fd()))
            .collect();
        if poll_readable(&fds, soonest).is_err() {
            thread::sleep(PAUSE);
        }
    }

    fn accept(&mut self) {
        while !self.load.flows.stopping() {
            match self.listener.accept() {
                Ok((socket, _)) if socket.set_nonblocking(true).is_ok() => {
                    if self.pending.len() == self.load.options.streams as usize + SPARE {
                        self.pending.pop_front();
                        self.load.flows.count_stray();
                    }
                    self.pending.push_back(Pending {
                        socket,
                        header: [0; HEADER_BYTES],
                        filled: 0,
                        deadline: Instant::now() + HEADER_TIMEOUT,
                    });
                }
                Ok(_) => self.load.flows.count_stray(),
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
                Heard::All => self.decide(pending),
                Heard::Part if now < pending.deadline => self.pending.push_back(pending),
                Heard::Part | Heard::Gone => self.load.flows.count_stray(),
            }
        }
    }

    fn decide(&mut self, pending: Pending) {
        match judge(&pending.header, &self.load.options) {
            Judgement::Flow(index, Phase::Open) if self.is_new(index) => {
                self.admit(index, pending.socket);
            }
            Judgement::Flow(..) => self.refuse(pending.socket, Answer::OtherFlow),
            Judgement::Refuse(answer) => self.refuse(pending.socket, answer),
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
        let made = socket
            .set_linger(Some(Duration::ZERO))
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

impl Pending {
    /// Reads what is there of the header, without waiting.
    fn hear(&mut self) -> Heard {
        loop {
            match self.socket.read(&mut self.header[self.filled..]) {
                Ok(0) => return Heard::Gone,
                Ok(bytes) => self.filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Part,
                Err(_) => return Heard::Gone,
            }
            if self.filled == HEADER_BYTES {
                return Heard::All;
            }
        }
    }
}
