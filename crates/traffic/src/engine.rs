//! One end of a load with the functions of its workload: held by clients, servers and acceptors.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

use wirecost_model::end_window::{End, Io, WaitMethod};

use crate::error::TrafficError;
use crate::migration::pages::{MAX_PAGES, PAGE};
use crate::migration::record::HEAD_BYTES;
use crate::ops::WorkloadOps;
use crate::options::{DISCARDED_AT_ONCE, Options, Receiving};
use crate::preflight::raise_descriptors;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::task::Task;
use crate::threads::threads;
use crate::worker::{ThreadMode, spawn};
use crate::{workload, write_size};

/// One end of a load.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ops: &'static WorkloadOps,
    /// How each thread runs its tasks.
    pub(crate) mode: ThreadMode,
    end: End,
}

impl Engine {
    /// Validates the options and sets up the state of one end.
    ///
    /// # Errors
    /// Invalid options; too few descriptors; no memory; virtual machines that do not start.
    pub(crate) fn new(options: &Options, end: End) -> Result<Self, TrafficError> {
        options.validate()?;
        raise_descriptors(options)?;
        let ops = workload::ops(&options.load);
        let threads = threads(options);
        // Threads that serve any flow have a single task each, which does the waiting.
        let has_own_threads = if end == End::Server && ops.is_served_by_threads() {
            true
        } else {
            threads == options.load.connections() * ops.tasks_per_flow && (ops.may_block)(options)
        };
        Ok(Self {
            shared: Shared::new(
                options,
                end,
                threads,
                ops.tasks_per_flow,
                (ops.buffers)(options),
            )?,
            ops,
            mode: ThreadMode::of(options.load.waiting, has_own_threads),
            end,
        })
    }

    /// Starts a thread of this end. A client's thread waits for [`crate::Client::start`].
    pub(crate) fn spawn(
        &self,
        thread: usize,
        tasks: Vec<Box<dyn Task>>,
    ) -> Result<JoinHandle<()>, TrafficError> {
        spawn(
            &self.shared,
            thread,
            tasks,
            self.mode,
            self.end == End::Client,
        )
    }

    /// Counters, latencies, threads and socket states now.
    ///
    /// # Errors
    /// A flow that failed, or is not connected.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, TrafficError> {
        Snapshot::take(&self.shared, self.io())
    }

    /// How often each thread waited in a ring.
    #[cfg(test)]
    pub(crate) fn rings(&self) -> Vec<u64> {
        let threads = self.shared.threads.iter();
        threads.map(|thread| thread.ring_waits.get()).collect()
    }

    /// How this end reads and writes. Depends on its options, and on whether the kernel gave its threads an io_uring.
    fn io(&self) -> Io {
        let rings = self
            .shared
            .threads
            .iter()
            .any(|thread| thread.has_ring.load(Relaxed));
        let waits = self.waits(rings);
        let (write, read) = self.io_sizes(rings);
        let bytes = |size: usize| u32::try_from(size).unwrap_or(u32::MAX);
        Io {
            write_bytes: bytes(write),
            read_bytes: bytes(read),
            waits,
        }
    }

    fn waits(&self, rings: bool) -> WaitMethod {
        let options = &self.shared.options;
        // A thread that accepts waits for the listener and for all of its connections at once.
        let accepts = self.end == End::Server
            && self.ops.is_served_by_threads()
            && !options.load.workload.is_udp();
        match self.mode {
            _ if rings => WaitMethod::Ring,
            ThreadMode::Spinning => WaitMethod::Spin,
            ThreadMode::Blocking if !accepts => WaitMethod::Socket,
            ThreadMode::Blocking | ThreadMode::Multiplexed => WaitMethod::Epoll,
        }
    }

    /// Upper bounds on one write and on one read, bytes; 0 where this end does not write, or read.
    fn io_sizes(&self, rings: bool) -> (usize, usize) {
        let options = &self.shared.options;
        let sizes = &self.shared.buffer_sizes;
        let is_client = self.end == End::Client;
        let workload = options.load.workload;
        if workload.is_storage() {
            let io = options.load.request as usize;
            return if is_client {
                (io, sizes.read.max(io))
            } else {
                (io, sizes.connection.max(io))
            };
        }
        if workload.is_migration() {
            let record = HEAD_BYTES + MAX_PAGES * PAGE;
            return if is_client { (record, 0) } else { (0, record) };
        }
        if workload.is_request_response() && !workload.is_udp() {
            let outstanding = |size: u32| size as usize * options.load.depth as usize;
            let (written, read) = if is_client {
                (options.load.request, outstanding(options.load.response))
            } else {
                (options.load.response, usize::MAX)
            };
            let room = if rings { sizes.ring } else { sizes.read };
            return (
                outstanding(written).min(self.shared.message.len()),
                read.min(room),
            );
        }
        let (write, read) = if workload.is_udp() {
            sizes.batches()
        } else {
            let read = match options.load.receiving {
                Receiving::Copy => options.read_at_once(),
                Receiving::Discard => DISCARDED_AT_ONCE,
            };
            (write_size::largest(options), read)
        };
        let both = self.ops.tasks_per_flow == 2 || workload.is_request_response();
        (
            if is_client || both { write } else { 0 },
            if is_client && !both { 0 } else { read },
        )
    }
}
