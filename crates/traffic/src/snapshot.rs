//! The state of one end at an instant.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use socket2::Socket as RawSocket;
use wirecost_model::end_window::{Counts, Io};
use wirecost_model::latency::Latency;
use wirecost_sys::priority::Hurry;
use wirecost_sys::socket::{TcpInfo, congestion, tcp_info};
use wirecost_sys::thread::{ThreadTimes, times};

use crate::error::TrafficError;
use crate::flow::Flow;
use crate::latency::LatencyBook;
use crate::load::{Load, Seat};

/// One end of a load at an instant. What happened between two of them is a [`crate::Window`].
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When the counters were read; what the kernel says of each socket was read right after.
    pub at: Instant,
    /// When this end's flows began, where it says that and they have.
    pub started: Option<Instant>,
    /// By flow index.
    pub flows: Vec<FlowSnapshot>,
    /// Of every transaction so far, at the client. Read a moment later than the flows' counts, while threads go on.
    pub latency: Latency,
    /// How late every request with a rate was sent so far, at the client.
    pub lateness: Latency,
    /// At a client with a rate.
    pub asked: Option<Asked>,
    /// How this end reads and writes.
    pub io: Io,
    /// The load's own threads.
    pub threads: Vec<ThreadSnapshot>,
    /// Connections and datagrams that were none of this load's, and were dropped.
    pub strays: u32,
}

/// Messages of all flows that a rate has asked for by an instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asked {
    /// That were due.
    pub due: f64,
    /// That were handed to the kernel.
    pub sent: f64,
}

/// One flow at an instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSnapshot {
    /// Bytes of messages, both ways, since the start.
    pub bytes: u64,
    /// What it counted.
    pub counts: Counts,
    /// Of a flow that is one TCP connection.
    pub tcp: Option<TcpState>,
    /// When it was over, where it was.
    pub ended: Option<Instant>,
}

/// What the kernel says of a TCP connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpState {
    /// Counters and state.
    pub info: TcpInfo,
    /// Congestion control in use.
    pub congestion: String,
    /// `SO_SNDBUF` in bytes as the kernel counts: twice what is asked for.
    pub sndbuf: u32,
    /// `SO_RCVBUF` in bytes as the kernel counts: twice what is asked for.
    pub rcvbuf: u32,
}

/// One of the load's threads at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadSnapshot {
    /// Its times, or those when it was through; `None` where it has not begun.
    pub times: Option<ThreadTimes>,
    /// Looks at its flows, where it spins; else 0.
    pub looks: u64,
    /// Of these, the ones that found nothing to do.
    pub idle: u64,
}

impl Snapshot {
    /// Bytes of messages of all flows, both ways.
    pub fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).sum()
    }

    /// The time from `before` to this one.
    pub fn since(&self, before: &Self) -> Duration {
        self.at.saturating_duration_since(before.at)
    }

    /// # Errors
    /// A flow that broke, or that is not there.
    pub(crate) fn take(load: &Load) -> Result<Self, TrafficError> {
        let flows = &load.flows;
        flows.check()?;
        let connected = flows.here().count() as u32;
        if connected < flows.count() {
            return Err(TrafficError::NotConnected {
                connected,
                wanted: flows.count(),
                strays: flows.strays(),
                after: Duration::ZERO,
            });
        }
        // Beside a thousand threads that always have something to do, looking at each would take its turns for minutes.
        let _hurry = Hurry::begin();
        let at = Instant::now();
        let counts: Vec<Counts> = flows.all().iter().map(count).collect();
        let asked = load.timetable.map(|table| {
            let sum = |figure: fn(&Counts) -> u64| counts.iter().map(figure).sum();
            Asked {
                due: load.flows.started_at().map_or(0.0, |started| {
                    table.due(at.saturating_duration_since(started))
                }),
                sent: table.sent(sum(|one| one.sent_bytes), sum(|one| one.sent)),
            }
        });
        let books = |of: fn(&Seat) -> Option<&LatencyBook>| {
            let mut all = Latency::default();
            for book in load.seats.iter().filter_map(of) {
                all.merge(&book.snapshot());
            }
            all
        };
        let latency = books(|seat| seat.latency.as_ref());
        let lateness = books(|seat| seat.lateness.as_ref());
        let threads = load.seats.iter().map(look_at_thread).collect();
        let tcp = !load.options.workload.is_udp();
        let flows = flows
            .here()
            .zip(counts)
            .map(|((index, flow), counts)| {
                Ok(FlowSnapshot {
                    bytes: counts.sent_bytes + counts.read_bytes,
                    counts,
                    tcp: flow
                        .socket
                        .get()
                        .filter(|_| tcp)
                        .map(|socket| look_at_socket(index, socket))
                        .transpose()?,
                    ended: flow.ended_at.get().copied(),
                })
            })
            .collect::<Result<_, TrafficError>>()?;
        Ok(Self {
            at,
            started: load.flows.started_at(),
            flows,
            latency,
            lateness,
            asked,
            io: load.io(),
            threads,
            strays: load.flows.strays(),
        })
    }
}

fn count(flow: &Flow) -> Counts {
    let (out, incoming) = (&flow.out, &flow.incoming);
    Counts {
        sent_bytes: out.bytes.get(),
        read_bytes: incoming.bytes.get(),
        sent: out.messages.get(),
        received: incoming.messages.get(),
        expected: incoming.expected.get(),
        duplicated: incoming.duplicated.get(),
        reordered: incoming.reordered.get(),
        too_old: incoming.too_old.get(),
        jitter_ns: incoming.jitter_ns.get(),
        timeouts: incoming.timeouts.get(),
        late: incoming.late.get(),
        zero_copy: out.zero_copy.get(),
        zero_copy_completed: out.completed.get(),
        zero_copy_copied: out.copied.get(),
        zero_copy_fallbacks: out.fallbacks.get(),
    }
}

fn look_at_thread(seat: &Seat) -> ThreadSnapshot {
    let tid = seat.tid.load(Relaxed);
    ThreadSnapshot {
        times: match seat.left.get() {
            Some(left) => Some(*left),
            None if tid == 0 => None,
            // It may be gone by now, and has then left its times.
            None => times(tid).ok().or_else(|| seat.left.get().copied()),
        },
        looks: seat.looks.get(),
        idle: seat.idle.get(),
    }
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
