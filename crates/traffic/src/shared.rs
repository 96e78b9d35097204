//! State that the threads of one end share with its handle.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use wirecost_model::end_window::End;
use wirecost_sys::epoll::Waker;
use wirecost_sys::thread::ThreadTimes;

use crate::buffers::BufferSizes;
use crate::counter::Counter;
use crate::datagram::tag;
use crate::error::TrafficError;
use crate::flow::Flows;
use crate::latency::LatencyRecorder;
use crate::migration::destination_machine::DestinationMachine;
use crate::migration::liveness::GuestLiveness;
use crate::migration::machine_gaps::MachineGaps;
use crate::migration::qemu::QemuMachines;
use crate::migration::source::{Source, Sources};
use crate::options::{Limit, Options};
use crate::rate_schedule::RateSchedule;
use crate::storage::content;
use crate::storage::path::OpenPath;
use crate::storage::target::Target;
use crate::write_size;

/// Content of messages: not zero, which a device on the path might compress.
const FILL: u8 = 0xA5;
/// Largest write of several small messages together, bytes.
const LARGEST_BURST: usize = 64 << 10;

/// The shared state of one end of a load.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) buffer_sizes: BufferSizes,
    pub(crate) flows: Flows,
    pub(crate) threads: Box<[ThreadState]>,
    /// The data sent over TCP, read-only; every page is resident before the start.
    pub(crate) message: Box<[u8]>,
    /// The export, at a storage server.
    pub(crate) target: Option<Target>,
    /// The file or device, at a client of storage at a path, once it is open.
    pub(crate) path: OnceLock<Arc<OpenPath>>,
    /// The machines at their source, at a migration's client.
    pub(crate) sources: Sources,
    /// The machines at their destination, at a migration's server.
    pub(crate) destination_machines: Box<[DestinationMachine]>,
    /// The virtual machines of a migration by QEMU, at either end.
    pub(crate) qemu_machines: QemuMachines,
    /// What the observer saw, at the client of a watched migration.
    pub(crate) machine_gaps: MachineGaps,
    /// Tag of every datagram ([`crate::datagram::tag`]).
    pub(crate) tag: u32,
    /// Messages due by the load's rate; `None` at a server, and without a rate.
    pub(crate) rate_schedule: Option<RateSchedule>,
    /// Whether datagrams sent now are marked as counted.
    counted: AtomicBool,
    /// Bytes, transactions or datagrams that are left of the load's limit; `None`: it has no such limit.
    budget: Option<AtomicU64>,
    /// Zero of [`Self::now`].
    epoch: Instant,
}

/// The state of one thread, besides the counters of its flows.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ThreadState {
    /// Thread id, 0 before it runs.
    pub(crate) tid: AtomicU32,
    /// CPU times when the thread ended: those of an ended thread cannot be read.
    pub(crate) final_times: OnceLock<ThreadTimes>,
    /// Latencies of transactions, at a request/response client.
    pub(crate) latency: Option<LatencyRecorder>,
    /// Latencies of flushes, at a storage client that flushes.
    pub(crate) flushes: Option<LatencyRecorder>,
    /// How late requests were sent, at a client with a rate.
    pub(crate) lateness: Option<LatencyRecorder>,
    /// Polls of its flows, where the thread spins.
    pub(crate) polls: Counter,
    /// Polls that found nothing to do.
    pub(crate) idle_polls: Counter,
    /// Whether the thread uses an io_uring.
    pub(crate) has_ring: AtomicBool,
    /// Waits in the io_uring.
    pub(crate) ring_waits: Counter,
}

impl Shared {
    /// The state of one end of a load with `threads` threads and `tasks_per_flow` tasks for each flow.
    pub(crate) fn new(
        options: &Options,
        end: End,
        threads: u32,
        tasks_per_flow: u32,
        buffer_sizes: BufferSizes,
    ) -> Result<Arc<Self>, TrafficError> {
        let wakes = (0..threads)
            .map(|_| Waker::new())
            .collect::<Result<_, _>>()
            .map_err(|source| TrafficError::Socket {
                what: "making a thread's wake",
                source,
            })?;
        let timing = end == End::Client && options.load.workload.is_request_response();
        let flushing = timing
            && options
                .load
                .storage
                .is_some_and(|storage| storage.flush_every > 0);
        let rate_schedule = RateSchedule::of(options).filter(|_| end == End::Client);
        let thread = |_| ThreadState {
            tid: AtomicU32::new(0),
            final_times: OnceLock::new(),
            latency: timing.then(LatencyRecorder::new),
            flushes: flushing.then(LatencyRecorder::new),
            lateness: (timing && rate_schedule.is_some()).then(LatencyRecorder::new),
            polls: Counter::default(),
            idle_polls: Counter::default(),
            has_ring: AtomicBool::new(false),
            ring_waits: Counter::default(),
        };
        let storage = options.load.storage.filter(|_| end == End::Server);
        let memory = |source| TrafficError::Socket {
            what: "taking the load's memory",
            source,
        };
        let largest = options.load.request.max(options.load.response) as usize;
        let burst = largest * options.load.depth as usize;
        let message = largest
            .max(burst.min(LARGEST_BURST))
            .max(write_size::largest(options));
        Ok(Arc::new(Self {
            buffer_sizes,
            flows: Flows::new(options.load.connections(), tasks_per_flow, wakes),
            threads: (0..threads).map(thread).collect(),
            message: if options.load.workload.is_storage() {
                content::body(options)
            } else {
                vec![FILL; message].into_boxed_slice()
            },
            target: storage
                .map(|storage| Target::of_load(&storage, options))
                .transpose()
                .map_err(memory)?,
            path: OnceLock::new(),
            sources: if end == End::Client {
                Sources::of_load(options).map_err(memory)?
            } else {
                Sources::default()
            },
            destination_machines: if end == End::Server {
                DestinationMachine::of_load(options).map_err(memory)?
            } else {
                Box::default()
            },
            qemu_machines: QemuMachines::of_load(options, end)?,
            machine_gaps: MachineGaps::of_load(options),
            tag: tag(&options.secret),
            rate_schedule,
            budget: match options.load.limit {
                // The fewest datagrams that carry so many bytes.
                Some(Limit::Bytes(amount)) if options.load.workload.is_udp() => Some(
                    AtomicU64::new(amount.div_ceil(u64::from(options.load.request))),
                ),
                Some(Limit::Bytes(amount) | Limit::Transactions(amount)) => {
                    Some(AtomicU64::new(amount))
                }
                Some(Limit::Time(_)) | None => None,
            },
            counted: AtomicBool::new(false),
            epoch: Instant::now(),
            options: options.clone(),
        }))
    }

    /// Nanoseconds since this value was made: the clock of this end.
    pub(crate) fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// An instant on the clock of [`Self::now`], nanoseconds; 0 before its zero.
    pub(crate) fn ns(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.epoch).as_nanos() as u64
    }

    /// When sending started, on the clock of [`Self::now`], nanoseconds.
    pub(crate) fn began(&self) -> Option<u64> {
        self.flows.started_at().map(|started| self.ns(started))
    }

    /// Whether a datagram sent now is marked as counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted.load(Relaxed)
    }

    pub(crate) fn set_counted(&self, counted: bool) {
        self.counted.store(counted, Relaxed);
    }

    /// Tag at the beginning of an observer's requests.
    pub(crate) fn watch_tag(&self) -> u64 {
        content::mix(content::seed(&self.options))
    }

    /// How it is known that a machine runs at this end; `None`: it does not run here.
    pub(crate) fn guest_liveness(&self, end: End, machine: u32) -> Option<GuestLiveness> {
        if let Some(guest_liveness) = self.qemu_machines.guest_liveness(machine) {
            return Some(guest_liveness);
        }
        let machine = machine as usize;
        let runs = match end {
            End::Client => self.sources.machines.get(machine).is_some_and(Source::runs),
            End::Server => self
                .destination_machines
                .get(machine)
                .is_some_and(DestinationMachine::runs),
        };
        runs.then_some(GuestLiveness::Runs)
    }

    /// Takes up to `wanted` bytes, transactions or datagrams of the load's limit. Returns how many; fewer than
    /// `wanted`: the limit is reached.
    pub(crate) fn take_budget(&self, wanted: u64) -> u64 {
        let Some(budget) = &self.budget else {
            return wanted;
        };
        let mut left = budget.load(Relaxed);
        loop {
            let taken = left.min(wanted);
            match budget.compare_exchange_weak(left, left - taken, Relaxed, Relaxed) {
                Ok(_) => return taken,
                Err(now) => left = now,
            }
        }
    }

    /// Gives back what [`Self::take_budget`] took and the caller did not use.
    pub(crate) fn return_budget(&self, unused: u64) {
        if let Some(budget) = &self.budget {
            budget.fetch_add(unused, Relaxed);
        }
    }
}
