//! Client and server ends of loads on a host: their orders, windows and results.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wirecost_model::end_window::{Counts, End, EndWindow};
use wirecost_model::latency::Latency;
use wirecost_model::load::{Address, Load};
use wirecost_model::usage::HostUsage;

/// A network namespace of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HostNetns {
    /// The network namespace of the agent's own process.
    Host,
    /// The namespace of the guest with this number, from 0.
    Guest(u32),
}

/// One end of a load. Client and server end get the same, except address and place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadEnd {
    /// Name of the load in results and errors, unique among the ends of one kind at one place of a host.
    pub name: String,
    /// The namespace that the end runs in.
    pub place: HostNetns,
    /// For a server the address to bind, with port 0 for any port; for a client the server's address.
    pub address: Address,
    /// For a client the source address of its packets; `None` leaves it to the kernel.
    pub source: Option<IpAddr>,
    /// Cores of its threads; empty: those of the agent.
    pub cpus: Vec<u32>,
    /// The load to run.
    pub load: Load,
    /// Secret that opens the flows of this load in this sample, and no others.
    pub secret: [u8; 16],
}

/// When and how counting begins.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CountingStart {
    /// Duration of the warm-up from now, seconds.
    pub warmup_s: f64,
    /// Processes of this run, if this host measures foreign load. The scans take some milliseconds before the beginning
    /// and after the last part, so only one host of a machine does it.
    pub foreign_to: Option<Vec<u32>>,
}

/// An order to count one part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PartOrder {
    /// Duration of the part, seconds, 0 for none; with intervals it counts from
    /// [`Request::Begin`](super::Request::Begin).
    pub within_s: f64,
    /// Length of the intervals within the part, seconds; `None`: no intervals are recorded.
    pub interval_s: Option<f64>,
    /// Whether this is the last part: data sent after it is not counted.
    pub last: bool,
}

/// One host's counts over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Usage of processors, links and protocols.
    pub usage: HostUsage,
    /// The ends of loads on this host.
    pub loads: Vec<MeasuredEnd>,
}

/// One end of a load over one window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredEnd {
    /// [`LoadEnd::name`].
    pub name: String,
    /// [`LoadEnd::place`].
    pub place: HostNetns,
    /// Whether this is the client or the server end.
    pub end: End,
    /// Counts of the window.
    pub window: EndWindow,
}

/// Counts of one part of a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowPart {
    /// Whether every client on this host has ended by its own limit; `false` without clients.
    pub over: bool,
    /// The ends of loads on this host.
    pub ends: Vec<EndPart>,
}

/// Counts of one end of a load in a part of a window, over all its flows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndPart {
    /// [`LoadEnd::name`].
    pub name: String,
    /// [`LoadEnd::place`].
    pub place: HostNetns,
    /// Whether this is the client or the server end.
    pub end: End,
    /// Length of the part, seconds.
    pub seconds: f64,
    /// Sums over the flows; [`Counts::jitter_ns`] is the largest.
    pub counts: Counts,
    /// Datagrams lost, as in [`wirecost_model::end_window::FlowWindow::lost`].
    pub lost: i64,
    /// TCP segments retransmitted.
    pub retransmits: u64,
    /// Latency of the transactions that ended in the part; at the client only.
    pub latency: Latency,
}

/// One end of a load that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedLoad {
    /// [`LoadEnd::name`].
    pub name: String,
    /// [`LoadEnd::place`].
    pub place: HostNetns,
    /// Whether this was the client or the server end.
    pub end: End,
    /// Number of datagrams, as in [`EndWindow::datagrams`].
    pub datagrams: u64,
}
