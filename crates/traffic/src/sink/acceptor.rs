//! The sink's front door: one thread that accepts, hears each connection out beside the others, and lets only this
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

use super::run_reader;
use crate::flow::{End, Flows};
use crate::handshake::{Answer, HEADER_BYTES, Judgement, judge};

/// How long a connection may take to say whose it is.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// How many may be at it at once; then the one that has taken longest goes.
const MAX_PENDING: usize = 128;
/// Between two looks at whether to stop; shutting the listener down wakes the wait at once, this only bounds it.
const LOOK: Duration = Duration::from_secs(1);
/// Before accepting again where the kernel has no descriptor or memory to spare.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Acceptor {
    listener: Socket,
    flows: Arc<Flows>,
    secret: [u8; 16],
    buffer: usize,
    /// Oldest first.
    pending: VecDeque<Pending>,
    readers: Vec<JoinHandle<()>>,
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

impl Acceptor {
    /// `listener` must not block; `buffer` is the size of each flow's read buffer in bytes.
    pub(super) fn new(
        listener: Socket,
        flows: Arc<Flows>,
        secret: [u8; 16],
        buffer: usize,
    ) -> Self {
        Self {
            listener,
            flows,
            secret,
            buffer,
            pending: VecDeque::new(),
            readers: Vec::new(),
        }
    }

    /// Until the flows are stopping; returns the readers' threads.
    pub(super) fn run(mut self) -> Vec<JoinHandle<()>> {
        while !self.flows.stopping() {
            self.wait();
            self.accept();
            self.hear();
        }
        self.readers
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
        while !self.flows.stopping() {
            match self.listener.accept() {
                Ok((socket, _)) if socket.set_nonblocking(true).is_ok() => {
                    if self.pending.len() == MAX_PENDING {
                        self.pending.pop_front();
                        self.flows.count_stray();
                    }
                    self.pending.push_back(Pending {
                        socket,
                        header: [0; HEADER_BYTES],
                        filled: 0,
                        deadline: Instant::now() + HEADER_TIMEOUT,
                    });
                }
                Ok(_) => self.flows.count_stray(),
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
                Heard::Part | Heard::Gone => self.flows.count_stray(),
            }
        }
    }

    fn decide(&mut self, pending: Pending) {
        match judge(&pending.header, &self.secret, self.flows.count()) {
            Judgement::Flow(index) if self.is_new(index) => self.admit(index, pending.socket),
            Judgement::Flow(_) => self.refuse(pending.socket, Answer::OtherFlow),
            Judgement::Refuse(answer) => self.refuse(pending.socket, answer),
            Judgement::Stray => self.flows.count_stray(),
        }
    }

    fn is_new(&self, index: u32) -> bool {
        self.flows.all()[index as usize].socket.get().is_none()
    }

    fn refuse(&self, mut socket: Socket, answer: Answer) {
        self.flows.count_stray();
        // Twelve bytes into an empty buffer cannot block; a peer that is gone needs no answer.
        let _ = socket.write_all(&answer.encode());
        let _ = socket.shutdown(Shutdown::Write);
    }

    /// The answer goes out when everything is ready to read what follows: the buffer's pages are there.
    fn admit(&mut self, index: u32, mut socket: Socket) {
        let mut buffer = vec![1; self.buffer].into_boxed_slice();
        // As at the source: until the stream has ended in order, closing means resetting, so that a killed process
        // leaves nothing that keeps its namespace alive.
        let ready = socket
            .set_linger(Some(Duration::ZERO))
            .and_then(|()| socket.set_nonblocking(false))
            .and_then(|()| socket.write_all(&Answer::Taken.encode()));
        if ready.is_err() {
            return self.flows.count_stray();
        }
        let flow = &self.flows.all()[index as usize];
        // Only this thread sets it, and it looked before.
        let _ = flow.socket.set(socket);
        let flows = Arc::clone(&self.flows);
        let reader = thread::Builder::new()
            .name(format!("stream-in-{index}"))
            .spawn(move || {
                let flow = &flows.all()[index as usize];
                if let Some(socket) = flow.socket.get() {
                    run_reader(&flows, flow, socket, &mut buffer);
                }
            });
        match reader {
            Ok(reader) => {
                self.readers.push(reader);
                self.flows.notify();
            }
            Err(error) => self.flows.end(flow, End::Failed(error)),
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
