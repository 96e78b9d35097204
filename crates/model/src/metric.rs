//! What is derived from a sample: the figures that tables and verdicts are about.

use serde::{Deserialize, Serialize};

use crate::plan::Cores;
use crate::sample::Sample;

/// A figure that verdicts are given about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Bits per second that the receiving application read.
    Throughput,
    /// Percent of one core of the sending host per Gbit/s.
    SenderCpu,
    /// Percent of one core of the receiving host per Gbit/s.
    ReceiverCpu,
    /// Percent of one core of the machine per Gbit/s, where the hosts share their cores.
    Cpu,
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

impl Metric {
    /// The metrics a run has: sender and receiver CPU apart only where their cores are.
    pub const fn of(cores: Cores) -> &'static [Self] {
        match cores {
            Cores::Split => &[Self::Throughput, Self::SenderCpu, Self::ReceiverCpu],
            Cores::Shared => &[Self::Throughput, Self::Cpu],
        }
    }

    /// Which way is better.
    pub const fn better(self) -> Direction {
        match self {
            Self::Throughput => Direction::Higher,
            Self::SenderCpu | Self::ReceiverCpu | Self::Cpu => Direction::Lower,
        }
    }

    /// In words, for a verdict's sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::SenderCpu => "sender CPU per Gbit/s",
            Self::ReceiverCpu => "receiver CPU per Gbit/s",
            Self::Cpu => "CPU per Gbit/s",
        }
    }

    /// The figure of one sample, `None` where the sample has none (it never ran, or nothing arrived).
    /// Says nothing about validity.
    pub fn value(self, sample: &Sample) -> Option<f64> {
        let stream = sample.stream.as_ref()?;
        let bits_per_second = stream.bytes as f64 * 8.0 / stream.seconds;
        if !(bits_per_second > 0.0 && bits_per_second.is_finite()) {
            return None;
        }
        let per_gbps = |cores: f64| Some(cores * 100.0 / (bits_per_second / 1e9));
        match self {
            Self::Throughput => Some(bits_per_second),
            Self::SenderCpu => per_gbps(sample.sender.as_ref()?.busy_cores()),
            // With shared cores both hosts read the same counters: one of them is the machine.
            Self::ReceiverCpu | Self::Cpu => per_gbps(sample.receiver.as_ref()?.busy_cores()),
        }
    }
}

/// Frames on the wire per second, both directions: segments out of both guests, retransmits and
/// pure ACKs included, and what was not TCP.
pub fn wire_frames_per_second(sample: &Sample) -> Option<f64> {
    let one = |usage: &crate::usage::HostUsage| {
        (usage.guest.udp_out + usage.guest.icmp_out) as f64 / usage.window_s
    };
    let (sender, receiver) = (sample.sender.as_ref()?, sample.receiver.as_ref()?);
    let stream = sample.stream.as_ref()?;
    let sent: u64 = stream.flows.iter().map(|flow| flow.sender.segs_out).sum();
    let acked: u64 = stream.flows.iter().map(|flow| flow.receiver.segs_out).sum();
    Some(
        sent as f64 / stream.sender_seconds
            + acked as f64 / stream.seconds
            + one(sender)
            + one(receiver),
    )
}

/// Packets per second as the receiving guest's TCP handled them: fewer than frames where something aggregates.
pub fn stack_packets_per_second(sample: &Sample) -> Option<f64> {
    let receiver = sample.receiver.as_ref()?;
    Some(receiver.guest.tcp_in as f64 / receiver.window_s)
}

/// Segments on the wire per super-packet that the receiving guest's TCP handled; 1 where nothing aggregates.
pub fn segments_per_packet(sample: &Sample) -> Option<f64> {
    let receiver = sample.receiver.as_ref()?;
    let segments: u64 = sample
        .stream
        .as_ref()?
        .flows
        .iter()
        .map(|flow| flow.receiver.segs_in)
        .sum();
    (receiver.guest.tcp_in > 0).then(|| segments as f64 / receiver.guest.tcp_in as f64)
}
