//! The acceptor of the servers on one TCP port: a thread that accepts connections, reads their headers without
//! blocking, and admits only flows of these loads. A slow or silent peer delays no other.

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
use wirecost_sys::epoll::Waker;
use wirecost_sys::socket::poll_readable;

use crate::dispatch::{Dispatcher, Handoff};
use crate::engine::Engine;
use crate::flow::Outcome;
use crate::handshake::{Answer, HEADER_BYTES, HeaderCheck, Phase, check_header};
use crate::ops::ServerTasks;
use crate::socket::OptionFixup;
use crate::task::Task;
use crate::worker::ThreadMode;

/// How long a connection may take to send its header.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Pending connections beyond the loads' flows; above that the oldest is dropped.
const SPARE: usize = 128;
/// Longest wait for an event; the waker ends a wait at once.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Pause before the next accept where the kernel has no descriptor or memory left.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) struct Acceptor {
    /// `None` where the threads of another load on the port accept.
    listener: Option<Arc<Socket>>,
    dispatcher: Arc<Dispatcher>,
    wake: Arc<Waker>,
    loads: Vec<AcceptedLoad>,
    /// Connections whose header is not complete, oldest first.
    pending: VecDeque<Pending>,
}

/// A load whose connections the acceptor admits.
struct AcceptedLoad {
    engine: Engine,
    /// Index of the load in the dispatcher.
    index: usize,
    /// Sets the load's options on sockets that inherit others from the listener.
    fixup: Option<OptionFixup>,
    /// Tasks of admitted flows, by thread; a thread starts when it has all of its tasks.
    shares: Vec<Vec<Box<dyn Task>>>,
    threads: Vec<JoinHandle<()>>,
    /// Sends the threads to the server once the flows are stopping; `None` from then on: no more flows are admitted.
    stopped: Option<Sender<Vec<JoinHandle<()>>>>,
}

/// A server's handle of its acceptor.
#[derive(Debug)]
pub(super) struct AcceptorHandle {
    pub(super) acceptor: Arc<SharedAcceptor>,
    /// Yields the serving threads once the flows are stopping.
    pub(super) threads: Receiver<Vec<JoinHandle<()>>>,
}

/// The acceptor of one or several servers.
#[derive(Debug)]
pub(super) struct SharedAcceptor {
    pub(super) wake: Arc<Waker>,
    /// Servers that have not ended.
    pub(super) open: AtomicUsize,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

/// A connection whose header is not complete.
struct Pending {
    socket: Socket,
    header: [u8; HEADER_BYTES],
    filled: usize,
    deadline: Instant,
}

/// How much of a header was read.
enum HeaderRead {
    Partial,
    Complete,
    Closed,
}

impl Acceptor {
    /// `listener` must not block; `wake` is the waker of these loads in the dispatcher.
    pub(super) fn new(
        listener: Option<Arc<Socket>>,
        dispatcher: Arc<Dispatcher>,
        wake: Arc<Waker>,
    ) -> Self {
        Self {
            listener,
            dispatcher,
            wake,
            loads: Vec::new(),
            pending: VecDeque::new(),
        }
    }

    /// Adds a load, with its index in the dispatcher. The returned channel yields its threads once its flows are
    /// stopping.
    pub(super) fn add(
        &mut self,
        engine: Engine,
        index: usize,
        fixup: Option<OptionFixup>,
    ) -> Receiver<Vec<JoinHandle<()>>> {
        let (stopped, threads) = channel();
        self.loads.push(AcceptedLoad {
            shares: engine.shared.threads.iter().map(|_| Vec::new()).collect(),
            engine,
            index,
            fixup,
            threads: Vec::new(),
            stopped: Some(stopped),
        });
        threads
    }

    /// Runs until the flows of every load are stopping.
    pub(super) fn run(mut self) {
        while self.is_open() {
            self.wait();
            self.accept();
            self.take_handoffs();
            self.read_headers();
            for load in &mut self.loads {
                if load.engine.shared.flows.stopping() && load.stopped.is_some() {
                    self.dispatcher.close(load.index, std::iter::empty());
                    load.stop();
                }
            }
        }
    }

    fn is_open(&self) -> bool {
        self.loads.iter().any(|load| load.stopped.is_some())
    }

    /// Counts a connection that belongs to no load here, at the first load that still admits flows.
    fn count_stray(&self) {
        let open = |load: &&AcceptedLoad| load.stopped.is_some();
        let first = self.loads.iter().find(open).or(self.loads.first());
        if let Some(load) = first {
            load.engine.shared.flows.count_stray();
        }
    }

    fn wait(&self) {
        let soonest = self.pending.front().map_or(MAX_WAIT, |oldest| {
            oldest
                .deadline
                .saturating_duration_since(Instant::now())
                .min(MAX_WAIT)
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

    /// Takes connections that the threads of another load accepted.
    fn take_handoffs(&mut self) {
        for at in 0..self.loads.len() {
            for handoff in self.dispatcher.take(self.loads[at].index) {
                let Handoff {
                    socket,
                    header,
                    filled,
                } = handoff;
                self.pending.push_back(Pending {
                    socket,
                    header,
                    filled,
                    deadline: Instant::now() + HEADER_TIMEOUT,
                });
            }
        }
    }

    fn accept(&mut self) {
        let flows = |load: &AcceptedLoad| load.engine.shared.options.load.connections() as usize;
        let room = self.loads.iter().map(flows).sum::<usize>() + SPARE;
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

    fn read_headers(&mut self) {
        let now = Instant::now();
        for mut pending in std::mem::take(&mut self.pending) {
            match pending.read_header() {
                HeaderRead::Complete => self.decide(pending.socket, &pending.header),
                HeaderRead::Partial if now < pending.deadline => self.pending.push_back(pending),
                HeaderRead::Partial | HeaderRead::Closed => self.count_stray(),
            }
        }
    }

    fn decide(&mut self, socket: Socket, header: &[u8; HEADER_BYTES]) {
        let target = self.dispatcher.target(header);
        let mut loads = self.loads.iter_mut();
        let named = loads.find(|load| Some(load.index) == target && load.stopped.is_some());
        let elsewhere = target.filter(|index| self.dispatcher.is_open(*index));
        match (named, elsewhere) {
            (Some(load), _) => load.decide(socket, header),
            (None, Some(index)) => {
                // The load's own threads accept.
                let (header, filled) = (*header, HEADER_BYTES);
                self.dispatcher.hand_over(
                    index,
                    Handoff {
                        socket,
                        header,
                        filled,
                    },
                );
            }
            // The header names no load: the first one refuses the connection.
            (None, None) => match self.loads.iter_mut().find(|load| load.stopped.is_some()) {
                Some(load) => load.decide(socket, header),
                None => self.count_stray(),
            },
        }
    }
}

impl AcceptedLoad {
    /// Sends the threads to the server, since the flows are stopping.
    fn stop(&mut self) {
        if let Some(stopped) = self.stopped.take() {
            // Flows that were admitted are served to their end, even if others never came.
            for thread in 0..self.shares.len() {
                self.start_thread(thread);
            }
            // A server that is gone has aborted its flows.
            let _ = stopped.send(std::mem::take(&mut self.threads));
        }
    }

    fn decide(&mut self, socket: Socket, header: &[u8; HEADER_BYTES]) {
        match check_header(header, &self.engine.shared.options) {
            HeaderCheck::Flow(index, Phase::Open) if self.is_new(index) => {
                self.admit(index, socket);
            }
            HeaderCheck::Flow(..) => self.refuse(socket, Answer::OtherFlow),
            HeaderCheck::Refuse(answer) => self.refuse(socket, answer),
            HeaderCheck::Stray => self.engine.shared.flows.count_stray(),
        }
    }

    fn is_new(&self, index: u32) -> bool {
        self.engine.shared.flows.all()[index as usize]
            .socket
            .get()
            .is_none()
    }

    fn refuse(&self, mut socket: Socket, answer: Answer) {
        self.engine.shared.flows.count_stray();
        // Twelve bytes into an empty buffer cannot block; a peer that is gone needs no answer.
        let _ = socket.write_all(&answer.encode());
        let _ = socket.shutdown(Shutdown::Write);
    }

    /// Answers the client and makes the flow's tasks.
    fn admit(&mut self, index: u32, socket: Socket) {
        let ServerTasks::PerConnection(tasks) = self.engine.ops.server else {
            return;
        };
        let socket = Arc::new(socket);
        // Until the flow has ended in order, closing sends a reset: a killed process leaves no half-closed connection
        // that keeps its network namespace alive.
        let fixed = self.fixup.as_ref().map_or(Ok(()), |fixup| {
            let fixed = fixup.apply(&socket, &self.engine.shared.options);
            fixed.map_err(|error| io::Error::other(error.to_string()))
        });
        let made = fixed
            .and_then(|()| socket.set_linger(Some(Duration::ZERO)))
            .and_then(|()| socket.set_nonblocking(self.engine.mode != ThreadMode::Blocking))
            .and_then(|()| (&*socket).write_all(&Answer::Accepted.encode()))
            .and_then(|()| tasks(&self.engine.shared, Arc::clone(&socket), index));
        let Ok(tasks) = made else {
            return self.engine.shared.flows.count_stray();
        };
        let shared = Arc::clone(&self.engine.shared);
        let flow = &shared.flows.all()[index as usize];
        // Cannot fail: only this thread sets the socket, after `is_new`.
        let _ = flow.socket.set(socket);
        let tasks_per_flow = self.engine.ops.tasks_per_flow as usize;
        for (half, task) in tasks.into_iter().enumerate() {
            let number = index as usize * tasks_per_flow + half;
            let thread = number % self.shares.len();
            self.shares[thread].push(task);
            // Tasks are distributed over the threads in turn.
            let all = self.engine.shared.options.load.connections() as usize * tasks_per_flow;
            let quota = (all - thread).div_ceil(self.shares.len());
            if self.shares[thread].len() == quota {
                self.start_thread(thread);
            }
        }
        shared.flows.set_connected(flow);
    }

    /// Starts a thread with the tasks that it has so far, if any.
    fn start_thread(&mut self, thread: usize) {
        let tasks = std::mem::take(&mut self.shares[thread]);
        if tasks.is_empty() {
            return;
        }
        let flows: Vec<u32> = tasks.iter().filter_map(|task| task.flow()).collect();
        match self.engine.spawn(thread, tasks) {
            Ok(thread) => self.threads.push(thread),
            Err(error) => {
                for flow in flows {
                    let error = io::Error::other(error.to_string());
                    let flow = &self.engine.shared.flows.all()[flow as usize];
                    self.engine.shared.flows.end(flow, Outcome::Failed(error));
                }
            }
        }
    }
}

impl SharedAcceptor {
    pub(super) fn replace_thread(&self, thread: Option<JoinHandle<()>>) -> Option<JoinHandle<()>> {
        let mut kept = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *kept, thread)
    }

    /// Notes that a server has ended; the last one joins the acceptor's thread.
    pub(super) fn end(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(thread) = self.replace_thread(None)
        {
            let _ = thread.join();
        }
    }
}

impl Pending {
    /// Reads what has arrived of the header.
    fn read_header(&mut self) -> HeaderRead {
        while self.filled < HEADER_BYTES {
            match self.socket.read(&mut self.header[self.filled..]) {
                Ok(0) => return HeaderRead::Closed,
                Ok(bytes) => self.filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return HeaderRead::Partial;
                }
                Err(_) => return HeaderRead::Closed,
            }
        }
        HeaderRead::Complete
    }
}
