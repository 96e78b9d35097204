//! One sample of any generator, started and counted in the same way.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirecost_agent::protocol::Measured;
use wirecost_control::{CountingWindow, Lab};
use wirecost_sys::cores::line_round_trip_ns;

use crate::error::BenchError;
use crate::guest::Guest;
use crate::lab::CONGESTION;
use crate::load::EndCounters;
use crate::looper::Loopers;
use crate::peer::{Peer, Plan, Setting};
use crate::process::{FinishedProgram, PATIENCE, Process, with_descendants};
use crate::row::Load;
use crate::sample::Sample;
use crate::traffic_counter::{BEGINNING, TrafficCounter, WindowCounts};

/// Seconds that a generator goes on at least after the window: its start-up counts for some of its time.
const TAIL_S: f64 = 0.3;
/// The same where many connections begin: on slow cores their handshakes and first transactions alone take longer.
const TAIL_OF_MANY_S: f64 = 1.0;
/// Seconds before the window in which processes are looked through and everybody is told when it begins.
const LEAD_S: f64 = 0.06;
/// Bytes before the data of a read: a structured reply's header and its offset (NBD's doc/proto.md), which both speak.
const REPLY_HEADER: u32 = 28;
/// Payload after which a TCP load has begun: more than control connections and our 1024 flows' handshakes have.
const BEGUN_STREAM: u64 = 200_000;
/// Likewise of small responses, for each connection.
const BEGUN_EXCHANGE: u64 = 5_000;

/// Where samples are taken.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub(crate) lab: &'a mut Lab,
    /// A core of the sending host and one of the receiving.
    pub(crate) cores: [u32; 2],
    /// The sending guest and the receiving one.
    pub(crate) guests: [Guest; 2],
    /// In the guest whose counters are the yardstick.
    pub(crate) traffic_counter: TrafficCounter,
    /// On the cores of the sending host and of the receiving one, where they count what is used.
    pub(crate) loopers: Option<[Loopers; 2]>,
    pub(crate) warmup: f64,
    pub(crate) seconds: f64,
    pub(crate) scratch: &'a Path,
    pub(crate) interrupt: &'a AtomicBool,
}

impl Bench<'_> {
    /// What a generator is told, besides the load.
    pub(crate) fn setting(&self, load: Load, secret: [u8; 16]) -> Setting<'_> {
        let tail = if load.is_exchange() && load.flows() > 1 {
            TAIL_OF_MANY_S
        } else {
            TAIL_S
        };
        Setting {
            server: self.guests[1].address,
            seconds: (self.warmup + self.seconds + tail).ceil() as u32,
            congestion: CONGESTION,
            scratch: self.scratch,
            secret,
        }
    }

    /// Runs a generator once, by its plan.
    pub(crate) fn take(
        &mut self,
        peer: &dyn Peer,
        load: Load,
        plan: &Plan,
    ) -> Result<Sample, BenchError> {
        let name = peer.name();
        let before = self.apart()?;
        let start = |side: &str, guest: &Guest, words: &[String]| {
            let mut process = Process::start(&format!("{name} {side}"), guest.command(words))?;
            if !plan.takes_window {
                process.close_input();
            }
            Ok::<_, BenchError>(process)
        };
        let mut server = start("server", &self.guests[1], &plan.server)?;
        server.wait_open(&self.guests[1], plan.listening_port, self.interrupt)?;
        let begun = if load.is_exchange() {
            (BEGUN_EXCHANGE * u64::from(load.flows())).min(BEGUN_STREAM)
        } else {
            BEGUN_STREAM
        };
        self.traffic_counter.await_load(begun)?;
        let mut clients = Vec::with_capacity(plan.clients.len());
        for words in &plan.clients {
            clients.push(start("client", &self.guests[0], words)?);
        }
        // Start-up is nobody's: the warm-up begins when data flow.
        self.traffic_counter.counts(BEGINNING, self.interrupt, || {
            clients
                .iter_mut()
                .try_for_each(|client| client.still_runs(self.interrupt))
        })?;
        let (counts, hosts, cores) = self.window(plan, &mut server, &mut clients)?;
        if counts.ended > 0 {
            return Err(BenchError::EndedEarly {
                peer: name,
                count: counts.ended,
            });
        }
        let within = Duration::from_secs(u64::from(self.setting(load, [0; 16]).seconds)) + PATIENCE;
        let mut own = 0.0;
        let mut counters = Vec::new();
        let mut latency_us = None;
        for client in &mut clients {
            client.close_input();
        }
        for mut client in clients {
            let finished = well(&mut client, within, self.interrupt)?;
            counters.extend(EndCounters::read(&finished.output));
            latency_us = peer.latency_us(&finished);
            if !plan.takes_window || load.is_exchange() {
                own += peer
                    .own(load, &finished)
                    .map_err(|reason| client.failed(reason))?;
            }
        }
        if plan.server_ends {
            let finished = well(&mut server, PATIENCE, self.interrupt)?;
            counters.extend(EndCounters::read(&finished.output));
            if plan.takes_window && !load.is_exchange() {
                own = peer
                    .own(load, &finished)
                    .map_err(|reason| server.failed(reason))?;
            }
        }
        drop(server);
        let figure = if peer.aggregates(load) {
            own
        } else {
            figure(load, &counts)
        };
        let apart = [before, self.apart()?];
        let sample = Sample::new(name, [figure, own], &hosts, cores, apart, &counters)?;
        Ok(Sample {
            latency_us,
            ..sample
        })
    }

    /// How far apart the hosts' cores are, while no load runs; nothing where others had one of them.
    fn apart(&self) -> Result<Option<f64>, BenchError> {
        let [a, b] = self.cores;
        match line_round_trip_ns(a, b) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(None),
            apart => apart.map_err(BenchError::machine("timing a cache line between the cores")),
        }
    }

    /// Warms up and counts, on both hosts and in the receiving guest at once; the last: cores that each host used.
    fn window(
        &mut self,
        plan: &Plan,
        server: &mut Process,
        clients: &mut [Process],
    ) -> Result<(WindowCounts, [Measured; 2], [f64; 2]), BenchError> {
        std::thread::sleep(Duration::from_secs_f64((self.warmup - LEAD_S).max(0.0)));
        let mut pids = vec![std::process::id(), self.traffic_counter.pid(), server.pid()];
        pids.extend(self.lab.pids());
        pids.extend(clients.iter().map(Process::pid));
        let ours = with_descendants(&pids);
        let line = format!("{LEAD_S} {}", self.seconds);
        self.traffic_counter.begin(&line)?;
        for loopers in self.loopers.iter_mut().flatten() {
            loopers.begin(&line)?;
        }
        if plan.takes_window {
            server.send_line(&line)?;
            clients
                .iter_mut()
                .try_for_each(|client| client.send_line(&line))?;
        }
        let counting = CountingWindow {
            warmup_s: LEAD_S,
            seconds: self.seconds,
            // Nobody looks at intervals here.
            interval_s: self.seconds,
            ours: &ours,
        };
        let hosts = self
            .lab
            .count(counting, self.interrupt)
            .map_err(BenchError::lab("counting"))?;
        let counts = self
            .traffic_counter
            .counts(PATIENCE, self.interrupt, || Ok(()))?;
        let cores = match &mut self.loopers {
            Some([a, b]) => [a.taken(self.interrupt)?, b.taken(self.interrupt)?],
            None => hosts.each_ref().map(|host| host.usage.busy_cores()),
        };
        Ok((counts, hosts, cores))
    }
}

/// Waits for an end without complaint.
fn well(
    process: &mut Process,
    within: Duration,
    interrupt: &AtomicBool,
) -> Result<FinishedProgram, BenchError> {
    let finished = process.finish(within, interrupt)?;
    if finished.status.success() {
        Ok(finished)
    } else {
        Err(process.failed(finished.words()))
    }
}

/// The yardstick in the load's unit.
fn figure(load: Load, counts: &WindowCounts) -> f64 {
    let counted = match load {
        Load::Stream { .. } => counts.tcp_bytes as f64 * 8.0 / 1e9,
        Load::TcpRr { .. } => counts.tcp_bytes as f64 / f64::from(load.message()) / 1e3,
        Load::UdpRr { .. } | Load::UdpStream { .. } => counts.udp_datagrams as f64 / 1e3,
        Load::Storage { .. } => {
            counts.tcp_bytes as f64 / f64::from(load.message() + REPLY_HEADER) / 1e3
        }
    };
    counted / counts.seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: WindowCounts = WindowCounts {
        seconds: 2.0,
        tcp_bytes: 3_200_000,
        udp_datagrams: 50_000,
        ended: 0,
    };

    #[test]
    fn the_yardstick_is_in_the_loads_unit() {
        let bulk = Load::Stream {
            streams: 1,
            message: 1 << 17,
            nodelay: false,
        };
        assert!((figure(bulk, &COUNTS) - 0.0128).abs() < 1e-12);
        // Of 16 bytes each.
        let exchange = Load::TcpRr { connections: 1 };
        assert!((figure(exchange, &COUNTS) - 100.0).abs() < 1e-9);
        assert!((figure(Load::UdpRr { connections: 1 }, &COUNTS) - 25.0).abs() < 1e-9);
    }
}
