//! The client: opens the flows, starts them, and ends them.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};
use wirecost_model::end_window::End;
use wirecost_model::load::{Address, PATH_PATIENCE};
use wirecost_sys::socket::{bind_here, set_max_pacing_rate, tcp_info};

use crate::engine::Engine;
use crate::error::TrafficError;
use crate::flow::{Finished, FinishedFlow, Flow, Outcome};
use crate::lost_segments;
use crate::migration::observer::{Observer, Watch};
use crate::migration::service::Service;
use crate::opening::open_all;
use crate::ops::{ClientFlow, FlowKind};
use crate::options::{Limit, Options};
use crate::snapshot::Snapshot;
use crate::storage::path::OpenPath;
use crate::task::{Task, path_client};
use crate::timeouts::POLL_INTERVAL;
use crate::worker::ThreadMode;

/// Resolution of `tcpi_last_ack_recv`.
const JIFFIES: Duration = Duration::from_millis(20);
/// Longer than any round-trip time.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);

/// The end that sends, or sends requests: connected, then started, then stopped.
///
/// Dropping it aborts every flow.
#[derive(Debug)]
pub struct Client {
    engine: Engine,
    flows: Vec<ClientFlow>,
    threads: Vec<JoinHandle<()>>,
    /// Whether the kernel may find a segment size that passes.
    may_recover: bool,
    /// Of machines that are watched.
    watched: Option<Watched>,
}

/// What answers for watched machines at their source, and who asks.
#[derive(Debug)]
struct Watched {
    _service: Service,
    /// Where it answers.
    here: SocketAddr,
    observer: Mutex<Option<Observer>>,
    watch: OnceLock<Watch>,
}

impl Client {
    /// Connects every flow to the server at `target`, within `timeout` in all.
    ///
    /// Sockets belong to the calling thread's network namespace: they are made on this thread, or (`tcp-crr`) on
    /// threads that it starts. Nothing is sent but the handshakes.
    pub fn connect(
        target: impl Into<Address>,
        options: &Options,
        timeout: Duration,
    ) -> Result<Self, TrafficError> {
        let engine = Engine::new(options, End::Client)?;
        // What the load needs here, as virtual machines, has its own time.
        let deadline = Instant::now() + timeout;
        let flows = open_all(engine.ops.flow_kind, &target.into(), options, deadline)?;
        let mut client = Self {
            engine,
            flows,
            threads: Vec::new(),
            may_recover: lost_segments::may_recover(),
            watched: None,
        };
        if let Some(path) = &options.load.path {
            client.start_jobs(path, deadline.max(Instant::now() + PATH_PATIENCE))?;
        } else {
            client.start_threads()?;
        }
        if options
            .load
            .migration
            .is_some_and(|migration| migration.watch)
        {
            client.watched =
                Some(
                    client
                        .serve_watched()
                        .map_err(|source| TrafficError::Socket {
                            what: "answering for watched machines",
                            source,
                        })?,
                );
        }
        Ok(client)
    }

    /// Answers for machines at the address that their connections have here.
    fn serve_watched(&self) -> io::Result<Watched> {
        let first = self.flows.first().ok_or(io::ErrorKind::NotFound)?;
        let own = first.socket.local_addr()?.as_socket();
        let own = own.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let socket = Socket::new(Domain::for_address(own), Type::DGRAM, Some(Protocol::UDP))?;
        bind_here(&socket, SocketAddr::new(own.ip(), 0))?;
        let here = socket.local_addr()?.as_socket();
        Ok(Watched {
            here: here.ok_or(io::ErrorKind::AddrNotAvailable)?,
            _service: Service::start(&self.engine.shared, End::Client, socket)?,
            observer: Mutex::default(),
            watch: OnceLock::new(),
        })
    }

    /// Where machines that are watched are reached: whoever observes them needs an address of the same kind.
    pub fn watched_at(&self) -> Option<SocketAddr> {
        Some(self.watched.as_ref()?.here)
    }

    /// Has watched machines observed from where this observer was made, from the start on.
    pub fn observe(&self, observer: Observer) {
        if let Some(watched) = &self.watched {
            let mut kept = watched
                .observer
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *kept = Some(observer);
        }
    }

    /// Lets the observer begin.
    fn start_watch(&self) -> io::Result<()> {
        let Some(watched) = &self.watched else {
            return Ok(());
        };
        let mut observer = watched
            .observer
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let target = self.flows.first().and_then(|flow| flow.target.ip());
        if let (Some(observer), Some(target)) = (observer.take(), target) {
            let watch = observer.watch(&self.engine.shared, watched.here, target)?;
            let _ = watched.watch.set(watch);
        }
        Ok(())
    }

    /// Distributes the tasks over the threads and starts them.
    fn start_threads(&mut self) -> Result<(), TrafficError> {
        let Engine {
            shared, ops, mode, ..
        } = &self.engine;
        let mut shares: Vec<Vec<Box<dyn Task>>> =
            shared.threads.iter().map(|_| Vec::new()).collect();
        let mut next = 0;
        for flow in &self.flows {
            let state = &shared.flows.all()[flow.index as usize];
            let tasks = (ops.client)(shared, flow.clone())
                .and_then(|tasks| {
                    if ops.flow_kind != FlowKind::ConnectionPerTransaction {
                        let blocks = *mode == ThreadMode::Blocking;
                        flow.socket.set_nonblocking(!blocks)?;
                        if blocks && ops.flow_kind == (FlowKind::Connection { streams: false }) {
                            // To notice a server that never answers a request.
                            flow.socket.set_read_timeout(Some(POLL_INTERVAL))?;
                        }
                        let _ = state.socket.set(Arc::clone(&flow.socket));
                    }
                    Ok(tasks)
                })
                .map_err(|source| TrafficError::Socket {
                    what: "setting a flow up",
                    source,
                })?;
            shared.flows.set_connected(state);
            for task in tasks {
                let threads = shares.len();
                shares[next % threads].push(task);
                next += 1;
            }
        }
        for (thread, share) in shares.into_iter().enumerate() {
            self.threads.push(self.engine.spawn(thread, share)?);
        }
        Ok(())
    }

    /// Opens the path, and starts a thread for each of its jobs.
    fn start_jobs(&mut self, path: &str, deadline: Instant) -> Result<(), TrafficError> {
        let shared = &self.engine.shared;
        let failed = |source| TrafficError::Path {
            path: path.to_owned(),
            source,
        };
        let open = OpenPath::open(path, &shared.options, deadline).map_err(failed)?;
        let open = shared.path.get_or_init(|| Arc::new(open));
        let _ = shared.flows.path.set(path.to_owned());
        let jobs = path_client::all(shared, open).map_err(failed)?;
        for (thread, job) in jobs.into_iter().enumerate() {
            shared.flows.set_connected(&shared.flows.all()[thread]);
            self.threads.push(self.engine.spawn(thread, vec![job])?);
        }
        Ok(())
    }

    /// Verifies and closes the path, whose jobs are over.
    fn close_path(
        &self,
        open: &Arc<OpenPath>,
        deadline: Instant,
    ) -> Result<Finished, TrafficError> {
        let shared = &self.engine.shared;
        let failed = |source| TrafficError::Path {
            path: open.path.clone(),
            source,
        };
        let states = shared.flows.all();
        let is_over = |flow: &Flow| matches!(flow.outcome.get(), Some(Outcome::Orderly));
        if !states.iter().all(is_over) {
            let words = "I/O that was outstanding was not over when the load was stopped";
            return Err(failed(io::Error::new(io::ErrorKind::TimedOut, words)));
        }
        let samples = states.iter().filter_map(|state| state.sample.get());
        let samples = samples.cloned().collect();
        open.close(&shared.options, samples, deadline)
            .map_err(failed)?;
        let flow = |state: &Flow| FinishedFlow {
            bytes: state.bytes(),
            drained: true,
            counted: 0,
        };
        Ok(Finished {
            bytes: shared.flows.bytes(),
            flows: states.iter().map(flow).collect(),
            strays: 0,
        })
    }

    /// Starts all flows together. Returns when that was.
    ///
    /// # Errors
    /// A flow that failed since it was connected.
    pub fn start(&self) -> Result<Instant, TrafficError> {
        let flows = &self.engine.shared.flows;
        for (flow, _, socket) in flows.with_sockets() {
            if let Some(source) = socket.take_error().unwrap_or_else(Some) {
                return Err(TrafficError::PeerVanished {
                    flow,
                    bytes: 0,
                    source,
                });
            }
        }
        self.start_watch().map_err(TrafficError::Thread)?;
        let at = Instant::now();
        flows.set_started();
        Ok(at)
    }

    /// Waits of each thread in its ring.
    #[cfg(test)]
    pub(crate) fn rings(&self) -> Vec<u64> {
        self.engine.rings()
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.engine.shared.options
    }

    /// Counters, latencies, threads and socket states now.
    ///
    /// # Errors
    /// A flow that failed.
    pub fn snapshot(&self) -> Result<Snapshot, TrafficError> {
        self.engine.snapshot()
    }

    /// Whether nothing is to be expected of any flow any more.
    ///
    /// # Errors
    /// [`TrafficError::SegmentsLost`] where no connection had a full segment acknowledged, and the kernel will not try
    /// smaller ones.
    pub fn check_progress(&self) -> Result<(), TrafficError> {
        let connections = matches!(self.engine.ops.flow_kind, FlowKind::Connection { .. });
        match lost_segments::all_lost(&self.flows) {
            Some(lost) if connections && !self.may_recover => Err(lost),
            _ => Ok(()),
        }
    }

    /// Marks the datagrams of a stream that are sent from now on as counted, or not. The mark travels with them: so
    /// those sent and those received ([`crate::FinishedFlow::counted`]) are the same ones, however long they are on
    /// the way.
    pub fn set_counted(&self, counted: bool) {
        self.engine.shared.set_counted(counted);
    }

    /// Bytes and messages received so far, all flows (`read_bytes` and `received` of
    /// [`wirecost_model::counts::Counts`]).
    pub fn received(&self) -> (u64, u64) {
        self.engine.shared.flows.received()
    }

    /// Bytes of messages sent and read so far, all flows.
    pub fn bytes(&self) -> u64 {
        self.engine.shared.flows.bytes()
    }

    /// Waits, at most `timeout`, until the load's limit has ended it; [`Self::stop`] is still to be called.
    ///
    /// # Errors
    /// A flow that failed; [`TrafficError::NotOver`] where the limit was not reached in time, or there is none.
    pub fn wait_ended(&self, timeout: Duration) -> Result<(), TrafficError> {
        let flows = &self.engine.shared.flows;
        let broken = || {
            flows
                .all()
                .iter()
                .any(|flow| matches!(flow.outcome.get(), Some(Outcome::Failed(_))))
        };
        let over = if let Some(Limit::Time(time)) = self.engine.shared.options.load.limit {
            flows.wait_until(Some(Instant::now() + time.min(timeout)), broken);
            time <= timeout
        } else {
            flows.wait_until(Some(Instant::now() + timeout), || {
                broken() || flows.all_ended()
            })
        };
        flows.check()?;
        if over {
            Ok(())
        } else {
            Err(TrafficError::NotOver { after: timeout })
        }
    }

    /// Ends all flows together: nothing more is sent. What is in flight is waited for, at most `timeout`, until the
    /// server has confirmed that it read all of it. Flows that are not drained by then are aborted.
    ///
    /// # Errors
    /// A flow that failed; a peer that has acknowledged nothing on any flow since this began, named by the first one
    /// (a single flow may be waiting for a retransmission). Every thread is joined all the same.
    pub fn stop(mut self, timeout: Duration) -> Result<Finished, TrafficError> {
        let began = Instant::now();
        if let Err(lost) = self.check_progress() {
            self.end_threads(None);
            return Err(lost);
        }
        let deadline = began + timeout;
        let before: Vec<u64> = self
            .engine
            .shared
            .flows
            .all()
            .iter()
            .map(Flow::bytes)
            .collect();
        self.end_threads(Some(deadline));
        let flows = &self.engine.shared.flows;
        flows.check()?;
        if let Some(open) = self.engine.shared.path.get() {
            return self.close_path(open, began + timeout.max(PATH_PATIENCE));
        }
        let mut ends = Vec::with_capacity(self.flows.len());
        let (mut alive, mut silent) = (false, None);
        for flow in &self.flows {
            let index = flow.index;
            let state = &flows.all()[index as usize];
            let orderly = matches!(state.outcome.get(), Some(Outcome::Orderly));
            let vanished = |source| TrafficError::PeerVanished {
                flow: index,
                bytes: state.bytes(),
                source,
            };
            let drained = orderly
                && (self.engine.ops.closing)(&self.engine.shared, flow, deadline)
                    .map_err(vanished)?;
            let moved = state.bytes() != before[index as usize];
            let liveness = if drained {
                Liveness::Alive
            } else {
                self.liveness(flow, moved, began.elapsed())
            };
            match liveness {
                Liveness::Alive => alive = true,
                Liveness::Silent(error) => _ = silent.get_or_insert(error),
                Liveness::Neither => {}
            }
            ends.push(FinishedFlow {
                bytes: state.bytes(),
                drained,
                counted: state.tx.counted.get(),
            });
        }
        if let Some(vanished) = silent.filter(|_| !alive) {
            return Err(vanished);
        }
        if let Some(after_close) = self.engine.ops.after_close {
            after_close(&self.engine.shared, &self.flows, deadline);
        }
        Ok(Finished {
            bytes: flows.bytes(),
            flows: ends,
            strays: flows.strays(),
        })
    }

    /// Whether a flow that did not end in order in `time` shows that its peer is alive. A slow path may still have
    /// much queued, but it acknowledges.
    fn liveness(&self, flow: &ClientFlow, moved: bool, time: Duration) -> Liveness {
        let silent = |silence: Duration| {
            let words = format!("nothing came from it for {:.1} s", silence.as_secs_f64());
            Liveness::Silent(TrafficError::PeerVanished {
                flow: flow.index,
                bytes: self.engine.shared.flows.all()[flow.index as usize].bytes(),
                source: io::Error::new(io::ErrorKind::TimedOut, words),
            })
        };
        if time < LONGEST_ROUND_TRIP {
            return Liveness::Neither;
        }
        match self.engine.ops.flow_kind {
            FlowKind::Connection { .. } => {
                let Ok(info) = tcp_info(&*flow.socket) else {
                    return Liveness::Neither;
                };
                let acknowledged = Duration::from_millis(info.last_ack_recv.into());
                if acknowledged + JIFFIES < time {
                    Liveness::Alive
                } else if lost_segments::has_none_acknowledged(&info) {
                    Liveness::Silent(lost_segments::of_flow(flow.index, &info))
                } else if info.unacked > 0 {
                    silent(acknowledged)
                } else {
                    Liveness::Neither
                }
            }
            // A UDP stream's server sends nothing.
            _ if !self
                .engine
                .shared
                .options
                .load
                .workload
                .is_request_response() =>
            {
                Liveness::Neither
            }
            // The connection of the current transaction is not known here, or there is none.
            _ if moved => Liveness::Alive,
            _ => silent(time),
        }
    }

    /// Ends and joins every thread: in order until `deadline`, then by aborting the flows; at once without a
    /// deadline.
    fn end_threads(&mut self, deadline: Option<Instant>) {
        let flows = &self.engine.shared.flows;
        flows.set_stopping();
        if self.engine.ops.shut_to_stop && deadline.is_some() {
            // Wakes a blocked send(2), which returns what it had queued: the counters stay exact, and the FIN follows
            // the last byte. Pacing is lifted, unless all of the data is to be counted at its rate.
            let options = &self.engine.shared.options;
            let lifts = options.load.rate.is_some() && options.load.limit.is_none();
            for (_, _, socket) in flows.with_sockets() {
                if lifts {
                    let _ = set_max_pacing_rate(socket, u64::MAX);
                }
                let _: io::Result<()> = socket.shutdown(Shutdown::Write);
            }
        }
        if deadline.is_none_or(|deadline| !flows.wait_until(Some(deadline), || flows.all_ended())) {
            flows.abort();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What a flow shows of its peer.
enum Liveness {
    Alive,
    Silent(TrafficError),
    Neither,
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end_threads(None);
        }
    }
}
