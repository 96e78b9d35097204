//! The end that opens the flows, starts them, and ends them.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wirecost_model::end_window::End as Which;
use wirecost_sys::socket::{set_max_pacing_rate, tcp_info};

use crate::closing::await_stragglers;
use crate::error::TrafficError;
use crate::flow::{End, Finished, Flow, FlowEnd};
use crate::load::Load;
use crate::machine::{LOOK, Machine};
use crate::opening::open_all;
use crate::options::{Limit, Options, Workload};
use crate::preflight::raise_descriptors;
use crate::snapshot::Snapshot;
use crate::table::{ClientFlow, Opening, Table};
use crate::worker::{Drive, spawn};

/// What the kernel's clock of acknowledgements may be behind.
const JIFFIES: Duration = Duration::from_millis(20);
/// No path takes so long for an acknowledgement.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);

/// The end that asks or sends: connected, then started, then stopped.
///
/// Dropping it gives up every flow at once.
#[derive(Debug)]
pub struct Client {
    load: Arc<Load>,
    flows: Vec<ClientFlow>,
    threads: Vec<JoinHandle<()>>,
}

impl Client {
    /// Opens every flow to the server at `target` and has each one taken there, within `timeout` in all.
    ///
    /// Sockets are made on the calling thread, in its network namespace, save those of `tcp-crr`, whose threads are
    /// started here and so are in it too. Nothing is sent but the handshakes.
    pub fn connect(
        target: SocketAddr,
        options: &Options,
        timeout: Duration,
    ) -> Result<Self, TrafficError> {
        options.validate()?;
        raise_descriptors(options)?;
        let table = Table::of(options.workload);
        let flows = open_all(table.opening, target, options, Instant::now() + timeout)?;
        let load = Load::new(options, options.threads(), Which::Client)?;
        let mut client = Self {
            load,
            flows,
            threads: Vec::new(),
        };
        client.employ().map(|()| client)
    }

    /// Gives every machine to a thread.
    fn employ(&mut self) -> Result<(), TrafficError> {
        let load = &self.load;
        let mut shares: Vec<Vec<Box<dyn Machine>>> =
            load.seats.iter().map(|_| Vec::new()).collect();
        let mut next = 0;
        for flow in &self.flows {
            let book = &load.flows.all()[flow.index as usize];
            let machines = (load.table.client)(load, flow.clone())
                .and_then(|machines| {
                    if load.table.opening != Opening::Connections {
                        let blocks = load.drive == Drive::Blocking;
                        flow.socket.set_nonblocking(!blocks)?;
                        if blocks && load.options.workload == Workload::TcpRr {
                            // A server that takes a request and never answers is to be noticed.
                            flow.socket.set_read_timeout(Some(LOOK))?;
                        }
                        let _ = book.socket.set(Arc::clone(&flow.socket));
                    }
                    Ok(machines)
                })
                .map_err(|source| TrafficError::Socket {
                    what: "setting a flow up",
                    source,
                })?;
            load.flows.arrive(book);
            for machine in machines {
                let seats = shares.len();
                shares[next % seats].push(machine);
                next += 1;
            }
        }
        for (seat, share) in shares.into_iter().enumerate() {
            self.threads
                .push(spawn(load, seat, share, load.drive, true)?);
        }
        Ok(())
    }

    /// Has all flows begin together; returns when that was.
    ///
    /// # Errors
    /// A flow that broke since it was opened.
    pub fn start(&self) -> Result<Instant, TrafficError> {
        let flows = &self.load.flows;
        for (flow, _, socket) in flows.open() {
            if let Some(source) = socket.take_error().unwrap_or_else(Some) {
                return Err(TrafficError::PeerVanished {
                    flow,
                    bytes: 0,
                    source,
                });
            }
        }
        let at = Instant::now();
        flows.set_started();
        Ok(at)
    }

    /// How often each thread waited in a ring.
    #[cfg(test)]
    pub(crate) fn rings(&self) -> Vec<u64> {
        let seats = self.load.seats.iter();
        seats.map(|seat| seat.rings.get()).collect()
    }

    /// What it was opened with.
    pub fn options(&self) -> &Options {
        &self.load.options
    }

    /// Counters, latencies, threads and socket states now.
    ///
    /// # Errors
    /// A flow that broke, by name.
    pub fn snapshot(&self) -> Result<Snapshot, TrafficError> {
        Snapshot::take(&self.load)
    }

    /// Whether datagrams of a stream that are sent from now on are counted: they say so themselves, so that how many of
    /// them were sent and how many came ([`crate::FlowEnd::counted`]) are of the same ones, however long they are under
    /// way.
    pub fn set_counted(&self, counted: bool) {
        self.load.set_counted(counted);
    }

    /// Bytes of messages read, and messages received, so far, all flows (`read_bytes` and `received` of
    /// [`wirecost_model::end_window::Counts`]).
    pub fn received(&self) -> (u64, u64) {
        self.load.flows.received()
    }

    /// Bytes of messages handed to the kernel or read so far, all flows.
    pub fn bytes(&self) -> u64 {
        self.load.flows.bytes()
    }

    /// Waits until the load's own limit ends it, or for `timeout`; [`Self::stop`] comes after it all the same.
    ///
    /// # Errors
    /// A flow that broke; [`TrafficError::NotOver`] where the limit was not reached in time, or there is none.
    pub fn wait_over(&self, timeout: Duration) -> Result<(), TrafficError> {
        let flows = &self.load.flows;
        let broken = || {
            flows
                .all()
                .iter()
                .any(|flow| matches!(flow.end.get(), Some(End::Failed(_))))
        };
        let over = if let Some(Limit::Time(time)) = self.load.options.limit {
            flows.wait_until(Some(Instant::now() + time.min(timeout)), broken);
            time <= timeout
        } else {
            flows.wait_until(Some(Instant::now() + timeout), || {
                broken() || flows.all_over()
            })
        };
        flows.check()?;
        if over {
            Ok(())
        } else {
            Err(TrafficError::NotOver { after: timeout })
        }
    }

    /// Ends all flows together: nothing more is sent or asked; what is under way is waited for, at most `timeout`,
    /// until the server has said that it read all of it. What was not by then is given up.
    ///
    /// # Errors
    /// A flow that broke, or, by the first one's name, a peer that has acknowledged nothing of any since this began: one
    /// flow alone may be waiting to send again what a full path has lost. Every thread is joined all the same.
    pub fn stop(mut self, timeout: Duration) -> Result<Finished, TrafficError> {
        let began = Instant::now();
        let deadline = began + timeout;
        let before: Vec<u64> = self.load.flows.all().iter().map(Flow::bytes).collect();
        self.end_threads(Some(deadline));
        let flows = &self.load.flows;
        flows.check()?;
        let mut ends = Vec::with_capacity(self.flows.len());
        let (mut alive, mut silent) = (false, None);
        for flow in &self.flows {
            let index = flow.index;
            let book = &flows.all()[index as usize];
            let orderly = matches!(book.end.get(), Some(End::Orderly));
            let vanished = |source| TrafficError::PeerVanished {
                flow: index,
                bytes: book.bytes(),
                source,
            };
            let drained = orderly
                && (self.load.table.closing)(&self.load, flow, deadline).map_err(vanished)?;
            let moved = book.bytes() != before[index as usize];
            let sign = if drained {
                Sign::Alive
            } else {
                self.sign(flow, moved, began.elapsed())
            };
            match sign {
                Sign::Alive => alive = true,
                Sign::Silent(error) => _ = silent.get_or_insert(vanished(error)),
                Sign::Neither => {}
            }
            ends.push(FlowEnd {
                bytes: book.bytes(),
                drained,
                counted: book.out.counted.get(),
            });
        }
        if let Some(vanished) = silent.filter(|_| !alive) {
            return Err(vanished);
        }
        if self.load.options.workload == Workload::UdpStream {
            await_stragglers(&self.load, &self.flows, deadline);
        }
        Ok(Finished {
            bytes: flows.bytes(),
            flows: ends,
            strays: flows.strays(),
        })
    }

    /// What a flow that did not end in order in all this time says of its peer. A slow path that has much queued takes its
    /// time too, but acknowledges.
    fn sign(&self, flow: &ClientFlow, moved: bool, time: Duration) -> Sign {
        let silent = |silence: Duration| {
            let words = format!("nothing came from it for {:.1} s", silence.as_secs_f64());
            Sign::Silent(io::Error::new(io::ErrorKind::TimedOut, words))
        };
        if time < LONGEST_ROUND_TRIP {
            return Sign::Neither;
        }
        match self.load.options.workload {
            Workload::UdpStream => Sign::Neither,
            // Nobody knows the connection of the transaction under way, or there is none.
            Workload::TcpCrr | Workload::UdpRr if moved => Sign::Alive,
            Workload::TcpCrr | Workload::UdpRr => silent(time),
            Workload::TcpStream | Workload::TcpBidirectional | Workload::TcpRr => {
                let Ok(info) = tcp_info(&*flow.socket) else {
                    return Sign::Neither;
                };
                let acknowledged = Duration::from_millis(info.last_ack_recv.into());
                if acknowledged + JIFFIES < time {
                    Sign::Alive
                } else if info.unacked > 0 {
                    silent(acknowledged)
                } else {
                    Sign::Neither
                }
            }
        }
    }

    /// Ends every thread and joins it: in order until `deadline`, by force then, or at once where there is none.
    fn end_threads(&mut self, deadline: Option<Instant>) {
        let flows = &self.load.flows;
        flows.set_stopping();
        if self.load.table.shut_to_stop && deadline.is_some() {
            // Wakes a blocked send(2), which returns what it had queued so far: the counters stay exact, and the end
            // of the stream goes out behind the last byte.
            // What still waits for its time need not any more, unless it is part of what is counted.
            let options = &self.load.options;
            let lifts = options.rate.is_some() && options.limit.is_none();
            for (_, _, socket) in flows.open() {
                if lifts {
                    let _ = set_max_pacing_rate(socket, u64::MAX);
                }
                let _: io::Result<()> = socket.shutdown(Shutdown::Write);
            }
        }
        if deadline.is_none_or(|deadline| !flows.wait_until(Some(deadline), || flows.all_over())) {
            flows.cut();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What a flow's end says of its peer.
enum Sign {
    Alive,
    Silent(io::Error),
    Neither,
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end_threads(None);
        }
    }
}
