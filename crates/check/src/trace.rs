//! Traces of paths, hop by hop: plain data, in the protocol of agents and in the document.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wirecost_pmtu::{HopMessage, Source, TracedHop};

use crate::observations::Unreachable;

/// The trace of one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TraceReport {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Hops, by distance.
    pub hops: Vec<HopReport>,
}

/// One hop of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HopReport {
    /// Distance of the hop (TTL or hop limit), from 1.
    pub ttl: u8,
    /// Source address of the hop's answers; `None`: the hop does not answer.
    pub address: Option<IpAddr>,
    /// The shortest round trip to the hop, seconds.
    pub rtt_s: Option<f64>,
    /// The largest of the probed IP packets that reached the hop, bytes.
    pub mtu: Option<u32>,
    /// An ICMP message (too big, unreachable) that arrived while the hop was probed, in words.
    pub message: Option<String>,
    /// Whether the hop is the destination.
    pub destination: bool,
}

impl From<&TracedHop> for HopReport {
    fn from(hop: &TracedHop) -> Self {
        Self {
            ttl: hop.ttl,
            address: hop.address,
            rtt_s: hop.rtt.map(|rtt| rtt.as_secs_f64()),
            mtu: hop.reached_by,
            message: hop.message.map(words),
            destination: hop.destination,
        }
    }
}

fn words(message: HopMessage) -> String {
    match message {
        HopMessage::TooBig(too_big) => match too_big.source {
            Source::Router(by) => format!("{by} says too big: {}", too_big.mtu),
            Source::Local => format!("this host sends {} at most", too_big.mtu),
        },
        HopMessage::Unreachable { by, code } => {
            format!("{by} says {}", Unreachable { by, code }.words())
        }
    }
}
