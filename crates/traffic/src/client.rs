//! The client: opens the flows, starts them, reports their counters, and ends them.

mod path;
mod stop;
mod watch_service;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wirecost_model::end_window::End;
use wirecost_model::load::{Address, PATH_PATIENCE};

use self::watch_service::WatchService;
use crate::engine::Engine;
use crate::error::TrafficError;
use crate::flow::Outcome;
use crate::lost_segments;
use crate::opening::open_all;
use crate::ops::{ClientFlow, FlowKind};
use crate::options::{Limit, Options};
use crate::snapshot::Snapshot;
use crate::task::Task;
use crate::timeouts::POLL_INTERVAL;
use crate::worker::ThreadMode;

/// The end that sends, or sends requests: connected, then started, then stopped.
///
/// Dropping it aborts every flow.
#[derive(Debug)]
pub struct Client {
    engine: Engine,
    flows: Vec<ClientFlow>,
    threads: Vec<JoinHandle<()>>,
    /// Whether the kernel may find a segment size that passes ([`lost_segments::may_recover`]).
    may_recover: bool,
    /// Service and observer of a watched migration.
    watched: Option<WatchService>,
}

impl Client {
    /// Connects every flow to the server at `target`, within `timeout` in all.
    ///
    /// Sockets belong to the calling thread's network namespace: they are made on this thread, or (`tcp-crr`) on
    /// threads that it starts. Nothing is sent but the handshakes.
    ///
    /// # Errors
    /// Invalid options; what this host lacks; a flow that does not connect in time, or that the server refuses.
    pub fn connect(
        target: impl Into<Address>,
        options: &Options,
        timeout: Duration,
    ) -> Result<Self, TrafficError> {
        let engine = Engine::new(options, End::Client)?;
        // The time-out begins after `Engine::new`: virtual machines, which that starts, have time-outs of their own.
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

    /// Starts all flows together. Returns the time of the start.
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

    /// The shared state of this end.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &crate::shared::Shared {
        &self.engine.shared
    }

    /// Waits of each thread in its ring.
    #[cfg(test)]
    pub(crate) fn rings(&self) -> Vec<u64> {
        self.engine.rings()
    }

    /// The options that the client was opened with.
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

    /// Checks that not every connection is stuck in a PMTU black hole.
    ///
    /// # Errors
    /// [`TrafficError::SegmentsLost`] where no connection had a full segment acknowledged, and the kernel will not try
    /// smaller segments.
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

    /// Waits, at most `timeout`, until its limit has ended the load; [`Self::stop`] is still to be called.
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
}
