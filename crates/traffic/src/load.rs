//! What the threads of one end share with its handle.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use wirecost_model::end_window::{End, Io};
use wirecost_sys::epoll::Wake;
use wirecost_sys::thread::ThreadTimes;

use crate::datagram::tag;
use crate::error::TrafficError;
use crate::flow::{Counter, Flows};
use crate::latency::LatencyBook;
use crate::machine::write_size;
use crate::options::{Limit, Options};
use crate::table::Table;
use crate::timetable::Timetable;
use crate::worker::Drive;

/// What messages hold; no device on the way may profit from zeros.
const FILL: u8 = 0xA5;
/// Several small messages are sent at once where so many are due, up to this many bytes.
const LARGEST_BURST: usize = 64 << 10;

/// One end of a load.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) options: Options,
    pub(crate) table: &'static Table,
    pub(crate) flows: Flows,
    pub(crate) seats: Box<[Seat]>,
    /// What is sent over TCP: only read, and every page of it there before the start.
    pub(crate) message: Box<[u8]>,
    /// Of every datagram.
    pub(crate) tag: u32,
    /// How each of the threads drives its machines.
    pub(crate) drive: Drive,
    /// Which end it is.
    pub(crate) end: End,
    /// Of a client with a rate.
    pub(crate) timetable: Option<Timetable>,
    /// Whether what is sent now belongs to what is counted.
    counted: AtomicBool,
    budget: Option<AtomicU64>,
    epoch: Instant,
}

/// What one thread counts besides its flows.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Seat {
    /// The thread's id, 0 before it runs.
    pub(crate) tid: AtomicU32,
    /// The thread's times when it was through; nobody can read them of one that is gone.
    pub(crate) left: OnceLock<ThreadTimes>,
    /// Where transactions are timed.
    pub(crate) latency: Option<LatencyBook>,
    /// How late requests with a rate are sent.
    pub(crate) lateness: Option<LatencyBook>,
    /// Looks at a flow, where the thread spins.
    pub(crate) looks: Counter,
    /// Of these, the ones that found nothing to do.
    pub(crate) idle: Counter,
    /// Whether the thread has a ring.
    pub(crate) has_ring: AtomicBool,
    /// Waits in it.
    pub(crate) rings: Counter,
}

impl Load {
    /// One end of a load with so many threads.
    pub(crate) fn new(
        options: &Options,
        threads: u32,
        end: End,
    ) -> Result<Arc<Self>, TrafficError> {
        let table = Table::of(options.workload);
        let wakes = (0..threads)
            .map(|_| Wake::new())
            .collect::<Result<_, _>>()
            .map_err(|source| TrafficError::Socket {
                what: "making a thread's wake",
                source,
            })?;
        let timing = end == End::Client && options.workload.is_request_response();
        let timetable = Timetable::of(options).filter(|_| end == End::Client);
        let seat = |_| Seat {
            tid: AtomicU32::new(0),
            left: OnceLock::new(),
            latency: timing.then(LatencyBook::new),
            lateness: (timing && timetable.is_some()).then(LatencyBook::new),
            looks: Counter::default(),
            idle: Counter::default(),
            has_ring: AtomicBool::new(false),
            rings: Counter::default(),
        };
        let largest = options.request.max(options.response) as usize;
        let burst = largest * options.depth as usize;
        let message = largest
            .max(burst.min(LARGEST_BURST))
            .max(write_size::largest(options));
        let drive = Drive::of(
            options.waiting,
            threads == options.streams * table.halves && (table.may_block)(options),
        );
        Ok(Arc::new(Self {
            table,
            flows: Flows::new(options.streams, table.halves, wakes),
            seats: (0..threads).map(seat).collect(),
            message: vec![FILL; message].into_boxed_slice(),
            tag: tag(&options.secret),
            drive,
            end,
            timetable,
            budget: match options.limit {
                // As many datagrams as hold so many bytes.
                Some(Limit::Bytes(amount)) if options.workload.is_udp() => {
                    Some(AtomicU64::new(amount.div_ceil(u64::from(options.request))))
                }
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

    /// Nanoseconds by this end's clock.
    pub(crate) fn now(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// When sending began, by the same clock.
    pub(crate) fn began(&self) -> Option<u64> {
        let started = self.flows.started_at()?;
        Some(started.saturating_duration_since(self.epoch).as_nanos() as u64)
    }

    /// How this end reads and writes.
    pub(crate) fn io(&self) -> Io {
        let rings = self.seats.iter().any(|seat| seat.has_ring.load(Relaxed));
        crate::io::io(self, self.end, rings)
    }

    /// Whether a datagram that is sent now says that it is counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.counted.load(Relaxed)
    }

    pub(crate) fn set_counted(&self, counted: bool) {
        self.counted.store(counted, Relaxed);
    }

    /// Takes up to `wanted` bytes, transactions or datagrams from what the load is limited to. Less than wanted: that was all.
    pub(crate) fn take(&self, wanted: u64) -> u64 {
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

    /// Gives back what was taken and not used.
    pub(crate) fn give_back(&self, unused: u64) {
        if let Some(budget) = &self.budget {
            budget.fetch_add(unused, Relaxed);
        }
    }
}
