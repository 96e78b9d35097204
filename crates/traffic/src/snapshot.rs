//! The counters of one end at an instant.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use socket2::Socket as RawSocket;
use wirecost_model::end_window::{Counts, Io};
use wirecost_model::latency::Latency;
use wirecost_model::load::MoveEngine;
use wirecost_model::machine_move::MachineMove;
use wirecost_model::path_access::PathAccess;
use wirecost_sys::priority::RaisedPriority;
use wirecost_sys::socket::{TcpInfo, congestion, tcp_info};
use wirecost_sys::thread::{ThreadTimes, times};

use crate::error::TrafficError;
use crate::flow::Flow;
use crate::latency::LatencyRecorder;
use crate::shared::{Shared, ThreadState};

/// One end of a load at an instant. Two of them make a [`crate::window()`].
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When the flows' counters were read; socket states were read right after.
    pub at: Instant,
    /// When sending started; `None` before the start, and at a server that does not send a stream.
    pub started: Option<Instant>,
    /// Each flow, by index.
    pub flows: Vec<FlowSnapshot>,
    /// Latencies of all transactions so far, at the client. Read a moment after the flows' counters.
    pub latency: Latency,
    /// Latencies of all flushes so far, at a client of storage.
    pub flushes: Latency,
    /// Lateness of all requests with a rate so far, at the client.
    pub lateness: Latency,
    /// Messages due and sent so far, at a client with a rate.
    pub scheduled: Option<ScheduleTotals>,
    /// How this end reads and writes.
    pub io: Io,
    /// The load's own threads.
    pub threads: Vec<ThreadSnapshot>,
    /// Connections and datagrams dropped because they did not belong to this load.
    pub strays: u32,
    /// At a migration's client: the machines whose move has ended.
    pub moves: Vec<MachineMove>,
    /// At a client of storage at a path: how the path is read and written.
    pub path: Option<PathAccess>,
}

/// Messages due and sent by an instant, all flows of a client with a rate. A TCP stream counts parts of messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScheduleTotals {
    /// Messages due.
    pub due: f64,
    /// Messages handed to the kernel.
    pub sent: f64,
}

/// One flow at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSnapshot {
    /// All counters since the start.
    pub counts: Counts,
    /// State of the connection, for a flow that is one TCP connection.
    pub tcp: Option<TcpState>,
    /// When the flow ended; `None`: it has not.
    pub ended: Option<Instant>,
}

/// The state of a TCP connection in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpState {
    /// `TCP_INFO`.
    pub info: TcpInfo,
    /// Congestion control in use.
    pub congestion: String,
    /// `SO_SNDBUF` as the kernel reports it, twice what was set, bytes.
    pub sndbuf: u32,
    /// `SO_RCVBUF` as the kernel reports it, twice what was set, bytes.
    pub rcvbuf: u32,
}

/// One of the load's threads at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSnapshot {
    /// CPU times of the thread, the final ones if it has ended; `None` if it has not started.
    pub times: Option<ThreadTimes>,
    /// Polls of its flows, if the thread spins; else 0.
    pub polls: u64,
    /// Polls that found nothing to do.
    pub idle_polls: u64,
}

impl Snapshot {
    /// Bytes of messages of all flows, both ways.
    pub fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.counts.bytes()).sum()
    }

    /// The time from `before` to this one.
    pub fn since(&self, before: &Self) -> Duration {
        self.at.saturating_duration_since(before.at)
    }

    /// Reads the counters and states of all flows and threads.
    ///
    /// # Errors
    /// A flow that failed, or is not connected.
    pub(crate) fn take(shared: &Shared, io: Io) -> Result<Self, TrafficError> {
        let flows = &shared.flows;
        flows.check()?;
        let connected = flows.connected().count() as u32;
        if connected < flows.count() {
            return Err(TrafficError::NotConnected {
                connected,
                wanted: flows.count(),
                strays: flows.strays(),
                after: Duration::ZERO,
            });
        }
        // With a thousand busy threads, reading the state of each would take minutes at normal priority.
        let _hurry = RaisedPriority::begin();
        let at = Instant::now();
        let counts: Vec<Counts> = flows.all().iter().map(Flow::counts).collect();
        let scheduled = shared.rate_schedule.map(|schedule| {
            let all: Counts = counts.iter().copied().sum();
            ScheduleTotals {
                due: schedule.due(&shared.flows, at, shared.ns(at)),
                sent: schedule.sent(all.sent_bytes, all.sent),
            }
        });
        let books = |of: fn(&ThreadState) -> Option<&LatencyRecorder>| {
            let mut all = Latency::default();
            for book in shared.threads.iter().filter_map(of) {
                all.merge(&book.snapshot());
            }
            all
        };
        let latency = books(|thread| thread.latency.as_ref());
        let lateness = books(|thread| thread.lateness.as_ref());
        let flushes = books(|thread| thread.flushes.as_ref());
        let threads = shared.threads.iter().map(look_at_thread).collect();
        // The flows of virtual machines only carry messages between the two ends: QEMU has connections of its own.
        let virtual_machines = shared
            .options
            .load
            .migration
            .is_some_and(|migration| migration.engine == MoveEngine::Qemu);
        let tcp = !shared.options.load.workload.is_udp() && !virtual_machines;
        let flows = flows
            .connected()
            .zip(counts)
            .map(|((index, flow), counts)| {
                Ok(FlowSnapshot {
                    counts,
                    tcp: flow
                        .socket
                        .get()
                        .filter(|socket| tcp && !is_unix(socket))
                        .map(|socket| look_at_socket(index, socket))
                        .transpose()?,
                    ended: flow.ended_at.get().copied(),
                })
            })
            .collect::<Result<_, TrafficError>>()?;
        Ok(Self {
            at,
            started: shared.flows.started_at(),
            flows,
            latency,
            flushes,
            lateness,
            scheduled,
            io,
            threads,
            strays: shared.flows.strays(),
            moves: shared.machine_gaps.complete(
                shared
                    .sources
                    .moves()
                    .chain(shared.qemu_machines.moves())
                    .collect(),
            ),
            path: shared.path.get().map(|open| open.access()),
        })
    }
}

fn look_at_thread(thread: &ThreadState) -> ThreadSnapshot {
    let tid = thread.tid.load(Relaxed);
    ThreadSnapshot {
        times: match thread.final_times.get() {
            Some(times) => Some(*times),
            None if tid == 0 => None,
            // The thread may just have ended, and then has stored its times.
            None => times(tid)
                .ok()
                .or_else(|| thread.final_times.get().copied()),
        },
        polls: thread.polls.get(),
        idle_polls: thread.idle_polls.get(),
    }
}

/// Whether a socket is a Unix socket, which has no TCP state.
fn is_unix(socket: &RawSocket) -> bool {
    socket.local_addr().is_ok_and(|address| address.is_unix())
}

fn look_at_socket(index: u32, socket: &RawSocket) -> Result<TcpState, TrafficError> {
    let failed = |what| {
        move |source| TrafficError::Snapshot {
            flow: index,
            what,
            source,
        }
    };
    Ok(TcpState {
        info: tcp_info(socket).map_err(failed("TCP_INFO"))?,
        congestion: congestion(socket).map_err(failed("TCP_CONGESTION"))?,
        sndbuf: socket.send_buffer_size().map_err(failed("SO_SNDBUF"))? as u32,
        rcvbuf: socket.recv_buffer_size().map_err(failed("SO_RCVBUF"))? as u32,
    })
}
