//! One sample of either tool, by the same meter.

use std::sync::atomic::AtomicBool;

use serde::Serialize;
use wirecost_agent::protocol::Measured;
use wirecost_model::usage::HostUsage;
use wirecost_run::{Counting, FOREIGN_CORES_THRESHOLD, Lab, Placement, STEAL_THRESHOLD};

use crate::configuration::stream;
use crate::error::BenchError;
use crate::iperf3::{Client, Place, Server};

/// The receiving guest's device, as the meter names it.
const RECEIVING_DEVICE: &str = "guest:eth0";
/// Seconds that iperf3 goes on at least after the window.
const TAIL_S: f64 = 0.2;

/// Which tool sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tool {
    Ours,
    Iperf3,
}

/// One window of one tool.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sample {
    /// The yardstick: Gbit/s that the receiving guest's device counted, headers included.
    pub(crate) gbps: f64,
    /// What the tool itself says, Gbit/s of payload: ours over the window, iperf3 over its whole test.
    pub(crate) own_gbps: f64,
    /// Percent of one core of the sending host per Gbit/s of the yardstick.
    pub(crate) sender_cpu: f64,
    /// Percent of one core of the receiving host per Gbit/s of the yardstick.
    pub(crate) receiver_cpu: f64,
    /// Cores that tasks of neither tool used, over the whole machine.
    pub(crate) foreign_cores: f64,
    /// Foreign load, steal or backlog drops above what marks a sample of a run.
    pub(crate) disturbed: bool,
}

impl Sample {
    fn new(tool: Tool, own_gbps: f64, hosts: &[Measured; 2]) -> Result<Self, BenchError> {
        let [sender, receiver] = hosts.each_ref().map(|host| &host.usage);
        let gbps = receiver.links.get(RECEIVING_DEVICE).map_or(0.0, |link| {
            link.rx_bytes as f64 * 8.0 / receiver.window_s / 1e9
        });
        // Stray neighbour discovery is not a load.
        if gbps < 1e-3 {
            return Err(BenchError::NothingArrived(tool.name()));
        }
        Ok(Self {
            gbps,
            own_gbps,
            sender_cpu: sender.busy_cores() * 100.0 / gbps,
            receiver_cpu: receiver.busy_cores() * 100.0 / gbps,
            foreign_cores: sender.foreign_cores.unwrap_or_default(),
            disturbed: disturbed(sender) || disturbed(receiver),
        })
    }
}

impl Tool {
    /// In pairs: the yardstick's side first.
    pub(crate) const BOTH: [Self; 2] = [Self::Iperf3, Self::Ours];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "the built-in load",
            Self::Iperf3 => "iperf3",
        }
    }
}

fn disturbed(host: &HostUsage) -> bool {
    host.foreign_cores
        .is_some_and(|cores| cores > FOREIGN_CORES_THRESHOLD)
        || host.steal_fraction() > STEAL_THRESHOLD
        || host.backlog_drops > 0
}

/// What samples are taken on and how.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    pub(crate) lab: &'a mut Lab,
    pub(crate) placement: &'a Placement,
    pub(crate) warmup: f64,
    pub(crate) seconds: f64,
    pub(crate) interrupt: &'a AtomicBool,
}

impl Bench<'_> {
    /// Runs `tool` once; `secret` is new for each sample.
    pub(crate) fn take(&mut self, tool: Tool, secret: [u8; 16]) -> Result<Sample, BenchError> {
        match tool {
            Tool::Ours => self.ours(secret),
            Tool::Iperf3 => self.iperf3(),
        }
    }

    /// As `wirecost run` does it: open both ends, begin, count, close.
    fn ours(&mut self, secret: [u8; 16]) -> Result<Sample, BenchError> {
        let lab = BenchError::lab("the built-in load");
        let ours = self.ours_and(&[]);
        let measured = self
            .lab
            .load(&[stream()], secret, self.counting(&ours), self.interrupt)
            .map_err(lab)?;
        let [_, received] = &measured;
        let own_gbps = received.loads.first().map_or(0.0, |sink| {
            sink.window.sum(|counts| counts.read_bytes) as f64 * 8.0 / sink.window.seconds / 1e9
        });
        Sample::new(Tool::Ours, own_gbps, &measured)
    }

    /// The agents open no load and only count.
    fn iperf3(&mut self) -> Result<Sample, BenchError> {
        let [tid_a, tid_b] = self.lab.guest_tids().each_ref().map(|tids| tids[0]);
        let [_, addresses] = self.lab.guest_addresses();
        let address = addresses[0];
        let server = Server::start(
            &Place::new(tid_b, &self.placement.b),
            address,
            self.interrupt,
        )?;
        let seconds = (self.warmup + self.seconds + TAIL_S).ceil() as u32;
        let client = Client::start(&Place::new(tid_a, &self.placement.a), address, seconds)?;
        let ours = self.ours_and(&[server.pid(), client.pid()]);
        let measured = self
            .lab
            .count(self.counting(&ours), self.interrupt)
            .map_err(BenchError::lab("counting beside iperf3"))?;
        let own_gbps = client.finish(self.interrupt)?;
        server.finish(self.interrupt)?;
        Sample::new(Tool::Iperf3, own_gbps, &measured)
    }

    /// This program, its agents and the tools it started.
    fn ours_and(&self, tools: &[u32]) -> Vec<u32> {
        [&[std::process::id()], &self.lab.pids()[..], tools].concat()
    }

    /// One window, no intervals within it: nobody looks at them here.
    fn counting<'c>(&self, ours: &'c [u32]) -> Counting<'c> {
        Counting {
            warmup_s: self.warmup,
            seconds: self.seconds,
            interval_s: self.seconds,
            ours,
        }
    }
}
