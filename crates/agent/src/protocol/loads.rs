//! Client and server ends of loads on a host: their orders, counting windows and results.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wirecost_model::end_window::{Counts, End, EndWindow};
use wirecost_model::latency::Latency;
use wirecost_model::load::{Address, Load};
use wirecost_model::usage::HostUsage;

/// A network namespace of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HostNetns {
    /// In the network namespace of the agent's own process.
    Host,
    /// In the guest of that number, from 0.
    Guest(u32),
}

/// One end of a load: both ends are given the same but for the address and the place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadEnd {
    /// What figures and errors call the load; no two on a host at the same place and end have the same.
    pub name: String,
    /// Where it runs.
    pub place: HostNetns,
    /// Of a server the address to bind, port 0 for any; of a client the server's.
    pub address: Address,
    /// Of a client the address that its packets leave with; `None` leaves it to the kernel.
    pub source: Option<IpAddr>,
    /// Processors of its threads; empty: those of the agent.
    pub cpus: Vec<u32>,
    /// What is run.
    pub load: Load,
    /// Opens the flows of this load in this sample and no others.
    pub secret: [u8; 16],
}

/// When counting begins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CountingStart {
    /// Seconds from now.
    pub warmup_s: f64,
    /// Processes of this run, where this host is to look for foreign load; it costs some milliseconds before the
    /// beginning and after the last part, so one host of a machine does it.
    pub foreign_to: Option<Vec<u32>>,
}

/// A part of what is counted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PartOrder {
    /// Seconds, 0 for none; with intervals they count from [`Request::Begin`](super::Request::Begin).
    pub within_s: f64,
    /// Length of the intervals within it, in seconds; `None`: none are kept.
    pub interval_s: Option<f64>,
    /// Whether what is sent after it is not counted any more.
    pub last: bool,
}

/// One host's counts over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Processors, links, protocols.
    pub usage: HostUsage,
    /// Each end of a load on this host.
    pub loads: Vec<MeasuredEnd>,
}

/// One end of a load over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredEnd {
    /// [`LoadEnd::name`].
    pub name: String,
    /// [`LoadEnd::place`].
    pub place: HostNetns,
    /// Which end it is.
    pub end: End,
    /// What it counted.
    pub window: EndWindow,
}

/// A part of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Whether every client on this host is over by its own limit; `false` where there is none.
    pub over: bool,
    /// Each end of a load on this host.
    pub ends: Vec<EndPart>,
}

/// One end of a load in a part of a window, all its flows together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndPart {
    /// [`LoadEnd::name`].
    pub name: String,
    /// [`LoadEnd::place`].
    pub place: HostNetns,
    /// Which end it is.
    pub end: End,
    /// Length in seconds.
    pub seconds: f64,
    /// Sums over the flows; of [`Counts::jitter_ns`] the largest.
    pub counts: Counts,
    /// Datagrams lost, as of [`wirecost_model::end_window::FlowWindow::lost`].
    pub lost: i64,
    /// TCP segments sent again.
    pub retransmits: u64,
    /// Of the transactions that ended in it, at the client.
    pub latency: Latency,
}

/// One end of a load that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedLoad {
    /// [`LoadEnd::name`].
    pub name: String,
    /// [`LoadEnd::place`].
    pub place: HostNetns,
    /// Which end it was.
    pub end: End,
    /// See [`EndWindow::datagrams`].
    pub datagrams: u64,
}
